"""The stand-in server as a recipe, and processes that use it: what the tests of sharing are played with."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bot.local.server_folder import Patience, Recipe

SERVER = Path(__file__).with_name("stand_in_server.py")
ROOT = Path(__file__).parents[2]
QUICK = Patience(start=20, join=1, stop=2, turn=30, look=0.05, restarts=3)


def recipe(*, manner: str = "well", version: str = "1", starts: Path | None = None) -> Recipe:
    """Return how to run the stand-in."""

    def command(port: int) -> list[str]:
        written = [] if starts is None else ["--starts", str(starts)]
        return [sys.executable, str(SERVER), "--port", str(port), "--manner", manner, *written]

    return Recipe(
        name="stand-in",
        title="the stand-in",
        version=version,
        mend="mend it",
        command=command,
        answers=answers,
    )


async def answers(port: int) -> bool:
    """Tell whether a stand-in answers at this port."""
    return await pid_at(port) is not None


async def pid_at(port: int) -> int | None:
    """Return the pid of the stand-in that answers at this port, if one does."""
    with contextlib.suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"\n")
                return int(await reader.readline())
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    return None


USER = """
import asyncio, sys
from pathlib import Path
from {module} import {maker} as maker
{extra}

async def main():
    async with {use} as where:
        print(where, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

asyncio.run(main())
"""
STAND_IN_USER = USER.format(
    module="bot.local.shared_server",
    maker="SharedServer",
    extra="from tests.local.stand_in import QUICK, recipe",
    use="maker(Path(sys.argv[1]), recipe(starts=Path(sys.argv[2])), progress=len, patience=QUICK)",
)


def real_user(module: str, maker: str) -> str:
    """Return a program that uses a real server until it is told to leave."""
    # `len` takes a text and does nothing with it.
    use = "maker(Path(sys.argv[1]), progress=len)"
    return USER.format(module=module, maker=maker, extra="", use=use)


class User:
    """Another process that uses a server."""

    def __init__(self, program: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    async def where(self) -> str:
        """Wait until it uses the server; returns what it found."""
        assert self._process.stdout is not None
        return (await asyncio.to_thread(self._process.stdout.readline)).strip()

    async def leave(self) -> None:
        """Tell it to leave, and wait until it has."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert await asyncio.to_thread(self._process.wait, 60) == 0

    def kill(self) -> None:
        """Kill it with no chance to leave; one that has left already is no error."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@contextlib.contextmanager
def user(program: str, *arguments: str) -> Iterator[User]:
    """Start a user that is gone in the end, whatever the test does."""
    it = User(program, *arguments)
    try:
        yield it
    finally:
        it.kill()
