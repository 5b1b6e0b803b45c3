"""What has to be done to a database when documents change their shape: numbered steps, and a record of each.

Steps are only ever added at the end, and each may be run again, or by two processes at once: it looks for
documents of the old shape and changes those. A database that a newer version has written is refused, since
this one could misread it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from memory.errors import StoreFault
from memory.stores.documents import Document, whole_ms
from memory.stores.queries import MIGRATIONS, Filter, Pipeline, Update


class Migrated(Protocol):
    """What a migration may do to a database."""

    async def insert(self, collection: str, document: Document) -> bool:
        """Insert a document; False when one with its id is there."""
        ...

    async def update(self, collection: str, found: Filter, update: Update) -> bool:
        """Change the first document found; False when there is none."""
        ...

    async def delete(self, collection: str, found: Filter) -> int:
        """Delete all documents found."""
        ...

    def select(self, collection: str, pipeline: Pipeline) -> AsyncGenerator[Document]:
        """Go through what the pipeline gives."""
        ...


@dataclass(frozen=True, slots=True)
class Migration:
    """One step; its place in the sequence is its number, beginning with 1."""

    name: str
    run: Callable[[Migrated], Awaitable[None]]


async def _nothing_yet(database: Migrated) -> None:
    """Mark a database as being of the first layout."""


STEPS: tuple[Migration, ...] = (Migration("first layout", _nothing_yet),)


async def migrate(database: Migrated, *, at: datetime, steps: Sequence[Migration] = STEPS) -> None:
    """Run the steps that are due, in order, and record each. Raises StoreFault for a newer database."""
    ran = await _ran(database)
    newest = max(ran, default=0)
    if newest > len(steps):
        raise StoreFault(
            f"the database was written by a newer version (layout {newest}, this version knows {len(steps)}):"
            " update Omoide, or use another database"
        )
    for number, step in enumerate(steps, start=1):
        if number not in ran:
            await step.run(database)
            # False: another process has done it meanwhile, which is as good.
            await database.insert(MIGRATIONS, {"_id": number, "name": step.name, "at": whole_ms(at)})


async def _ran(database: Migrated) -> set[int]:
    async with aclosing(database.select(MIGRATIONS, [{"$match": {}}])) as rows:
        numbers: list[Any] = [row["_id"] async for row in rows]
    if not all(isinstance(number, int) for number in numbers):
        raise StoreFault("the record of migrations cannot be read: is this database Omoide's?")
    return set(numbers)
