"""The store in MongoDB keeps the contract, over both drivers, against a real server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, get_args

import pytest
from pymongo import AsyncMongoClient, monitoring

from memory.clock import SystemClock
from memory.errors import CorruptRecord, StoreFault, StoreUnavailable
from memory.ports import Store
from memory.stores import queries
from memory.stores.mongo import Driver, MongoBackend, MongoStore
from memory.types import DIRECT, Person, SessionState, TurnId
from tests.stores.contract import StoreContract, claim
from tests.stores.secantus import SecantusServer
from tests.stores.values import ANN, at, gathered, session, turn

pytestmark = pytest.mark.wire


@pytest.fixture
async def raw(server: SecantusServer, database: str) -> AsyncIterator[Any]:
    """The database as it is underneath, to see and to spoil what is stored."""
    async with AsyncMongoClient[dict[str, Any]](server.uri, tz_aware=True) as client:
        yield client[database]


class TestMongoStore(StoreContract):
    """Everything of the contract."""


async def test_it_names_the_server_and_its_version(store: Store) -> None:
    assert (await store.ping()).startswith("SecantusDB 0.")


# Indexes


@dataclass
class Recorder(monitoring.CommandListener):
    """Keeps what was sent."""

    commands: list[dict[str, Any]] = field(default_factory=list)

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.commands.append({"name": event.command_name, **event.command})

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...

    def take(self, *names: str) -> list[dict[str, Any]]:
        taken = [command for command in self.commands if command["name"] in names]
        self.commands.clear()
        return taken


@pytest.fixture
async def recorded(server: SecantusServer, database: str) -> AsyncIterator[tuple[MongoStore, Recorder]]:
    recorder = Recorder()
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(
        server.uri, tz_aware=True, event_listeners=[recorder]
    )
    watched = MongoStore(MongoBackend(client, database), clock=SystemClock())
    await watched.prepare()
    recorder.commands.clear()
    yield watched, recorder
    await watched.aclose()


def filters_of(command: dict[str, Any]) -> list[dict[str, Any]]:
    match command["name"]:
        case "find":
            return [command["filter"]]
        case "aggregate":
            return [command["pipeline"][0]["$match"]]
        case "update":
            return [update["q"] for update in command["updates"]]
        case "delete":
            return [delete["q"] for delete in command["deletes"]]
    return []


def is_served(collection: str, asked: dict[str, Any]) -> bool:
    """Tell whether a filter starts from a document's own id, or is the beginning of an index and no more."""
    if next(iter(asked)) == "_id":
        return True
    for index in queries.INDEXES:
        only = dict(index.only or {})
        leading = index.keys[: len(asked) - len(only)]
        ranges = [key for key in leading if isinstance(asked.get(key), dict)]
        meant = index.collection == collection and only.items() <= asked.items()
        if meant and set(asked) == {*leading, *only} and ranges in ([], [leading[-1]]):
            return True
    return False


def test_the_judge_of_filters_can_say_no() -> None:
    assert is_served("turns", {"memory_id": "a", "at": {"$lt": 1}})
    assert not is_served("turns", {"memory_id": "a", "_id": "t"})
    assert not is_served("turns", {"memory_id": "a", "at": {"$lt": 1}, "session_id": "s"})
    assert not is_served("turns", {"memory_id": {"$gt": ""}, "at": {"$lt": 1}})
    assert not is_served("turns", {"session_id": "s"})
    assert not is_served("sessions", {"memory_id": {"$gt": ""}, "due_at": {"$lt": 1}})


