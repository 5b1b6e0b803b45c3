"""Replies first: on a model that answers little at once, work that nobody waits for gives way to a reply.

The bundled model shares one processor with everything. A summary that is being made when a person writes
is given up at once and asked for again when the reply is done; what the server had read of it stays in its
cache. Once it has given way often enough it is let through: a talk without a pause must not starve it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from bot.chat.model import ChatModel, Finished, TextPiece
from memory import Completer, Completion, PromptMessage

_OFTEN = 5


class Yielding:
    """A ChatModel and a Completer in front of the same server."""

    def __init__(self, replies: ChatModel, background: Completer) -> None:
        self._replies = replies
        self._background = background
        self._running = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._interruptible: set[asyncio.Timeout] = set()

    async def stream(
        self, prompt: Sequence[PromptMessage], *, max_tokens: int
    ) -> AsyncGenerator[TextPiece | Finished, None]:
        """Stream a reply as ChatModel says; background work stops meanwhile."""
        self._running += 1
        self._quiet.clear()
        for work in self._interruptible:
            work.reschedule(0)  # long past: it ends now
        self._interruptible.clear()
        try:
            async with aclosing(self._replies.stream(prompt, max_tokens=max_tokens)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._running -= 1
            if not self._running:
                self._quiet.set()

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        """Answer in one piece, when no reply is running. Raises CompletionFault."""
        for _ in range(_OFTEN):
            await self._quiet.wait()
            interruptible = asyncio.timeout(None)
            try:
                async with interruptible:
                    self._interruptible.add(interruptible)
                    return await self._background.complete(prompt, max_tokens=max_tokens)
            except TimeoutError:
                continue  # a reply has begun
            finally:
                self._interruptible.discard(interruptible)
        return await self._background.complete(prompt, max_tokens=max_tokens)
