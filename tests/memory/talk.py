"""A talk through Memory itself, turn by turn, with a model for summaries that can be down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from memory.conversation import size_of
from memory.core import Memory, MemorySettings, Opening
from memory.errors import CompletionFault
from memory.ports import Completion, PromptMessage, Store
from memory.stores.inmemory import InMemoryStore
from memory.tokens import Measure, TokenEstimator, measure
from memory.types import DIRECT, Turn
from memory.window import WindowPolicy
from tests.clock import FakeClock, settle
from tests.memory.process import ANN, KEY, TIMEOUT, Process

OVERHEAD = 50
ESTIMATOR = TokenEstimator()


class Notes:
    """A model that writes notes; `read` is what it was shown when it did, `asked` counts all calls."""

    def __init__(self, note: str = "A note of what was said.") -> None:
        self.note = note
        self.down = False
        self.asked = 0
        self.read = ""

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        self.asked += 1
        await asyncio.sleep(0)
        if self.down:
            raise CompletionFault("down")
        self.read += prompt[-1].content
        return Completion(self.note, "notes")


class Talk:
    """Ann's talk in her direct chat; takes down what was said and what was shown."""

    def __init__(self, *, store: Store | None = None, model: Notes | None = None, **settings: Any) -> None:
        self.base = InMemoryStore()
        self.store = store or self.base
        self.clock = FakeClock()
        self.model = model or Notes()
        self.settings = MemorySettings(zone=ZoneInfo("UTC"), session_timeout=TIMEOUT, **settings)
        self.memory = Memory(self.store, self.model, self.clock, settings=self.settings, owner="talk")
        self.said: list[Turn] = []
        self.opening: Opening | None = None

    async def begin(self, human: str) -> Opening:
        self.opening = await self.memory.begin(
            ANN, DIRECT, human=human, at=self.clock.now(), overhead=OVERHEAD
        )
        return self.opening

    async def finish(self, reply: str = "yes") -> Turn:
        assert self.opening is not None
        turn = await self.memory.finish(self.opening, reply=reply)
        self.said.append(turn)
        await settle()
        await self.clock.advance(1.5)
        return turn

    async def say(self, human: str, reply: str = "yes") -> Opening:
        opening = await self.begin(human)
        await self.finish(reply)
        return opening

    def gone(self, opening: Opening) -> list[Turn]:
        """Return what has left the window."""
        shown = {turn.turn_id for turn in opening.turns}
        past = (turn for turn in self.said if turn.turn_id < opening.turn_id)
        return [turn for turn in past if turn.turn_id not in shown]

    def unread(self, opening: Opening) -> list[str]:
        """Return what has left the window (up to its first semicolon) and no note was made of."""
        marks = ["".join(turn.human.partition(";")[:2]) for turn in self.gone(opening)]
        return [mark for mark in marks if mark not in self.model.read]

    async def reloaded(self) -> tuple[tuple[Turn, ...], str]:
        """Return what a process that has just started would show."""
        fresh = Process(self.store, self.clock)
        conversation = await fresh.sessions.begin(KEY)
        fresh.sessions.abandon(conversation)
        await fresh.stop()
        running = conversation.session.running
        return conversation.turns, running.text if running else ""


def size(opening: Opening) -> Measure:
    """Measure the window and the message that came."""
    total = size_of(opening.human)
    for turn in opening.turns:
        total += size_of(turn.human, turn.reply)
    return total


def check_limit(opening: Opening, policy: WindowPolicy, *, context: int) -> None:
    """The window is within its limit, and the prompt within the model's context, or nothing could go."""
    if not opening.turns:
        return
    total = size(opening)
    if policy.mode == "messages":
        assert total.messages <= policy.max_messages
    if policy.mode == "tokens":
        assert ESTIMATOR.tokens(total) <= policy.max_tokens + 1
    running = measure(opening.running, messages=1) if opening.running else Measure()
    assert OVERHEAD + ESTIMATOR.tokens(total + running) <= context + 2
