"""The seam to a language model: pieces of text as they come, then how it ended.

The engine calls this protocol; who speaks which API is not known here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory import PromptMessage, Usage


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Some more text of the reply, never empty, never reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last piece of every reply that came to its end; `cut` says that it ran into max_tokens."""

    model: str
    usage: Usage | None
    cut: bool = False


class ChatModel(Protocol):
    """A model that streams one reply."""

    def stream(
        self, prompt: Sequence[PromptMessage], *, max_tokens: int
    ) -> AsyncIterator[TextPiece | Finished]:
        """Stream the reply: text pieces, then exactly one Finished. Raises a ModelError at any point.

        Closing the iterator early ends the request at the server.
        """
        ...
