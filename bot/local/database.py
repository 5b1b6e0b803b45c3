"""The embedded database: a MongoDB-speaking server process of the data folder's own.

SecantusDB is GPL, so it is never imported: it is started as a program and spoken to over a socket. This
file knows how to start it and how to tell that it answers; the driver that uses it is known elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import struct
import sys
from pathlib import Path
from types import TracebackType

from bot.errors import LocalServerError
from bot.local.server_folder import Patience, Recipe, Tell
from bot.local.shared_server import SharedServer

PACKAGE = "secantus"
DISTRIBUTION = "secantusdb"
MEND = "run `make setup`, or set OMOIDE_MONGO__URI to a MongoDB server"
PROBE_TIMEOUT = 2.0
OP_MSG = 2013


class EmbeddedDatabase:
    """The use of the data folder's database, from entering to leaving; entering gives its URI.

    Entering raises LocalServerError.
    """

    def __init__(self, data_dir: Path, *, progress: Tell, patience: Patience | None = None) -> None:
        self._data_dir = data_dir
        self._progress = progress
        self._patience = patience
        self._server: SharedServer | None = None

    async def __aenter__(self) -> str:
        recipe = database_recipe(self._data_dir)
        self._server = SharedServer(self._data_dir, recipe, progress=self._progress, patience=self._patience)
        return database_uri(await self._server.__aenter__())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            await self._server.__aexit__(kind, error, trace)


def database_uri(port: int) -> str:
    """Return where the driver finds the database.

    Without `journal` it acknowledges what a kill -9 then loses; with retryable writes it slows down
    tenfold once it holds some ten thousand of them.
    """
    return f"mongodb://127.0.0.1:{port}/?directConnection=true&retryWrites=false&journal=true"


def database_recipe(data_dir: Path) -> Recipe:
    """Return how to run the database. Raises LocalServerError if it is not installed."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise LocalServerError(
            f"the embedded database ({DISTRIBUTION}) is not installed. To mend it, {MEND}."
        )
    storage = (data_dir / "database" / "storage").resolve()
    settings = Path(__file__).with_name("secantusd.toml")

    def command(port: int) -> list[str]:
        # -P: a file in the current folder must not pass for the package.
        start = [sys.executable, "-P", "-m", PACKAGE, "--config", str(settings), "--log-level", "WARNING"]
        return [*start, "--host", "127.0.0.1", "--port", str(port), "--storage-path", str(storage)]

    return Recipe(
        name="database",
        title="the database",
        version=f"{DISTRIBUTION} {importlib.metadata.version(DISTRIBUTION)}",
        mend=MEND,
        command=command,
        answers=database_answers,
        explain=_explain,
    )


def _explain(said: str) -> str | None:
    if "managed by another process" in said or "Device or resource busy" in said:
        return "another database server holds its storage; end that one first"
    if "No space left" in said:
        return "its disk is full"
    return None


async def database_answers(port: int) -> bool:
    """Ask the server at this port for `hello`, and tell whether it takes writes."""
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(_hello(request=1))
                length, _, response_to, kind = struct.unpack("<iiii", await reader.readexactly(16))
                if (response_to, kind) != (1, OP_MSG) or not 16 < length < 65_536:
                    return False
                return b"\x08isWritablePrimary\x00\x01" in await reader.readexactly(length - 16)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False


def _hello(*, request: int) -> bytes:
    """Return the command {hello: 1, $db: "admin"} as one message.

    After the MongoDB wire protocol's OP_MSG (header, flags, one section of kind 0) and bsonspec.org.
    """
    fields = b"\x10hello\x00" + struct.pack("<i", 1) + b"\x02$db\x00" + struct.pack("<i", 6) + b"admin\x00"
    document = struct.pack("<i", len(fields) + 5) + fields + b"\x00"
    body = struct.pack("<I", 0) + b"\x00" + document
    return struct.pack("<iiii", 16 + len(body), request, 0, OP_MSG) + body