async def use_everything(store: Store) -> None:
    """Call each method in each way that makes a query of its own."""
    opened = await store.open_session(session())
    await store.open_session(session("s2"))
    await store.put_session(session("s3", due=None, state=SessionState.CLOSED, summary="tea"))
    await store.put_session(session("s3", due=None, state=SessionState.CLOSED))
    await store.add_turn(turn("t1"))
    await store.turn(ANN, TurnId("t1"))
    for newest in (None, 2):
        for since in (None, at(0)):
            for until in (None, at(9)):
                await store.turns(ANN, since=since, until=until, newest=newest)
                await store.turns(ANN, session=opened, since=since, until=until, newest=newest)
                for audience in (None, DIRECT):
                    await store.sessions(ANN, audience=audience, since=since, until=until, newest=newest)
    await gathered(store.scan(ANN))
    await store.count_turns(ANN)
    await store.session(ANN, opened.session_id)
    await store.opened(ANN, DIRECT)
    await gathered(store.due(at(99)))
    await gathered(store.live())
    await store.touch(opened, due_at=at(40))
    await store.set_window(opened, window_from=TurnId("t1"), running=None)
    await store.revise(ANN, opened.session_id, due_at=at(40))
    claimed = await claim(store, opened, now=50, early=True)
    assert claimed is not None
    await store.postpone(claimed, due_at=at(51), fault="x")
    again = await claim(store, claimed, now=51)
    assert again is not None
    await store.finish(again, summary="tea", summary_model="small")
    await store.revise(ANN, opened.session_id, due_at=at(40))
    await store.put_person(Person(ANN))
    await store.person(ANN)
    await store.known("terminal:")
    await store.holdings(ANN)
    await store.delete_turns(ANN, [TurnId("t1")])
    await store.add_turn(turn("t2"))
    await store.delete_session(ANN, opened.session_id)
    await store.erase(ANN)


async def test_every_query_is_served_by_an_index(recorded: tuple[MongoStore, Recorder]) -> None:
    watched, recorder = recorded
    await use_everything(watched)
    asked = recorder.take("find", "aggregate", "update", "delete")
    assert {command["name"] for command in asked} == {"find", "aggregate", "update", "delete"}
    assert len(asked) > 60
    for command in asked:
        for found in filters_of(command):
            assert is_served(command[command["name"]], found), command


async def test_every_index_begins_with_the_memory_id_and_is_there(store: Store, raw: Any) -> None:
    assert all(index.keys[0] == "memory_id" for index in queries.INDEXES)
    for index in queries.INDEXES:
        there = await raw[index.collection].index_information()
        assert there[index.name]["key"] == [(key, 1) for key in index.keys]
        assert there[index.name].get("partialFilterExpression") == index.only
        assert bool(there[index.name].get("unique")) == index.unique
    names = {index.collection for index in queries.INDEXES}
    assert {name: len(await raw[name].index_information()) for name in names} == {
        queries.TURNS: 2,
        queries.SESSIONS: 4,
    }


async def test_the_server_takes_the_index_that_is_meant(store: Store, raw: Any) -> None:
    await store.open_session(session())
    await store.add_turn(turn("t1"))
    in_time = queries.in_time(ANN, "at", since=at(0), until=at(9), conditions={})
    started = queries.in_time(ANN, "started_at", since=at(0), until=None, conditions={})
    meant = {
        "at": (queries.TURNS, in_time),
        "started": (queries.SESSIONS, started),
        "due": (queries.SESSIONS, queries.due(at(99))),
        "open": (queries.SESSIONS, [{"$match": queries.opened(ANN, DIRECT)}]),
    }
    for name, (collection, pipeline) in meant.items():
        plan = await raw[collection].find(pipeline[0]["$match"]).explain()
        assert f"'indexName': '{name}'" in str(plan["queryPlanner"]["winningPlan"])
    live = await raw[queries.SESSIONS].find(queries.live()[0]["$match"]).explain()
    assert "'indexName': 'due'" in str(live["queryPlanner"]["winningPlan"])


async def test_a_turn_is_one_insert_and_nothing_else(recorded: tuple[MongoStore, Recorder]) -> None:
    watched, recorder = recorded
    opened = await watched.open_session(session())
    recorder.commands.clear()
    await watched.add_turn(turn("t1"))
    await watched.session(ANN, opened.session_id)
    await watched.touch(opened, due_at=at(90))
    assert [command["name"] for command in recorder.commands] == ["insert", "find", "update"]
    assert recorder.commands[0]["writeConcern"] == {"j": True}
    assert len(recorder.commands[0]["documents"]) == 1


