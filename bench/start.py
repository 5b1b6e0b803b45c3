"""Cold start: how long a command takes to be there, and a conversation to its prompt and its first reply.

With everything installed, and a fresh data folder each time: once with the servers to be started, once with
servers that another process keeps running.
"""

from __future__ import annotations

import asyncio
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from bench.figures import Spread, ratios
from bench.table import Table
from bot.local.database import EmbeddedDatabase
from bot.local.model import LocalModel

_QUICK_RUNS = 15
_SLOW_RUNS = 5
_USER = "visitor"
_PROMPT = f"{_USER} › ".encode()
_PATIENCE = 120.0
_LINE = "Hello! Who are you?\n"


def omoide() -> tuple[str, ...]:
    """Return the command: the installed one beside this Python, else the same by module."""
    installed = Path(sys.executable).with_name("omoide")
    return (str(installed),) if installed.exists() else (sys.executable, "-m", "bot")


def environment(data_dir: Path) -> dict[str, str]:
    """Return this environment without settings of ours, and with this data folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMOIDE_", "OPENAI_"))}
    return {**kept, "OMOIDE_DATA_DIR": str(data_dir), "TERM": "xterm"}


def until_end(command: Sequence[str], env: Mapping[str, str]) -> float:
    """Return the seconds until the command has ended. Raises CalledProcessError if it fails."""
    began = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def until_reply(env: Mapping[str, str]) -> float:
    """Return the seconds until `omoide chat`, given a line through a pipe, has answered with one."""
    began = time.perf_counter()
    command = [*omoide(), "chat", "--user", _USER]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as chat:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write(_LINE)
        chat.stdin.flush()
        reply = chat.stdout.readline()
        took = time.perf_counter() - began
        chat.stdin.close()
        chat.wait(_PATIENCE)
    if not reply.strip():
        raise RuntimeError("`omoide chat` did not answer")
    return took


def until_prompt(env: Mapping[str, str]) -> float:
    """Return the seconds until `omoide chat` shows its prompt on a terminal."""
    ours, theirs = pty.openpty()
    began = time.perf_counter()
    command = [*omoide(), "chat", "--user", _USER]
    chat = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        _read_until(ours, _PROMPT)
        took = time.perf_counter() - began
        os.write(ours, b"\x04")  # end of input
        _drain(ours)
        chat.wait(_PATIENCE)
    finally:
        if chat.poll() is None:
            chat.kill()
            chat.wait()
        os.close(ours)
    return took


def _read_until(terminal: int, wanted: bytes) -> None:
    seen, end = b"", time.monotonic() + _PATIENCE
    while wanted not in seen:
        ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
        if not ready:
            raise RuntimeError("`omoide chat` did not show its prompt")
        seen = seen[-len(wanted) :] + os.read(terminal, 4096)


def _drain(terminal: int) -> None:
    """Read what is still written until the other side is closed: a full terminal would hold it up."""
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        return


async def measure() -> list[Table]:
    """Measure the commands, then the conversation."""
    return [quick(), await conversation()]


def quick() -> Table:
    """Measure what needs no server, taking turns."""
    sides: dict[str, tuple[str, ...]] = {
        "python -c pass": (sys.executable, "-c", "pass"),
        "omoide chat --help": (*omoide(), "chat", "--help"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory(prefix="omoide-bench-") as folder:
        env = environment(Path(folder))
        for _ in range(_QUICK_RUNS):
            for name, command in sides.items():
                seconds[name].append(until_end(command, env))
    bare = seconds["python -c pass"]
    rows = tuple(
        (name, Spread.of(values).text(1000, 0), Spread.of(ratios(values, bare)).text(digits=1) + " x")
        for name, values in seconds.items()
    )
    notes = (f"{_QUICK_RUNS} runs of each in turn, median (quartiles).",)
    return Table("A command without servers", ("command", "ms", "of bare Python"), rows, notes)


async def conversation() -> Table:
    """Measure a conversation to its prompt and to its first reply, without and with servers running."""
    ways: dict[str, Callable[[Mapping[str, str]], float]] = {
        "to the prompt (terminal)": until_prompt,
        "to the first reply (pipe)": until_reply,
    }
    fresh: dict[str, list[float]] = {name: [] for name in ways}
    joined: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_SLOW_RUNS):
        for name, way in ways.items():
            with tempfile.TemporaryDirectory(prefix="omoide-bench-") as folder:
                fresh[name].append(await asyncio.to_thread(way, environment(Path(folder))))
    async with AsyncExitStack() as stack:
        shared = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omoide-bench-")))
        await stack.enter_async_context(EmbeddedDatabase(shared, progress=lambda _: None))
        await stack.enter_async_context(LocalModel(shared, progress=lambda _: None))
        for _ in range(_SLOW_RUNS):
            for name, way in ways.items():
                joined[name].append(await asyncio.to_thread(way, environment(shared)))
    rows = tuple((name, Spread.of(fresh[name]).text(), Spread.of(joined[name]).text()) for name in ways)
    notes = (
        f"{_SLOW_RUNS} runs of each in turn, median (quartiles); local model and embedded database.",
        f"The command: {'omoide' if len(omoide()) == 1 else 'python -m bot'} chat.",
    )
    return Table("omoide chat", ("", "starting servers, s", "servers running, s"), rows, notes)
