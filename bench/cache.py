"""Prompt cache: how much of the prompts of a conversation the model server can take from its prefix cache.

Forty turns with the bundled model, the same messages for every layout, each layout with a server of its own
so that none finds what another left behind. The next turn comes as soon as the reply is there: Omoide's
background calls for the running summary go to the same server and get no pause that a person would make.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

from bench.figures import Spread
from bench.script import MESSAGES
from bench.table import Table
from bot.chat.model import Finished
from bot.chat.openai import OpenAIModel
from bot.chat.patience import Patience
from bot.chat.prompt import Persona, assemble
from bot.chat.yielding import Yielding
from bot.config import Config
from bot.local.model import MODEL_CONTEXT, MODEL_NAME, MODEL_REPLY, LocalModel
from memory import (
    DIRECT,
    Completion,
    Memory,
    MemoryId,
    MemorySettings,
    PromptMessage,
    SystemClock,
    Usage,
    WindowPolicy,
)
from memory.stores.inmemory import InMemoryStore

_REPLY_TOKENS = 96
_NAME = "Alex"
_SLACK = 64

_DEFAULTS = Config(data_dir=Path())
_PERSONA = Persona(_DEFAULTS.persona.name, _DEFAULTS.persona.prompt, _DEFAULTS.persona.language)
_LIMIT = _DEFAULTS.window.max_tokens


@dataclass(slots=True)
class Tally:
    """What a layout cost: the usage of each reply, of background calls, and each time to first token."""

    replies: list[Usage] = field(default_factory=list)
    background: list[Usage] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    evictions: int = 0

    @property
    def cached(self) -> float:
        """The share of the replies' prompt tokens that came out of the cache."""
        return sum(one.cached for one in self.replies) / max(sum(one.prompt for one in self.replies), 1)

    @property
    def processed(self) -> int:
        """How many prompt tokens were computed for replies."""
        return processed(self.replies)

    @property
    def processed_in_all(self) -> int:
        """How many prompt tokens were computed, background calls included."""
        return self.processed + processed(self.background)


def processed(usages: Sequence[Usage]) -> int:
    """Add up the prompt tokens that did not come out of the cache."""
    return sum(one.prompt - one.cached for one in usages)


class Metered:
    """The model, with every usage written down; a Completer for the background."""

    def __init__(self, model: Yielding, tally: Tally) -> None:
        self._model = model
        self._tally = tally

    async def reply(self, prompt: Sequence[PromptMessage]) -> tuple[str, Usage]:
        """Stream a reply to its end."""
        began, usage = time.perf_counter(), Usage(prompt=0, completion=0)
        texts: list[str] = []
        async with aclosing(self._model.stream(prompt, max_tokens=_REPLY_TOKENS)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Finished):
                    usage = piece.usage or usage
                    continue
                if not texts:
                    self._tally.first.append(time.perf_counter() - began)
                texts.append(piece.text)
        self._tally.replies.append(usage)
        return "".join(texts).strip(), usage

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        """Answer for the background."""
        completion = await self._model.complete(prompt, max_tokens=max_tokens)
        if completion.usage is not None:
            self._tally.background.append(completion.usage)
        return completion


async def omoide(model: Metered, tally: Tally, *, evict_to: float) -> None:
    """Talk through Memory and the real prompt, with the default settings but for `evict_to`."""
    clock, memory_id = SystemClock(), MemoryId("terminal:bench")
    settings = MemorySettings(
        zone=ZoneInfo("UTC"),
        session_timeout=_DEFAULTS.session.timeout,
        context_tokens=MODEL_CONTEXT,
        summary_tokens=_DEFAULTS.memory.summary_tokens,
        window=WindowPolicy(max_tokens=_LIMIT, evict_to=evict_to),
    )
    persona = _PERSONA.text(_NAME)
    async with Memory(InMemoryStore(), model, clock, settings=settings, owner="bench") as memory:
        overhead = memory.count(persona) + min(_DEFAULTS.llm.max_tokens, MODEL_REPLY) + _SLACK
        shown = ""
        for text in MESSAGES:
            opening = await memory.begin(memory_id, DIRECT, human=text, at=clock.now(), overhead=overhead)
            first = opening.turns[0].turn_id if opening.turns else ""
            tally.evictions += bool(shown) and first != shown
            shown = first
            prompt = assemble(persona, opening, memory_role=_DEFAULTS.memory.role)
            reply, usage = await model.reply(prompt)
            memory.learn(prompt, counted=usage.prompt)
            await memory.finish(opening, reply=reply, model=MODEL_NAME, usage=usage)


