"""The embedded database as it is: started, joined, killed, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from bot.errors import LocalServerError
from bot.local.database import EmbeddedDatabase, database_answers, database_recipe
from bot.local.ports import free_port
from bot.local.processes import serving
from tests.local.stand_in import real_user, user

pytestmark = pytest.mark.wire

USER = real_user("bot.local.database", "EmbeddedDatabase")


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data folder that nothing serves in the end."""
    data_dir = tmp_path / "my 思い出 'data' é"
    yield data_dir
    for child in serving(folder(data_dir)):
        os.kill(child.pid, signal.SIGKILL)


def folder(data_dir: Path) -> Path:
    return data_dir.resolve() / "database"


def database(data_dir: Path) -> EmbeddedDatabase:
    return EmbeddedDatabase(data_dir, progress=lambda text: None)


def pids(data_dir: Path) -> list[int]:
    return [child.pid for child in serving(folder(data_dir))]


@contextlib.asynccontextmanager
async def connected(uri: str) -> AsyncIterator[AsyncMongoClient[dict[str, Any]]]:
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(uri, serverSelectionTimeoutMS=20_000)
    try:
        yield client
    finally:
        await client.close()


async def insert(client: AsyncMongoClient[dict[str, Any]], number: int) -> None:
    """Insert one document, trying again while the server is away."""
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(PyMongoError):
                await client.test.kept.replace_one({"_id": number}, {"_id": number}, upsert=True)
                return


async def numbers(client: AsyncMongoClient[dict[str, Any]]) -> list[int]:
    return [each["_id"] async for each in client.test.kept.find().sort("_id")]


async def test_what_was_written_is_there_the_next_time(data_dir: Path) -> None:
    async with database(data_dir) as uri, connected(uri) as client:
        await insert(client, 1)
    assert pids(data_dir) == []
    async with database(data_dir) as uri, connected(uri) as client:
        assert await numbers(client) == [1]


async def test_two_processes_share_it_and_a_killed_one_changes_nothing(data_dir: Path) -> None:
    with user(USER, str(data_dir)) as other:
        uri = await other.where()
        async with database(data_dir) as same, connected(uri) as client:
            assert same == uri
            await insert(client, 1)
            other.kill()
            assert await numbers(client) == [1]
    assert pids(data_dir) == []


async def test_killed_while_in_use_it_comes_back_with_all_that_was_acknowledged(data_dir: Path) -> None:
    async with database(data_dir) as uri, connected(uri) as client:
        for number in range(50):
            await insert(client, number)
        [before] = pids(data_dir)
        os.kill(before, signal.SIGKILL)
        # The same client, at the same address, with nothing done about it.
        await insert(client, 50)
        assert await numbers(client) == list(range(51))
        assert pids(data_dir) != [before]
    assert pids(data_dir) == []


async def test_database_and_user_both_killed_are_replaced_and_nothing_is_lost(data_dir: Path) -> None:
    with user(USER, str(data_dir)) as other:
        async with connected(await other.where()) as client:
            await insert(client, 1)
        other.kill()
    for pid in pids(data_dir):
        os.kill(pid, signal.SIGKILL)
    async with database(data_dir) as uri, connected(uri) as client:
        assert await numbers(client) == [1]


async def test_another_server_on_its_storage_is_said_in_plain_words(data_dir: Path, tmp_path: Path) -> None:
    async with database(data_dir):
        # A second data folder that leads to the same storage, as a server started by hand would.
        other = tmp_path / "other"
        os.makedirs(other / "database")
        os.symlink(folder(data_dir) / "storage", other / "database" / "storage")
        with pytest.raises(LocalServerError, match="another database server holds its storage") as caught:
            await database(other).__aenter__()
    assert "OMOIDE_MONGO__URI" in str(caught.value)


async def test_a_package_that_is_not_installed_is_said_with_the_mend(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "secantus", None)
    with pytest.raises(LocalServerError, match=r"is not installed.*make setup.*OMOIDE_MONGO__URI"):
        await database(data_dir).__aenter__()


async def test_a_full_disk_is_said_in_plain_words(data_dir: Path) -> None:
    said = database_recipe(data_dir).explain("OSError: [Errno 28] No space left on device")
    assert said == "its disk is full"


async def test_only_a_database_counts_as_an_answer() -> None:
    assert not await database_answers(free_port())

    async def talk_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(16)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk_nonsense, "127.0.0.1", 0)
    async with server:
        assert not await database_answers(server.sockets[0].getsockname()[1])
