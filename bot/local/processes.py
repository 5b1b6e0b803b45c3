"""Server processes that outlive the one that started them, and how they are known again.

Each carries a mark in its environment: a random token and the folder it serves. A pid by itself proves
nothing, since pids are used again, and creation times shift when the clock is set; the mark proves that
a process is the one that was started. Nothing is signalled that does not carry it.
This is the only file that imports psutil.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

MARK = "OMOIDE_LOCAL_SERVER"
KILL_WAIT = 5.0
KNOCK_AFTER = 0.1
POLL = 0.05

# Tokens and keys of the bot are no business of its servers, so they get these and nothing else.
PASSED_ON = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV", "SYSTEMROOT"}
)
PASSED_ON_PREFIXES = ("LC_", "LD_", "DYLD_", "PYTHON", "OMP_")


@dataclass(frozen=True, slots=True)
class Child:
    """A process that was started here or by another user of the same folder."""

    pid: int
    token: str


def spawn(argv: Sequence[str], *, folder: Path, log: Path) -> Child:
    """Start a server that serves `folder`, in a session of its own so that Ctrl-C does not reach it.

    Raises OSError if it cannot be started.
    """
    token = secrets.token_hex(8)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(  # noqa: S603 - the command is made by a Recipe, from no one's input
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**passed_on(os.environ), MARK: f"{token}@{folder}"},
            umask=0o077,
            start_new_session=True,
        )
    finally:
        os.close(output)
    # It may live on when this process ends, so Popen has nothing to warn about when it is let go.
    process.returncode = 0
    return Child(process.pid, token)


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a server is given."""
    return {
        name: value
        for name, value in environment.items()
        if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }


class State(enum.Enum):
    """What can be told about a process."""

    OURS = enum.auto()
    UNCLEAR = enum.auto()
    """Between being made and being named, or on its way out: it may still hold ports and files."""
    GONE = enum.auto()
    """There is none of this pid that was started here."""


def lives(child: Child, *, folder: Path) -> bool:
    """Tell whether this very process still runs, or may."""
    return _state(child, folder=folder) is not State.GONE


def _state(child: Child, *, folder: Path) -> State:
    try:
        process = psutil.Process(child.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return _state_of_dead(process)
        environment = process.environ()
    except (psutil.Error, OSError):
        return State.GONE
    if not environment:
        return State.UNCLEAR
    return State.OURS if environment.get(MARK) == f"{child.token}@{folder}" else State.GONE


def _state_of_dead(process: psutil.Process) -> State:
    if process.num_threads() > 1:
        return State.UNCLEAR
    with contextlib.suppress(psutil.Error):
        # Takes it off the process table if it is ours to take.
        process.wait(timeout=0)
    return State.GONE


def serving(folder: Path) -> list[Child]:
    """Find every living process that was started to serve this folder, also one that nobody wrote down."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            token, _, served = process.environ().get(MARK, "").partition("@")
            if served == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(Child(process.pid, token))
    return found


async def end(child: Child, *, folder: Path, grace: float, port: int | None = None) -> None:
    """Ask the process to end, wait `grace` seconds, then kill it; returns when it is gone.

    A server may sleep until somebody connects, and only then see that it was asked: given its port,
    somebody does.
    """
    for request, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, KILL_WAIT)):
        if _state(child, folder=folder) is State.OURS:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, request)
        if port is not None and not await until(lambda: not lives(child, folder=folder), within=KNOCK_AFTER):
            await _knock(port)
        if await until(lambda: not lives(child, folder=folder), within=patience):
            return


async def _knock(port: int) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(KNOCK_AFTER):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await writer.wait_closed()


async def until(met: Callable[[], bool], *, within: float) -> bool:
    """Ask again and again until the condition is met; False if it is not within so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            while True:
                if met():
                    return True
                await asyncio.sleep(POLL)
    return False


def usable_cores() -> int:
    """Return how many cores this process may really use, at least 1; two threads of a core count once."""
    allowed = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))