async def seeds(model: Metered, tally: Tally, *, most: int | None) -> None:
    """Talk the seeds' way: what was said as one text in a message of the assistant, sliding.

    `most` is how many messages they show; None shows as many as fit the token limit of the others.
    """
    said: list[str] = []
    price = 0.3  # tokens per character until the server has counted a prompt
    start = 0
    for text in MESSAGES:
        before = start
        start = max(0, len(said) - most) if most is not None else start
        while most is None and sum(map(len, said[start:])) * price > _LIMIT:
            start += 2
        tally.evictions += start != before
        history = "\n".join(said[start:])
        prompt = (
            PromptMessage("system", _PERSONA.text(_NAME)),
            PromptMessage("assistant", f"Here is the current chat history:\n {history}"),
            PromptMessage("user", text),
        )
        reply, usage = await model.reply(prompt)
        price = usage.prompt / sum(len(message.content) for message in prompt) or price
        said += [f"human: {text}", f"ai: {reply}"]


Layout = Callable[[Metered, Tally], Awaitable[None]]

LAYOUTS: dict[str, Layout] = {
    "Omoide, default settings": lambda model, tally: omoide(model, tally, evict_to=_DEFAULTS.window.evict_to),
    "sliding window, same limit (evict_to = 1)": lambda model, tally: omoide(model, tally, evict_to=1.0),
    "history as one text, same limit": lambda model, tally: seeds(model, tally, most=None),
    "history as one text, seeds' own limit (7 messages)": lambda model, tally: seeds(model, tally, most=7),
}


async def run(layout: Layout) -> Tally:
    """Run one layout against a model server of its own."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="omoide-bench-") as folder:
        async with LocalModel(Path(folder), progress=lambda _: None) as base_url:
            model = OpenAIModel(
                base_url=base_url,
                api_key=None,
                model=MODEL_NAME,
                timeout=300.0,
                temperature=0.0,
                extra={"seed": 1},
            )
            async with model:
                patient = Patience(model, SystemClock(), jitter=lambda: 0.5)
                await layout(Metered(Yielding(patient, model), tally), tally)
    return tally


async def measure() -> list[Table]:
    """Run all layouts, one after the other."""
    tallies: dict[str, Tally] = {}
    for name, layout in LAYOUTS.items():
        print(f"  {name}", file=sys.stderr, flush=True)
        tallies[name] = await run(layout)
    return [tabulate(tallies)]


def tabulate(tallies: dict[str, Tally]) -> Table:
    """Make the table; the first layout is the one that the others are compared with."""
    own = next(iter(tallies.values()))
    rows = tuple(
        (
            name,
            f"{tally.cached:.2f}",
            f"{sum(one.prompt for one in tally.replies):,}",
            f"{tally.processed:,}",
            f"{tally.processed / max(own.processed, 1):.1f} x",
            f"{tally.processed_in_all:,}",
            f"{tally.processed_in_all / max(own.processed_in_all, 1):.1f} x",
            Spread.of(tally.first).text(1000, 0),
            f"{tally.evictions}",
        )
        for name, tally in tallies.items()
    )
    columns = (
        "layout",
        "cached",
        "prompt tokens",
        "processed",
        "of Omoide's",
        "with background",
        "of Omoide's",
        "first token, ms",
        "evictions",
    )
    notes = (
        f"{len(MESSAGES)} turns with {MODEL_NAME} (temperature 0, at most {_REPLY_TOKENS} tokens a reply), "
        f"window of {_LIMIT:,} tokens, each layout with a server of its own.",
        "cached: share of the replies' prompt tokens out of the server's prefix cache; processed: the rest. "
        "With background: the calls for running summaries too.",
        "first token: median (quartiles). No pause between turns, so background calls compete with replies.",
    )
    return Table("Prompt cache", columns, rows, notes)


if __name__ == "__main__":
    print(asyncio.run(measure())[0].markdown())