# Two processes on one database


async def test_two_stores_that_race_have_one_winner(server: SecantusServer, database: str) -> None:
    stores = [MongoStore.connect(server.uri, database=database, driver=name) for name in get_args(Driver)]
    await asyncio.gather(*(store.prepare() for store in stores))
    for round_ in range(20):
        minutes = round_ * 100
        opened = await asyncio.gather(
            *(
                store.open_session(session(f"{round_}-{n}", minutes=minutes, due=minutes + 30))
                for n, store in enumerate(stores)
            )
        )
        assert opened[0] == opened[1]
        claims = await asyncio.gather(
            *(claim(store, opened[0], now=minutes + 30, owner=f"o{n}") for n, store in enumerate(stores))
        )
        (won,) = [found for found in claims if found is not None]
        assert await stores[0].session(ANN, won.session_id) == won
        landed = await asyncio.gather(
            *(store.finish(won, summary=f"by {n}", summary_model="") for n, store in enumerate(stores))
        )
        assert sorted(landed) == [False, True]
        found = await stores[0].session(ANN, won.session_id)
        assert found is not None
        assert found.summary == f"by {landed.index(True)}"
    for store in stores:
        await store.aclose()


# What is stored cannot be read


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"$unset": {"human": ""}}, "'human' is missing"),
        ({"$set": {"human": 7}}, "'human' is of type int"),
        ({"$set": {"at": "yesterday"}}, "'at' is of type str"),
        ({"$set": {"outcome": "exploded"}}, "'outcome'"),
        ({"$set": {"usage": [1]}}, "'usage'"),
        ({"$set": {"usage": {"prompt": "many"}}}, "usage: the field 'prompt'"),
        ({"$set": {"v": 2}}, "schema version 2"),
        ({"$unset": {"v": ""}}, "no schema version"),
    ],
)
async def test_a_turn_that_cannot_be_read_is_a_corrupt_record(
    store: Store, raw: Any, change: dict[str, Any], said: str
) -> None:
    await store.add_turn(turn("t1"))
    await raw.turns.update_one({"_id": "t1"}, change)
    with pytest.raises(CorruptRecord, match=said) as caught:
        await store.turn(ANN, TurnId("t1"))
    assert "hello" not in str(caught.value)
    assert "yesterday" not in str(caught.value)


async def test_a_session_or_person_that_cannot_be_read_is_a_corrupt_record(store: Store, raw: Any) -> None:
    await store.open_session(session())
    await raw.sessions.update_one({"_id": "s1"}, {"$set": {"running": {"text": "so far"}}})
    with pytest.raises(CorruptRecord, match="through"):
        await store.opened(ANN, DIRECT)
    with pytest.raises(CorruptRecord):
        await gathered(store.live())
    await raw.people.insert_one({"_id": ANN, "v": 1, "timezone": 9})
    with pytest.raises(CorruptRecord, match="timezone"):
        await store.person(ANN)


async def test_what_does_not_fit_is_a_store_fault_and_no_outage(store: Store) -> None:
    with pytest.raises(StoreFault) as caught:
        await store.add_turn(turn("t1", human="x" * 17_000_000))
    assert not isinstance(caught.value, StoreUnavailable)
    assert "xxxx" not in str(caught.value)
    with pytest.raises(StoreFault):
        await store.turn(ANN, TurnId("\udc80"))
    assert await store.add_turn(turn("t1"))


# Migrations


async def test_a_database_of_a_newer_version_is_refused(store: Store, raw: Any) -> None:
    await raw.migrations.insert_one({"_id": 99, "name": "from the future"})
    with pytest.raises(StoreFault, match="newer version") as caught:
        await store.prepare()
    assert not isinstance(caught.value, StoreUnavailable)


async def test_what_ran_is_on_record(store: Store, raw: Any) -> None:
    assert [row["_id"] async for row in raw.migrations.find()] == [1]
