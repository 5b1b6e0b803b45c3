"""The store in MongoDB keeps the contract, over both drivers, against a real server on loopback."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, get_args

import pytest
from bson.errors import InvalidBSON, InvalidDocument
from pymongo import AsyncMongoClient, errors, monitoring

from memory.clock import SystemClock
from memory.errors import CorruptRecord, StoreFault, StoreUnavailable
from memory.ports import Store
from memory.stores import queries
from memory.stores.mongo import Driver, MongoBackend, MongoStore
from memory.types import DIRECT, Person, SessionState, TurnId
from tests.stores.contract import StoreContract, claim
from tests.stores.secantus import SecantusServer, running_server
from tests.stores.values import ANN, at, gathered, session, turn

pytestmark = pytest.mark.wire

_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecantusServer]:
    with running_server(tmp_path_factory.mktemp("secantus")) as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[SecantusServer]:
    """A server that a test may do anything to."""
    with running_server(tmp_path) as running:
        yield running


@pytest.fixture(params=get_args(Driver))
def driver(request: pytest.FixtureRequest) -> Driver:
    chosen: Driver = request.param
    return chosen


@pytest.fixture
def database() -> str:
    return f"test{next(_numbers)}"


@pytest.fixture
async def store(server: SecantusServer, driver: Driver, database: str) -> AsyncIterator[MongoStore]:
    connected = MongoStore.connect(server.uri, database=database, driver=driver)
    await connected.prepare()
    yield connected
    await connected.aclose()


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


# The server goes away


async def test_a_server_that_is_not_there_is_unavailable_in_time(driver: Driver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    gone = MongoStore.connect(f"mongodb://127.0.0.1:{port}/", driver=driver, timeout=0.3)
    started = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await gone.ping()
    assert time.monotonic() - started < 5
    await gone.aclose()


async def test_a_server_that_does_not_answer_is_unavailable_in_time(driver: Driver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        mute = MongoStore.connect(f"mongodb://127.0.0.1:{port}/", driver=driver, timeout=0.3)
        started = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await mute.add_turn(turn("t1"))
        assert time.monotonic() - started < 5
        await mute.aclose()


async def test_a_server_that_hangs_is_unavailable_and_then_is_back(
    own_server: SecantusServer, driver: Driver
) -> None:
    store = MongoStore.connect(own_server.uri, driver=driver, timeout=1.0)
    await store.prepare()
    os.kill(own_server.pid, signal.SIGSTOP)
    started = time.monotonic()
    try:
        with pytest.raises(StoreUnavailable):
            await store.add_turn(turn("t1"))
        with pytest.raises(StoreUnavailable):
            await gathered(store.live())
    finally:
        os.kill(own_server.pid, signal.SIGCONT)
    assert time.monotonic() - started < 10
    await until_it_works(store)
    await store.add_turn(turn("t1"))
    assert [found.turn_id for found in await store.turns(ANN)] == ["t1"]
    await store.aclose()


async def until_it_works(store: Store, within: float = 30.0) -> None:
    """Ask until the server answers; each call waits for it by itself."""
    end = time.monotonic() + within
    while True:
        try:
            await store.ping()
        except StoreUnavailable:
            assert time.monotonic() < end
        else:
            return


async def test_a_killed_server_has_lost_no_acknowledged_write(
    own_server: SecantusServer, driver: Driver
) -> None:
    store = MongoStore.connect(own_server.uri, driver=driver, timeout=5.0)
    await store.prepare()
    opened = await store.open_session(session())
    acknowledged: list[str] = []
    enough = asyncio.Event()

    async def write(writer: int) -> None:
        for number in count():
            turn_id = f"w{writer}-{number}"
            try:
                await store.add_turn(turn(turn_id, minutes=number))
                acknowledged.append(turn_id)
                if len(acknowledged) == 200:
                    enough.set()
                await store.touch(opened, due_at=at(30 + number))
            except StoreUnavailable:
                return

    writers = [asyncio.ensure_future(write(writer)) for writer in range(4)]
    await enough.wait()
    own_server.kill()
    await asyncio.gather(*writers)
    own_server.start(port=own_server.port)
    await until_it_works(store)
    there = {found.turn_id for found in await store.turns(ANN)}
    assert len(acknowledged) >= 200
    assert there >= set(acknowledged)
    assert await store.opened(ANN, DIRECT) is not None
    await store.aclose()


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


# Errors of the driver

AWAY = (
    errors.AutoReconnect("gone"),
    errors.ServerSelectionTimeoutError("no server"),
    errors.NetworkTimeout("slow"),
    errors.NotPrimaryError("elections"),
    errors.WaitQueueTimeoutError("crowded"),
    errors.ExecutionTimeout("slow", 50),
    errors.CursorNotFound("restarted", 43),
    errors.OperationFailure("shutting down", 11600),
    errors.WriteConcernError("not replicated", 91),
    errors.OperationFailure("again", 1, {"errorLabels": ["RetryableWriteError"]}),
)
WRONG = (
    errors.OperationFailure("no such command", 59),
    errors.OperationFailure("who are you", 18),
    errors.OperationFailure("you may not", 13),
    errors.WriteError("s3cret is not valid", 121),
    errors.DocumentTooLarge("too large"),
    errors.InvalidOperation("after close"),
    InvalidDocument("s3cret cannot be encoded"),
    OverflowError("too many bytes"),
)


class BrokenCollection:
    """A collection whose every call fails in the same way; a cursor fails at its first step."""

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    async def _fail(self, *args: Any, **options: Any) -> Any:
        raise self._fault

    insert_one = update_one = delete_many = find_one = replace_one = create_index = command = _fail

    def aggregate(self, *args: Any, **options: Any) -> BrokenCollection:
        return self

    def __aiter__(self) -> BrokenCollection:
        return self

    __anext__ = _fail

    async def close(self) -> None: ...


class BrokenClient:
    """A client of a database in which everything is broken."""

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    def get_database(self, name: str, **options: Any) -> Any:
        collection = BrokenCollection(self._fault)
        return type(
            "Database", (dict,), {"__missing__": lambda *_: collection, "command": collection.command}
        )()


def broken(fault: Exception) -> MongoBackend:
    client: Any = BrokenClient(fault)
    return MongoBackend(client, "any")


def everything_of(backend: MongoBackend) -> list[Awaitable[Any]]:
    return [
        backend.describe(),
        backend.ensure_index(queries.INDEXES[0]),
        backend.insert("any", {"_id": 1}),
        backend.put("any", {"_id": 1}),
        backend.update("any", {}, {}),
        backend.delete("any", {}),
        backend.get("any", {}),
        gathered(backend.select("any", [])),
    ]


@pytest.mark.parametrize("fault", AWAY, ids=lambda fault: type(fault).__name__)
async def test_what_passes_by_itself_is_unavailable(fault: Exception) -> None:
    for call in everything_of(broken(fault)):
        with pytest.raises(StoreUnavailable) as caught:
            await call
        assert caught.value.__cause__ is fault


@pytest.mark.parametrize("fault", WRONG, ids=lambda fault: type(fault).__name__)
async def test_what_does_not_pass_is_a_store_fault(fault: Exception) -> None:
    for call in everything_of(broken(fault)):
        with pytest.raises(StoreFault) as caught:
            await call
        assert type(caught.value) is StoreFault
        assert caught.value.__cause__ is fault
        assert "s3cret" not in str(caught.value)


async def test_bytes_that_are_no_document_are_a_corrupt_record() -> None:
    for call in everything_of(broken(InvalidBSON("year 146140482 is out of range"))):
        with pytest.raises(CorruptRecord):
            await call


async def test_what_is_no_fault_of_the_database_is_left_alone() -> None:
    with pytest.raises(ZeroDivisionError):
        await broken(ZeroDivisionError()).get("any", {})


async def test_a_refused_password_is_told_with_what_to_mend(server: SecantusServer, driver: Driver) -> None:
    uri = server.uri.replace("://", "://ann:s3cret@")
    refused = MongoStore.connect(uri, driver=driver, timeout=5.0)
    with pytest.raises(StoreFault, match="OMOIDE_MONGO__URI") as caught:
        await refused.ping()
    assert not isinstance(caught.value, StoreUnavailable)
    assert "s3cret" not in str(caught.value)
    await refused.aclose()


# Migrations


async def test_a_database_of_a_newer_version_is_refused(store: Store, raw: Any) -> None:
    await raw.migrations.insert_one({"_id": 99, "name": "from the future"})
    with pytest.raises(StoreFault, match="newer version") as caught:
        await store.prepare()
    assert not isinstance(caught.value, StoreUnavailable)


async def test_what_ran_is_on_record(store: Store, raw: Any) -> None:
    assert [row["_id"] async for row in raw.migrations.find()] == [1]


# Addresses


@pytest.mark.parametrize(
    "uri",
    [
        "mongodb://ann:s3cr:et@host/",
        "mongodb://ann:s3cret@host:port/",
        "mongodb://ann:s3cr@et@host:1/?w=x",
        "http://ann:s3cret@host/",
        "mongodb://ann:s3cret@[host/",
    ],
)
def test_an_address_that_is_not_valid_is_told_without_its_password(uri: str, driver: Driver) -> None:
    with pytest.raises(StoreFault, match="address of the database") as caught:
        MongoStore.connect(uri, driver=driver)
    assert "s3cr" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("uri", ["", "mongodb://", "mongodb://host:99999/", "postgres://host/"])
def test_an_address_without_password_is_told_with_its_mistake(uri: str, driver: Driver) -> None:
    with pytest.raises(StoreFault, match=r"address of the database.*\(.+\)") as caught:
        MongoStore.connect(uri, driver=driver)
    assert caught.value.__cause__ is not None


def test_a_name_that_no_database_can_have_is_a_store_fault(driver: Driver) -> None:
    with pytest.raises(StoreFault):
        MongoStore.connect("mongodb://127.0.0.1:1/", database="a b", driver=driver)
