"""A model asked again when the policy table says that another try may help.

It stands between the engine and the model, itself a ChatModel. Once a piece of text has been passed on it
never asks again: what the person has read cannot be unsaid. All waiting is bounded.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from bot.chat.model import ChatModel, Finished, TextPiece, read_whole
from bot.chat.policy import row_for
from bot.errors import ModelError, RateLimited
from memory import Clock, Completion, PromptMessage

_log = logging.getLogger(__name__)


class Patience:
    """A ChatModel and Completer around another ChatModel."""

    def __init__(
        self, model: ChatModel, clock: Clock, *, jitter: Callable[[], float], longest: float = 30.0
    ) -> None:
        """Wrap `model`; `jitter` gives numbers in [0, 1), `longest` bounds the waiting, in seconds."""
        self._model = model
        self._clock = clock
        self._jitter = jitter
        self._longest = longest

    async def stream(
        self, prompt: Sequence[PromptMessage], *, max_tokens: int
    ) -> AsyncGenerator[TextPiece | Finished, None]:
        """Stream the reply. Raises the last ModelError when no further try is due."""
        tried, waited = 0, 0.0
        while True:
            shown = False
            try:
                async with aclosing(self._model.stream(prompt, max_tokens=max_tokens)) as pieces:
                    async for piece in pieces:
                        shown = True
                        yield piece
                return
            except ModelError as error:
                pause = None if shown else self._pause(error, tried)
                if pause is None or waited + pause > self._longest:
                    raise
                _log.info("%s: asking again in %.1f s", type(error).__name__, pause)
            await self._clock.sleep(pause)
            tried, waited = tried + 1, waited + pause

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        """Answer in one piece. Raises CompletionFault with the last ModelError as its cause."""
        return await read_whole(self.stream(prompt, max_tokens=max_tokens))

    def _pause(self, error: ModelError, tried: int) -> float | None:
        row = row_for(error)
        if tried >= row.tries:
            return None
        told = error.retry_after if isinstance(error, RateLimited) else None
        return row.wait.seconds(tried, told=told, jitter=self._jitter())
