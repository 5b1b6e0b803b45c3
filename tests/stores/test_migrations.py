"""Migrations run in order, once, and again without harm when a process broke off or another ran them too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from memory.errors import StoreFault, StoreUnavailable
from memory.stores.documents import Document
from memory.stores.migrations import STEPS, Migrated, Migration, migrate
from memory.stores.queries import Filter, Pipeline, Update
from tests.clock import NOON


class FakeDatabase:
    """Keeps documents by id; every call lets others run first, as a round trip does."""

    def __init__(self) -> None:
        self.rows: dict[Any, Document] = {}

    async def insert(self, collection: str, document: Document) -> bool:
        await asyncio.sleep(0)
        return self.rows.setdefault(document["_id"], document) is document

    async def update(self, collection: str, found: Filter, update: Update) -> bool:
        raise NotImplementedError

    async def delete(self, collection: str, found: Filter) -> int:
        raise NotImplementedError

    async def select(self, collection: str, pipeline: Pipeline) -> AsyncGenerator[Document]:
        await asyncio.sleep(0)
        for row in tuple(self.rows.values()):
            yield row


class Steps:
    """Steps that note when they ran; the second one may fail."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.fail = False

    async def _first(self, database: Migrated) -> None:
        self.ran.append("first")

    async def _second(self, database: Migrated) -> None:
        if self.fail:
            raise StoreUnavailable("in the middle")
        self.ran.append("second")

    @property
    def all(self) -> tuple[Migration, ...]:
        return Migration("first", self._first), Migration("second", self._second)


async def test_steps_run_in_order_once_and_are_recorded() -> None:
    database, steps = FakeDatabase(), Steps()
    await migrate(database, at=NOON, steps=steps.all)
    await migrate(database, at=NOON, steps=steps.all)
    assert steps.ran == ["first", "second"]
    assert database.rows == {
        1: {"_id": 1, "name": "first", "at": NOON},
        2: {"_id": 2, "name": "second", "at": NOON},
    }


async def test_only_what_has_not_run_yet_runs() -> None:
    database, steps = FakeDatabase(), Steps()
    await migrate(database, at=NOON, steps=steps.all[:1])
    await migrate(database, at=NOON, steps=steps.all)
    assert steps.ran == ["first", "second"]


async def test_a_step_that_broke_off_runs_again() -> None:
    database, steps = FakeDatabase(), Steps()
    steps.fail = True
    with pytest.raises(StoreUnavailable):
        await migrate(database, at=NOON, steps=steps.all)
    steps.fail = False
    await migrate(database, at=NOON, steps=steps.all)
    assert steps.ran == ["first", "second"]


async def test_two_processes_at_once_leave_one_record() -> None:
    database, steps = FakeDatabase(), Steps()
    await asyncio.gather(*(migrate(database, at=NOON, steps=steps.all) for _ in range(2)))
    assert sorted(database.rows) == [1, 2]


async def test_a_newer_database_is_refused_before_anything_runs() -> None:
    database, steps = FakeDatabase(), Steps()
    await database.insert("migrations", {"_id": 3})
    with pytest.raises(StoreFault, match="layout 3, this version knows 2"):
        await migrate(database, at=NOON, steps=steps.all)
    assert steps.ran == []


async def test_a_record_that_is_not_ours_is_refused() -> None:
    database = FakeDatabase()
    await database.insert("migrations", {"_id": "0001_initial"})
    with pytest.raises(StoreFault, match="cannot be read"):
        await migrate(database, at=NOON)


def test_steps_have_names_of_their_own() -> None:
    assert len({step.name for step in STEPS}) == len(STEPS) >= 1
