"""A reply that is being read and can be stopped from elsewhere.

The model's stream runs in a task of its own, so that `stop` ends it at once, also while the server is
silent; the reader just sees the reply end there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Self

from bot.chat.model import ChatModel, Finished, TextPiece
from bot.errors import ModelBroken, ModelError
from memory import PromptMessage, TaskSet


class Reading:
    """One reply of a model, as an async context manager; iterate over `pieces` inside."""

    def __init__(self, model: ChatModel, prompt: Sequence[PromptMessage], *, max_tokens: int) -> None:
        self._model = model
        self._prompt = prompt
        self._max_tokens = max_tokens
        self._arrived: asyncio.Queue[TextPiece | Finished | ModelError | None] = asyncio.Queue()
        self._tasks = TaskSet()
        self.stopped = False

    async def __aenter__(self) -> Self:
        self._tasks.spawn(self._pump(), name="model-stream")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.aclose()

    async def _pump(self) -> None:
        try:
            async with aclosing(self._model.stream(self._prompt, max_tokens=self._max_tokens)) as pieces:
                async for piece in pieces:
                    self._arrived.put_nowait(piece)
        except ModelError as error:
            self._arrived.put_nowait(error)
        finally:
            self._arrived.put_nowait(None)

    def stop(self) -> None:
        """End the reply here; what has arrived stays."""
        self.stopped = True
        self._arrived.put_nowait(None)

    async def pieces(self) -> AsyncIterator[TextPiece | Finished]:
        """Go through what arrives, to the end or until stopped. Raises a ModelError at any point."""
        ended = False
        while not self.stopped:
            item = await self._arrived.get()
            if self.stopped:
                return
            if isinstance(item, ModelError):
                raise item
            if item is None:
                break
            ended = isinstance(item, Finished)
            yield item
        if not (ended or self.stopped):
            raise ModelBroken("the reply ended without its end")
