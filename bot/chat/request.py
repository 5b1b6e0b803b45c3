"""The body of a chat request, and what to leave out of it for a server that refuses a part: pure values.

It exists because one protocol has many dialects. The rule it keeps: a part is left out because the server
named it by an identifier, never because of the wording of an error; the one guess is made once, and only
for a part that is of use but not needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from memory import PromptMessage

_UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})


class Parameter(StrEnum):
    """A part of the request that some servers refuse."""

    MAX_TOKENS = "max_tokens"  # newer models want max_completion_tokens in its place
    TEMPERATURE = "temperature"
    STREAM_OPTIONS = "stream_options"


@dataclass(frozen=True, slots=True)
class Request:
    """How to ask one model at one server."""

    model: str
    temperature: float | None = None
    extra: Mapping[str, object] = field(default_factory=dict)
    refused: frozenset[Parameter] = frozenset()
    proven: bool = False  # it was taken as it is once, stream_options included

    def body(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> dict[str, object]:
        """Return the body of the request for this prompt."""
        body: dict[str, object] = {
            "model": self.model,
            "messages": [
                {"role": message.role, "content": _encodable(message.content)} for message in prompt
            ],
            "stream": True,
        }
        renamed = Parameter.MAX_TOKENS in self.refused
        body["max_completion_tokens" if renamed else "max_tokens"] = max_tokens
        if Parameter.STREAM_OPTIONS not in self.refused:
            body["stream_options"] = {"include_usage": True}
        if self.temperature is not None and Parameter.TEMPERATURE not in self.refused:
            body["temperature"] = self.temperature
        return body | dict(self.extra)

    def taken(self) -> Request:
        """Return the same, now that the server has taken it."""
        return replace(self, proven=Parameter.STREAM_OPTIONS not in self.refused)

    def after(self, objection: Mapping[str, object]) -> Request | None:
        """Return the request to try after this error object, or None when nothing can be left out."""
        named = self._named(objection)
        if named is None and not self.proven and not objection.get("param"):
            named = Parameter.STREAM_OPTIONS  # servers that do not know it seldom name it
        if named is None or named in self.refused:
            return None
        return replace(self, refused=self.refused | {named})

    @staticmethod
    def _named(objection: Mapping[str, object]) -> Parameter | None:
        param = str(objection.get("param") or "").partition(".")[0]
        if param == Parameter.STREAM_OPTIONS:
            return Parameter.STREAM_OPTIONS
        # The code matters: a value of max_tokens that is too high is another matter.
        if param in set(Parameter) and objection.get("code") in _UNSUPPORTED:
            return Parameter(param)
        return None


def _encodable(text: str) -> str:
    """Return the text without lone surrogates, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
