"""Stand-ins that cost nothing: a model that answers at once, a sink that shows nothing,
a clock that is moved by hand.

They exist so that what a measurement finds is what Omoide itself costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta

from bot.chat.model import Finished, TextPiece
from memory import Completion, PromptMessage, SystemClock, Usage

_WORDS = "That sounds like a good plan for tomorrow, and I would start with the parcel. What else?"
PIECES = tuple(f"{word} " for word in _WORDS.split())
REPLY = "".join(PIECES).strip()
NOTE = "They talked about a parcel, a pumpkin and a choir; the dentist is tomorrow at half past nine."


class InstantModel:
    """A ChatModel and Completer that streams the same short reply without waiting for anything."""

    async def stream(
        self, prompt: Sequence[PromptMessage], *, max_tokens: int
    ) -> AsyncGenerator[TextPiece | Finished, None]:
        """Stream the reply."""
        for piece in PIECES:
            yield TextPiece(piece)
        prompt_tokens = sum(len(message.content) for message in prompt) // 4
        yield Finished("instant", Usage(prompt=prompt_tokens, completion=len(PIECES)))

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        """Answer with the same note, after giving way to others once, as every real call does."""
        await asyncio.sleep(0)
        return Completion(NOTE, "instant")


class NoSink:
    """Takes a reply and shows it to nobody."""

    async def typing(self) -> None:
        """Nobody sees it."""

    async def add(self, text: str) -> None:
        """Nobody reads it."""

    async def end(self) -> None:
        """Nothing is left to do."""


class SteppingClock(SystemClock):
    """A clock that stands still until it is moved, so that what is done does not hang on how fast it goes."""

    def __init__(self) -> None:
        self._now = super().now()

    def step(self, seconds: float) -> None:
        """Let this much time go by."""
        self._now += timedelta(seconds=seconds)

    def now(self) -> datetime:
        """Return the time as it was set."""
        return self._now
