"""A Completer that says what a test wrote down for it: texts, faults, and answers held back.

It stands in for the model behind summaries, keeps the contract of Completer and records every prompt.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.errors import CompletionTooLong
from memory.ports import Completion, PromptMessage

MODEL = "scripted-model"


@dataclass(slots=True)
class Held:
    """An answer that waits for `release`; `reached` is set once somebody waits for it."""

    text: str = "A note held back."
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let the answer go."""
        self._released.set()

    async def wait(self) -> str:
        """Hold, from the model's side."""
        self.reached.set()
        await self._released.wait()
        return self.text


Scripted = str | Exception | Held


class ScriptedCompleter:
    """Goes through its script, then gives `default` for ever."""

    def __init__(
        self, *script: Scripted, default: Scripted = "A short note.", longest: int | None = None
    ) -> None:
        """Take the script; with `longest`, a prompt of more characters does not fit."""
        self._script = deque(script)
        self._longest = longest
        self.default = default
        self.prompts: list[str] = []

    def enqueue(self, *script: Scripted) -> None:
        """Add to the end of the script."""
        self._script.extend(script)

    @property
    def read(self) -> str:
        """All that was ever shown to the model."""
        return "\n".join(self.prompts)

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        """Play the next item of the script."""
        await asyncio.sleep(0)
        text = "\n".join(message.content for message in prompt)
        if self._longest is not None and len(text) > self._longest:
            raise CompletionTooLong("too long")
        self.prompts.append(text)
        item = self._script.popleft() if self._script else self.default
        if isinstance(item, Exception):
            raise item
        if isinstance(item, Held):
            item = await item.wait()
        return Completion(item, MODEL)
