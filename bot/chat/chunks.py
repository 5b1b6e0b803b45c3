"""What the chunks of a streamed reply say, and what the reply has come to so far: pure.

It exists because servers fill the same chunks differently (no choices, no delta, content in parts, counts
under other names). The rule it keeps: nothing is assumed to be there, and reasoning is never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.chat.model import Finished
from bot.chat.reasoning import Opening, ReasoningFilter
from bot.chat.translation import mapping_of, number_of
from bot.errors import ModelBroken, ModelError, ModelInterrupted, ModelMalformed, ModelRefused, ModelSilent
from memory import Usage

_CUT = frozenset({"length", "model_length"})


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk: more text, or how the reply ended, or what it cost; most have one of these."""

    text: str = ""
    finish: str | None = None
    usage: Usage | None = None
    model: str = ""
    declined: bool = False  # the model's own refusal, sent in a field of its own


def read_chunk(data: Mapping[str, object]) -> Chunk:
    """Read a chunk, or a whole answer in one. `reasoning_content` and its like are left where they are."""
    choices = data.get("choices")
    choice = mapping_of(choices[0]) if isinstance(choices, list) and choices else {}
    delta = mapping_of(choice.get("delta")) or mapping_of(choice.get("message"))
    finish = choice.get("finish_reason")
    return Chunk(
        text=_text(delta.get("content")),
        finish=finish if isinstance(finish, str) and finish else None,
        usage=_usage(data),
        model=str(data.get("model") or ""),
        declined=bool(delta.get("refusal")),
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = [mapping_of(part) for part in content] if isinstance(content, list) else []
    return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")


def _usage(data: Mapping[str, object]) -> Usage | None:
    usage = mapping_of(data.get("usage"))
    if not usage:
        return None
    details = mapping_of(usage.get("prompt_tokens_details"))
    cached = (
        number_of(details.get("cached_tokens"))
        or number_of(usage.get("prompt_cache_hit_tokens"))
        or number_of(mapping_of(data.get("timings")).get("cache_n"))
    )
    return Usage(
        prompt=number_of(usage.get("prompt_tokens")) or 0,
        completion=number_of(usage.get("completion_tokens")) or 0,
        cached=cached or 0,
    )


class Reply:
    """A reply as it comes: takes chunks, gives out what may be shown, and tells how it ended."""

    def __init__(self, *, model: str, opening: Opening) -> None:
        """Begin; `model` is the name asked for, `opening` how reasoning is expected to begin."""
        self._filter = ReasoningFilter(opening)
        self._model = model
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._chunks = 0
        self._declined = False
        self.shown = False
        """True once some text was given out."""

    @property
    def ended(self) -> bool:
        """True once the server said why the reply ends; only its counts may follow."""
        return self._finish is not None

    @property
    def cut(self) -> bool:
        """True when it ran into max_tokens."""
        return self._finish in _CUT

    @property
    def unopened(self) -> bool:
        """True when reasoning was closed that had never been opened."""
        return self._filter.unopened

    def take(self, chunk: Chunk) -> str:
        """Take a chunk; returns what may be shown now, mostly its text."""
        self._chunks += 1
        self._finish = chunk.finish or self._finish
        self._usage = chunk.usage or self._usage
        self._model = chunk.model or self._model
        self._declined = self._declined or chunk.declined
        return self._give(self._filter.feed(chunk.text))

    def rest(self) -> str:
        """Return what was still held back when the reply has ended."""
        return self._give(self._filter.end(cut=self.cut or self._finish is None))

    def _give(self, text: str) -> str:
        if not self.shown:
            text = text.lstrip()  # a blank beginning would be shown to nobody's good
            self.shown = bool(text)
        return text

    def finished(self) -> Finished:
        """Return the end of a good reply. Raises ModelError when it is none."""
        if self._chunks == 0:
            raise ModelMalformed("what came is not a stream of chunks")
        if self._finish is None:
            raise self._broken_off("the reply ended without saying that it does")
        if self._finish == "error":
            raise self._broken_off("the server broke the reply off")
        if self._finish == "content_filter" or (self._declined and not self.shown):
            if self.shown:
                raise ModelInterrupted("a content filter broke the reply off")
            raise ModelRefused("a content filter, or the model itself, refused to answer")
        if not self.shown:
            raise ModelSilent("the reply has no visible text" + (" within max_tokens" if self.cut else ""))
        return Finished(model=self._model, usage=self._usage, cut=self.cut)

    def _broken_off(self, why: str) -> ModelError:
        return ModelInterrupted(why) if self.shown else ModelBroken(why)
