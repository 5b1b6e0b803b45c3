"""A whole companion for tests: real memory, engine, commands and dispatch around a scripted model.

Nothing in it is patched: the store is the reference store (or one that is given), the clock is in the
test's hand, and people are given what a platform would show them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo

from bot.chat.engine import Engine
from bot.chat.model import ChatModel
from bot.chat.patience import Patience
from bot.chat.prompt import MemoryRole, Persona
from bot.dispatch import Dispatcher
from bot.message import Author, IncomingMessage, Platform
from bot.platforms.base import Choice
from memory import Memory, MemorySettings, PromptMessage, Store
from memory.stores.inmemory import InMemoryStore
from tests.clock import FakeClock, settle
from tests.fakes import ScriptedModel

PERSONA = Persona("Omoide", "You are {char} and talk with {user}.")
SETTINGS = MemorySettings(zone=ZoneInfo("Europe/Berlin"), session_timeout=1800, grace=1)


@dataclass
class Shown:
    """What one person was shown in answer to one message; a Sink."""

    reply: str = ""
    pieces: list[str] = field(default_factory=list)
    ended: bool = False
    typed: bool = False
    said: list[str] = field(default_factory=list)
    choices: tuple[Choice, ...] = ()
    private: bool = False
    done: asyncio.Future[None] | None = None

    async def typing(self) -> None:
        self.typed = True

    async def add(self, text: str) -> None:
        self.pieces.append(text)
        self.reply += text

    async def end(self) -> None:
        self.ended = True

    async def say(self, text: str, *, choices: Sequence[Choice] = (), private: bool = False) -> None:
        self.said.append(text)
        self.choices = tuple(choices)
        self.private = private

    @property
    def text(self) -> str:
        return "\n".join(self.said)


@dataclass
class Someone:
    """A person who talks with the companion."""

    companion: Companion
    account: str
    name: str = ""
    locale: str = "en"
    chat: str = ""  # a group; "": a direct chat

    def sends(self, text: str, *, picked: str | None = None) -> Shown:
        """Send a message and do not wait."""
        shown = Shown()
        shown.done = self.companion.dispatcher.receive(self.message(text), shown, picked=picked)
        return shown

    def message(self, text: str) -> IncomingMessage:
        """Return a message of theirs, as a platform would hand it over."""
        return IncomingMessage(
            platform=Platform.TERMINAL,
            message_id="",
            chat=self.chat or self.account,
            author=Author(self.account, self.name or self.account, self.locale),
            text=text,
            at=self.companion.clock.now(),
            direct=not self.chat,
        )

    async def says(self, text: str) -> Shown:
        """Send a message, and let everything that follows from it happen."""
        shown = self.sends(text)
        await settle()
        await self.companion.clock.advance(1)
        return shown

    async def waits_for(self, text: str) -> Shown:
        """Send a message and wait for its answer in real time: the model is behind a socket."""
        shown = self.sends(text)
        assert shown.done is not None
        await asyncio.wait_for(shown.done, 30)
        return shown

    async def picks(self, shown: Shown, number: int) -> Shown:
        """Pick one of the choices of an answer, counted from 1."""
        answer = self.sends("", picked=shown.choices[number - 1].token)
        await settle()
        return answer


@dataclass
class Companion:
    """The companion, and what a test holds of it."""

    memory: Memory
    engine: Engine
    dispatcher: Dispatcher
    clock: FakeClock
    model: ScriptedModel
    store: Store

    def someone(self, account: str = "mei", **more: str) -> Someone:
        return Someone(self, account, **more)

    @property
    def prompt(self) -> tuple[PromptMessage, ...]:
        """The last prompt of a talk (summaries are asked for with another beginning)."""
        return next(
            prompt for prompt in reversed(self.model.prompts) if "You are Omoide" in prompt[0].content
        )


class Hurried(FakeClock):
    """A clock for which every wait is over at once."""

    async def sleep(self, seconds: float) -> None:
        self.step(seconds)
        await asyncio.sleep(0)


def whole(prompt: Sequence[PromptMessage]) -> str:
    """Write a prompt down as one text."""
    return "\n".join(f"<{message.role}> {message.content}" for message in prompt)


@asynccontextmanager
async def companion(
    *replies: object,
    store: Store | None = None,
    clock: FakeClock | None = None,
    settings: MemorySettings = SETTINGS,
    memory_role: MemoryRole = "system",
    debounce: float = 0.0,
    model: ChatModel | None = None,
    **changes: object,
) -> AsyncIterator[Companion]:
    """Run a companion whose model says these things; `changes` are other memory settings."""
    store = store or InMemoryStore()
    clock = clock or FakeClock()
    scripted = ScriptedModel(*replies)  # type: ignore[arg-type] # what a script may hold is checked there
    # A model behind a real socket: nobody moves the clock while the test waits for it.
    patience_clock = Hurried() if model else clock
    patient = Patience(model or scripted, patience_clock, jitter=lambda: 0.0)
    settings = replace(settings, **changes)  # type: ignore[arg-type] # a wrong name fails at once
    async with Memory(store, patient, clock, settings=settings, owner="test") as memory:
        engine = Engine(memory, patient, PERSONA, max_tokens=100, memory_role=memory_role)
        dispatcher = Dispatcher(engine, memory, clock, zone=settings.zone, debounce=debounce)
        yield Companion(memory, engine, dispatcher, clock, scripted, store)
        await dispatcher.aclose(grace=0.1)
