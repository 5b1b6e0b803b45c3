"""What the store over documents does when another process is always a step ahead of it."""

from __future__ import annotations

from typing import Any

import pytest

from memory.errors import StoreUnavailable
from memory.stores.documents import Document, session_document
from memory.stores.documentstore import DocumentStore
from memory.stores.queries import Filter, Update
from tests.clock import FakeClock
from tests.stores.contract import claim
from tests.stores.values import session


class Ahead:
    """A database in which another process undoes what was seen a moment ago, so many times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.rows: dict[Any, Document] = {}

    async def insert(self, collection: str, document: Document) -> bool:
        self.times -= 1
        if self.times >= 0:
            return False  # one was open
        self.rows[document["_id"]] = document
        return True

    async def get(self, collection: str, found: Filter) -> Document | None:
        return self.rows.get(found.get("_id"))  # and is closed again

    async def update(self, collection: str, found: Filter, update: Update) -> bool:
        self.rows[found["_id"]] = {**session_document(session()), "owner": "somebody else"}
        return True


def over(backend: Ahead) -> DocumentStore:
    database: Any = backend
    return DocumentStore(database, clock=FakeClock())


async def test_opening_is_tried_again_when_the_open_one_has_just_ended() -> None:
    assert await over(Ahead(3)).open_session(session()) == session()


async def test_opening_gives_up_when_that_never_ends() -> None:
    with pytest.raises(StoreUnavailable):
        await over(Ahead(1000)).open_session(session())


async def test_a_lease_that_was_taken_over_at_once_is_not_ours() -> None:
    assert await claim(over(Ahead(0)), session(), now=30) is None
