"""The terminal without a person before it: one line in, one line out, for scripts.

The next line is taken when the one before has been answered, so a script sees a conversation.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Sequence
from typing import TextIO

from bot.platforms.base import Choice
from bot.platforms.terminal import Receive, from_line, numbered, picked, visible
from memory import Clock


class PipeSink:
    """Collects the whole answer to one line."""

    def __init__(self) -> None:
        self._reply: list[str] = []
        self._parts: list[str] = []
        self.choices: tuple[Choice, ...] = ()

    @property
    def line(self) -> str:
        """The answer on one line."""
        return " ".join(visible("\n".join(["".join(self._reply), *self._parts])).split())

    async def typing(self) -> None:
        """Nobody sees it."""

    async def add(self, text: str) -> None:
        """Keep some more of the reply."""
        self._reply.append(text)

    async def end(self) -> None:
        """Nothing is left to do."""

    async def say(self, text: str, *, choices: Sequence[Choice] = (), private: bool = False) -> None:
        """Keep a message of its own."""
        self._parts.append(numbered(text, choices))
        self.choices = tuple(choices)


class PipeTerminal:
    """Reads lines to the end of its input, and writes a line for each that says something."""

    def __init__(self, reader: TextIO, writer: TextIO, clock: Clock, *, user: str, locale: str) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._user = user
        self._locale = locale

    async def run(self, receive: Receive) -> None:
        """Converse until the input ends, or nobody reads the output any more."""
        choices: tuple[Choice, ...] = ()
        async for line in lines(self._reader):
            message = from_line(line, user=self._user, at=self._clock.now(), locale=self._locale)
            if not message.text:
                continue
            sink = PipeSink()
            await receive(message, sink, picked=picked(message.text, choices))
            choices = sink.choices
            try:
                print(sink.line, file=self._writer, flush=True)
            except BrokenPipeError:
                return


async def lines(reader: TextIO) -> AsyncGenerator[str, None]:
    """Read lines without holding up the event loop.

    By a thread that nobody waits for: a blocked read of standard input cannot be cancelled, and must not
    keep the program from ending. It reads one line ahead at most.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[str | None] = asyncio.Queue()
    wanted = threading.Semaphore(1)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the program is ending
            with contextlib.suppress(OSError, ValueError):  # input that fails has ended: a terminal is gone
                for line in reader:
                    wanted.acquire()
                    loop.call_soon_threadsafe(arrived.put_nowait, line)
            loop.call_soon_threadsafe(arrived.put_nowait, None)

    threading.Thread(target=read, name="terminal-input", daemon=True).start()
    while (line := await arrived.get()) is not None:
        yield line
        wanted.release()
