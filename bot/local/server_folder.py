"""The folder of one kind of server: what it is made from, and finding, starting and ending it there.

    lock         held while deciding, never longer
    users        held shared by every process for as long as it uses the server
    server.json  the server's pid, token and port: a hint, checked before it is believed
    server.log   what the server says

Whatever changes the server (join, start, replace, end) is called under `deciding`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.errors import LocalServerError
from bot.local.file_lock import FileLock
from bot.local.ports import free_port, is_free
from bot.local.processes import POLL, Child, end, lives, serving, spawn, until
from bot.local.server_record import Record, last_lines, open_chapter, read_record, write_record

log = logging.getLogger(__name__)

Tell = Callable[[str], None]
"""Takes a short message for a person who is waiting."""

STARTS = 3
SILENT_WAIT = 1.0


def _no_explanation(said: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to run one kind of server.

    `name` names its folder under the data folder, `title` is its name in sentences ("the database"), an
    unused server of another `version` is replaced, and `mend` says what a person can do when it cannot
    run. `command` gives the command line for a port of 127.0.0.1, `answers` tells whether a server at a
    port is ready and never raises, `explain` says in plain words why it ended, from the last lines of
    its log, or None.
    """

    name: str
    title: str
    version: str
    mend: str
    command: Callable[[int], Sequence[str]]
    answers: Callable[[int], Awaitable[bool]]
    explain: Callable[[str], str | None] = _no_explanation


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for what, in seconds.

    `turn` is for others who are starting or stopping the server, `look` is the time between two looks
    whether it still runs. After more than `restarts` deaths with less than `calm` between them it is
    left dead.
    """

    start: float = 60.0
    join: float = 15.0
    stop: float = 10.0
    turn: float = 120.0
    look: float = 0.5
    calm: float = 60.0
    restarts: int = 5


class ServerFolder:
    """One server's folder under a data folder."""

    def __init__(self, data_dir: Path, recipe: Recipe, *, patience: Patience) -> None:
        self._data_dir = data_dir
        self._recipe = recipe
        self._patience = patience
        # Known by its real path, whatever link another process comes through.
        self.path = data_dir.resolve() / recipe.name
        self._record = self.path / "server.json"
        self._log = self.path / "server.log"

    def make(self) -> None:
        """Make the folder, private to its owner. Raises OSError."""
        self._data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.mkdir(exist_ok=True)
        self.path.chmod(0o700)

    @contextlib.asynccontextmanager
    async def deciding(self, *, tell: Tell) -> AsyncIterator[None]:
        """Hold the lock under which everything is decided; waits for others who hold it."""
        lock = FileLock(self.path / "lock")
        if not await until(lock.take, within=SILENT_WAIT):
            tell(f"waiting for another process that is starting or stopping {self._recipe.title}")
            if not await until(lock.take, within=self._patience.turn):
                raise self.fault("another process has been starting or stopping it for too long")
        try:
            yield
        finally:
            lock.drop()

    def recorded(self) -> Record | None:
        """Return the server that was written down, alive or not."""
        return read_record(self._record)

    def lives(self, child: Child) -> bool:
        """Tell whether this very process still serves the folder."""
        return lives(child, folder=self.path)

    async def joinable(self, server: Record, *, alone: bool, tell: Tell) -> bool:
        """Tell whether the server can be used as it is; `alone` says that nobody else uses it."""
        if not self.lives(server.child):
            return False
        if alone and server.version != self._recipe.version:
            tell(f"replacing {self._recipe.title}, which is of another version")
            return False
        if await self._ready(server, within=self._patience.join):
            return True
        tell(f"replacing {self._recipe.title}, which does not answer")
        return False

    async def end_all(self) -> None:
        """End every server of this folder, also one whose starter was killed before it wrote it down."""
        server = self.recorded()
        port = None if server is None else server.port
        for child in serving(self.path):
            await end(child, folder=self.path, grace=self._patience.stop, port=port)
        self._record.unlink(missing_ok=True)

    async def start(self, wanted: int | None) -> Record:
        """Start the server at the wanted port, or at another one if that is taken."""
        for _ in range(STARTS):
            port = wanted if wanted is not None and is_free(wanted) else free_port()
            server = await self.start_at(port)
            if server is not None:
                return server
        raise self.fault("other programs keep taking its port")

    async def start_at(self, port: int) -> Record | None:
        """Start the server at this port; None if the port is another program's.

        If this is cancelled, the server is there, perhaps not ready yet: others may wait for it.
        """
        if not is_free(port):
            return None
        chapter = open_chapter(self._log)
        child = self._spawn(port)
        try:
            server = Record(child, port, self._recipe.version)
            write_record(self._record, server)
            return server if await self._comes_up(server, chapter=chapter) else None
        except (LocalServerError, OSError):
            await end(child, folder=self.path, grace=self._patience.stop)
            raise

    async def _comes_up(self, server: Record, *, chapter: int) -> bool:
        """Wait until it answers; False if another program was faster to take its port."""
        if await self._ready(server, within=self._patience.start):
            return True
        said = last_lines(self._log, since=chapter)
        if self.lives(server.child):
            raise self.fault(f"it was not ready within {self._patience.start:g} s", said=said)
        if not is_free(server.port):
            return False
        raise self.fault(self._recipe.explain(said) or "it ended at once", said=said)

    def _spawn(self, port: int) -> Child:
        command = self._recipe.command(port)
        try:
            return spawn(command, folder=self.path, log=self._log)
        except FileNotFoundError as error:
            raise self.fault(f"there is no program {command[0]}") from error

    async def _ready(self, server: Record, *, within: float) -> bool:
        """Wait until the server answers; False once it has ended or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self.lives(server.child):
                    if await self._recipe.answers(server.port):
                        # Asked again: what answers may be another program, while ours is just failing.
                        return self.lives(server.child)
                    await asyncio.sleep(POLL)
        return False

    def fault(self, why: str, *, said: str = "") -> LocalServerError:
        """Make the error that says why the server cannot run, what it said, and the mend."""
        quote = f' It said: "{said}".' if said else ""
        return LocalServerError(
            f"{self._recipe.title} cannot run: {why}.{quote} To mend it, {self._recipe.mend}."
        )

    @contextlib.contextmanager
    def faults_explained(self) -> Iterator[None]:
        """Turn what the system refuses into a LocalServerError that a person can act on."""
        try:
            yield
        except OSError as error:
            raise self.fault(self._reason(error)) from error

    def _reason(self, error: OSError) -> str:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return f"the folder {self.path} cannot be written to"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"the disk of {self.path} is full"
        return f"{error.filename or self.path}: {error.strerror or error}"
