"""One turn from the message to the stored reply: the way between a person, the model and memory.

Whatever happens, the person gets either a reply or one kind sentence, and their message is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.chat.model import ChatModel, TextPiece
from bot.chat.policy import Excuse, row_for
from bot.chat.prompt import MemoryRole, Persona, assemble
from bot.chat.reading import Reading
from bot.chat.stamps import StampFilter
from bot.errors import ModelError, ModelSilent, PromptTooLong
from memory import Audience, Memory, MemoryId, Opening, Outcome, PromptMessage, Usage

log = logging.getLogger(__name__)

Key = tuple[MemoryId, Audience]

_SLACK = 64  # tokens that templates put around messages


class ReplySink(Protocol):
    """Where the pieces of a reply go."""

    async def typing(self) -> None:
        """Show that an answer is on its way."""
        ...

    async def add(self, text: str) -> None:
        """Show some more of the reply."""
        ...

    async def end(self) -> None:
        """The reply is complete as far as it came."""
        ...


@dataclass(frozen=True, slots=True)
class Said:
    """What came of a turn: how it ended, and the excuse that is due to the person, if any."""

    outcome: Outcome
    excuse: Excuse | None = None


@dataclass(slots=True)
class _Draft:
    """A reply as it grows, and what is known about it so far."""

    texts: list[str] = field(default_factory=list)
    outcome: Outcome = Outcome.ANSWERED
    excuse: Excuse | None = None
    model: str = ""
    usage: Usage | None = None
    began: float = field(default_factory=time.perf_counter)
    first: float | None = None
    reading: Reading | None = None
    stopped: bool = False

    @property
    def reply(self) -> str:
        return "".join(self.texts).strip()

    def stop(self) -> None:
        """End the reply here, also before the model is asked or between two tries."""
        self.stopped = True
        if self.reading is not None:
            self.reading.stop()


class Engine:
    """Answers people; one turn at a time for a memory id and an audience."""

    def __init__(
        self, memory: Memory, model: ChatModel, persona: Persona, *, max_tokens: int, memory_role: MemoryRole
    ) -> None:
        """Take the memory, the model, and who the companion is; `max_tokens` bounds a reply."""
        self._memory = memory
        self._model = model
        self._persona = persona
        self._max_tokens = max_tokens
        self._memory_role: MemoryRole = memory_role
        self._running: dict[Key, _Draft] = {}

    def stop(self, key: Key) -> bool:
        """Stop the reply that is running for this conversation; False if there is none."""
        draft = self._running.get(key)
        if draft is None:
            return False
        draft.stop()
        return True

    async def answer(self, key: Key, text: str, *, name: str, at: datetime, sink: ReplySink) -> Said:
        """Answer a message: stream the reply into the sink and store the turn."""
        draft = self._running[key] = _Draft()
        try:
            persona = self._persona.text(name)
            opening = await self._begin(key, text, persona, at=at)
            await self._attempt(persona, opening, draft, sink)
        finally:
            del self._running[key]
        replied = time.perf_counter()
        await asyncio.gather(sink.end(), self._store(opening, draft))
        _log_turn(opening, draft, replied)
        return Said(draft.outcome, draft.excuse)

    async def keep(self, key: Key, text: str, *, at: datetime) -> None:
        """Store a message that nobody will answer any more; the next prompt shows it."""
        opening = await self._memory.begin(*key, human=text, at=at, overhead=self._max_tokens + _SLACK)
        await self._store(opening, _Draft(outcome=Outcome.FAILED))

    async def _begin(self, key: Key, text: str, persona: str, *, at: datetime) -> Opening:
        overhead = self._memory.count(persona) + self._max_tokens + _SLACK
        try:
            return await self._memory.begin(*key, human=text, at=at, overhead=overhead)
        except asyncio.CancelledError:
            await self.keep(key, text, at=at)
            raise

    async def _attempt(self, persona: str, opening: Opening, draft: _Draft, sink: ReplySink) -> None:
        """Get a reply, or what excuses that there is none or half of one."""
        try:
            await sink.typing()
            draft.began = time.perf_counter()
            await self._reply(persona, opening, draft, sink)
        except ModelError as error:
            self._excuse(error, draft)
        except BaseException:
            # Stopped from outside (shutdown): what was said is kept, then the cancellation goes on.
            draft.outcome = Outcome.INTERRUPTED if draft.reply else Outcome.FAILED
            await self._store(opening, draft)
            raise

    async def _reply(self, persona: str, opening: Opening, draft: _Draft, sink: ReplySink) -> None:
        """Ask the model, with less of the past each time it says that the prompt is too long."""
        shrinks = 0
        while True:
            prompt = assemble(persona, opening, memory_role=self._memory_role)
            try:
                await self._read(prompt, draft, sink)
            except PromptTooLong as error:
                if error.counted is not None:
                    self._memory.learn(prompt, counted=error.counted)
                if draft.texts or shrinks >= row_for(error).shrinks:
                    raise
                smaller = await self._memory.shrink(opening, limit=error.limit)
                if smaller is None:
                    raise
                opening, shrinks = smaller, shrinks + 1
            else:
                if draft.usage is not None:
                    self._memory.learn(prompt, counted=draft.usage.prompt)
                return

    async def _read(self, prompt: tuple[PromptMessage, ...], draft: _Draft, sink: ReplySink) -> None:
        if not draft.stopped:
            async with Reading(self._model, prompt, max_tokens=self._max_tokens) as draft.reading:
                await self._take(draft.reading, draft, sink)
        if draft.stopped:
            draft.outcome = Outcome.STOPPED

    async def _take(self, reading: Reading, draft: _Draft, sink: ReplySink) -> None:
        stamps = StampFilter()
        async for piece in reading.pieces():
            if isinstance(piece, TextPiece):
                await self._show(stamps.feed(piece.text), draft, sink)
                continue
            draft.model, draft.usage = piece.model, piece.usage
            await self._show(stamps.flush(), draft, sink)
            if not draft.reply:
                raise ModelSilent("the reply is nothing but the time")
            await self._show("…" if piece.cut else "", draft, sink)
        await self._show(stamps.flush(), draft, sink)

    async def _show(self, text: str, draft: _Draft, sink: ReplySink) -> None:
        if text:
            if draft.first is None:
                draft.first = time.perf_counter()
            draft.texts.append(text)
            await sink.add(text)

    def _excuse(self, error: ModelError, draft: _Draft) -> None:
        row = row_for(error)
        log.log(row.level, "the model failed (%s): %s", type(error).__name__, error)
        draft.outcome = row.shown if draft.reply else row.unshown
        draft.excuse = Excuse.INTERRUPTED if draft.reply else row.excuse

    async def _store(self, opening: Opening, draft: _Draft) -> None:
        await self._memory.finish(
            opening, reply=draft.reply, outcome=draft.outcome, model=draft.model, usage=draft.usage
        )


def hashed(memory_id: MemoryId) -> str:
    """Return what stands for a person in the log."""
    return hashlib.blake2s(memory_id.encode(), digest_size=6).hexdigest()


def _log_turn(opening: Opening, draft: _Draft, replied: float) -> None:
    """Log one line for the turn, without a word of it."""
    usage = draft.usage or Usage(prompt=0, completion=0)
    log.info(
        "turn person=%s outcome=%s window=%d first_ms=%d reply_ms=%d store_ms=%d "
        "prompt=%d cached=%d completion=%d",
        hashed(opening.memory_id),
        draft.outcome.value,
        len(opening.turns),
        ((draft.first or replied) - draft.began) * 1000,
        (replied - draft.began) * 1000,
        (time.perf_counter() - replied) * 1000,
        usage.prompt,
        usage.cached,
        usage.completion,
    )
