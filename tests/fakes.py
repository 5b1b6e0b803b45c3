"""A model that says what a test wrote down for it, standing in for the real one.

It keeps the contract of ChatModel and Completer to the letter, records every prompt, and never waits for
anything but what the test holds back itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field

from bot.chat.model import Finished, TextPiece, read_whole
from bot.errors import ModelError
from memory import Completion, PromptMessage, Usage


@dataclass(frozen=True, slots=True)
class Cut:
    """A reply that runs into max_tokens."""

    text: str


@dataclass(slots=True)
class Held:
    """A reply that says `before`, then stays silent until the test calls `release`.

    `reached` is set once it holds; `closed` once its reader has gone away without waiting for the rest.
    """

    before: str = ""
    after: str = "and so on."
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let the reply go on."""
        self._released.set()

    async def wait(self) -> None:
        """Hold, from the model's side."""
        self.reached.set()
        await self._released.wait()


Scripted = str | ModelError | tuple[Iterable[str], ModelError] | Cut | Held
"""A text, an error instead of one, pieces and then an error, a cut text, or one held back."""


def in_pieces(text: str, count: int = 3) -> tuple[str, ...]:
    """Cut a text into at most `count` pieces of about the same length, none of them empty."""
    size = max(-(-len(text) // count), 1)
    return tuple(text[start : start + size] for start in range(0, len(text), size))


def count_tokens(text: str) -> int:
    """Count the way the fakes do: a word is a token."""
    return len(text.split())


class ScriptedModel:
    """A ChatModel and Completer that goes through its script, then gives `default` for ever."""

    def __init__(
        self, *replies: Scripted, default: str = "I am listening.", model: str = "scripted", cached: int = 0
    ) -> None:
        self._script: deque[Scripted] = deque(replies)
        self._default = default
        self._model = model
        self._cached = cached
        self.prompts: list[tuple[PromptMessage, ...]] = []
        """Every prompt that was asked, by stream or complete, in order."""

    def enqueue(self, *replies: Scripted) -> None:
        """Add to the end of the script."""
        self._script.extend(replies)

    @property
    def left(self) -> int:
        """How much of the script has not been played."""
        return len(self._script)

    async def stream(
        self, prompt: Sequence[PromptMessage], *, max_tokens: int
    ) -> AsyncGenerator[TextPiece | Finished, None]:
        """Play the next item of the script."""
        self.prompts.append(tuple(prompt))
        item = self._script.popleft() if self._script else self._default
        said: list[str] = []
        ended = False
        try:
            async for text in self._texts(item):
                said.append(text)
                yield TextPiece(text)
            ended = True
        finally:
            if isinstance(item, Held) and not ended:
                item.closed.set()
        usage = Usage(
            prompt=sum(count_tokens(message.content) for message in prompt),
            completion=count_tokens("".join(said)),
            cached=self._cached,
        )
        yield Finished(self._model, usage, cut=isinstance(item, Cut))

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        """Play the next item of the script as one whole answer."""
        return await read_whole(self.stream(prompt, max_tokens=max_tokens))

    @staticmethod
    async def _texts(item: Scripted) -> AsyncGenerator[str, None]:
        match item:
            case str():
                texts = in_pieces(item)
            case Cut():
                texts = in_pieces(item.text)
            case Held():
                texts = in_pieces(item.before)
            case (pieces, _):
                texts = tuple(pieces)
            case ModelError():
                texts = ()
        for text in texts:
            yield text
            await asyncio.sleep(0)
        if isinstance(item, Held):
            await item.wait()
            for text in in_pieces(item.after):
                yield text
        error = item[1] if isinstance(item, tuple) else item
        if isinstance(error, ModelError):
            raise error
