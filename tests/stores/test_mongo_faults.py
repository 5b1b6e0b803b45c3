"""What goes wrong between us and the database: it is away, it refuses, its driver raises, it is killed."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import time
from collections.abc import Awaitable, Iterator
from itertools import count
from typing import Any

import pytest
from bson.errors import InvalidBSON, InvalidDocument
from pymongo import errors

from memory.errors import CorruptRecord, StoreFault, StoreUnavailable
from memory.ports import Store
from memory.stores import queries
from memory.stores.mongo import Driver, MongoBackend, MongoStore
from memory.types import DIRECT
from tests.stores.secantus import SecantusServer
from tests.stores.values import ANN, at, gathered, session, turn

pytestmark = [
    pytest.mark.wire,
    # Closing a client does not wait for its monitors: one that is connecting to a server that never answers
    # leaves its socket to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _collected_here() -> Iterator[None]:
    """Have such a socket collected in the test that left it, not in one that knows nothing of it."""
    yield
    gc.collect()


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


async def test_a_document_that_is_there_already_is_no_fault_unless_it_cannot_be_replaced() -> None:
    backend = broken(errors.DuplicateKeyError("E11000"))
    assert not await backend.insert("any", {"_id": 1})
    with pytest.raises(StoreFault):
        await backend.put("any", {"_id": 1})


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


async def test_a_real_mongodb_is_named_with_its_version() -> None:
    class Database:
        async def command(self, name: str) -> dict[str, Any]:
            return {"version": "8.0.4", "ok": 1.0}

    class Client:
        def get_database(self, name: str, **options: Any) -> Database:
            return Database()

    client: Any = Client()
    assert await MongoBackend(client, "any").describe() == "MongoDB 8.0.4"
