"""One server process per data folder, shared by every process that uses the folder.

The first user starts it, later ones join it, the last one leaving stops it. The rule that makes this
survive kill -9: who uses the server is a lock that the kernel drops with its holder, and everything is
decided under a second lock, anew, from what is really there.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from types import TracebackType

from bot.errors import LocalServerError
from bot.local.file_lock import FileLock
from bot.local.processes import until
from bot.local.server_folder import Patience, Recipe, ServerFolder, Tell
from bot.local.server_record import Record

log = logging.getLogger(__name__)

USERS_WAIT = 5.0


class SharedServer:
    """The use of one shared server, from entering to leaving; entering gives its port on 127.0.0.1.

    `progress` is told what a person waits for. Entering raises LocalServerError; leaving raises nothing of
    its own. While in use, the server is started again at the same port when it dies.
    """

    def __init__(
        self, data_dir: Path, recipe: Recipe, *, progress: Tell, patience: Patience | None = None
    ) -> None:
        self._recipe = recipe
        self._progress = progress
        self._patience = patience or Patience()
        self._folder = ServerFolder(data_dir, recipe, patience=self._patience)
        self._users = FileLock(self._folder.path / "users")
        self._tasks = asyncio.TaskGroup()
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> int:
        with self._folder.faults_explained():
            self._folder.make()
            async with self._folder.deciding(tell=self._progress):
                try:
                    server = await self._join_or_start()
                except BaseException:
                    await self._leave()
                    raise
        await self._tasks.__aenter__()
        self._watcher = self._tasks.create_task(self._watch(server), name=f"watch {self._recipe.name}")
        return server.port

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._watcher is not None:
                self._watcher.cancel()
            # What went wrong in the body is not the task group's to wrap.
            await self._tasks.__aexit__(None, None, None)
            async with self._folder.deciding(tell=log.info):
                await self._leave()
        except (LocalServerError, OSError) as fault:
            log.warning("%s is left running: %s", self._recipe.title, fault)
        finally:
            self._users.drop()

    async def _join_or_start(self) -> Record:
        alone = self._users.take()
        if not await until(lambda: self._users.take(shared=True), within=USERS_WAIT):
            raise self._folder.fault("another process is stopping it and does not finish")
        server = self._folder.recorded()
        if server is not None and await self._folder.joinable(server, alone=alone, tell=self._progress):
            return server
        await self._folder.end_all()
        self._progress(f"starting {self._recipe.title}")
        # Others who still use it know it at this port.
        return await self._folder.start(None if server is None else server.port)

    async def _leave(self) -> None:
        try:
            if self._users.take():
                await self._folder.end_all()
        finally:
            # Before the next one decides: it must find either users or none.
            self._users.drop()

    async def _watch(self, server: Record) -> None:
        """Start the server again when it dies, at the same port, so that connections come back."""
        now = asyncio.get_running_loop().time
        deaths, last = 0, now()
        while True:
            await asyncio.sleep(self._patience.look)
            if self._folder.lives(server.child):
                continue
            deaths = 1 if now() - last > self._patience.calm else deaths + 1
            last = now()
            if deaths > self._patience.restarts:
                log.error(
                    "%s keeps ending and is left so. To mend it, %s.", self._recipe.title, self._recipe.mend
                )
                return
            log.warning("%s has ended by itself; starting it again", self._recipe.title)
            try:
                server = await self._revive(server)
            except (LocalServerError, OSError) as fault:
                log.warning("it is not back yet: %s", fault)
                await asyncio.sleep(self._patience.look * 2**deaths)

    async def _revive(self, dead: Record) -> Record:
        async with self._folder.deciding(tell=log.info):
            there = self._folder.recorded()
            if there is not None and self._folder.lives(there.child):
                # Another user was faster, or one who came just now found its port taken.
                if there.port == dead.port:
                    return there
                raise self._folder.fault(f"it now runs at port {there.port}; start this process again")
            await self._folder.end_all()
            server = await self._folder.start_at(dead.port)
            if server is None:
                raise self._folder.fault(f"another program has taken its port {dead.port}")
            return server
