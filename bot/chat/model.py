"""The seam to a language model: pieces of text as they come, then how it ended.

The engine calls this protocol; who speaks which API is not known here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from bot.errors import ModelError, ModelSilent, PromptTooLong
from memory import Completion, CompletionFault, CompletionTooLong, PromptMessage, Usage


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
    ) -> AsyncGenerator[TextPiece | Finished, None]:
        """Stream the reply: text pieces, then exactly one Finished. Raises a ModelError at any point.

        Closing the generator early (`aclose`, or `contextlib.aclosing` around it) ends the request at the
        server at once; who may stop before the end must close it.
        """
        ...


async def read_whole(pieces: AsyncGenerator[TextPiece | Finished, None]) -> Completion:
    """Read a streamed reply to its end and close it; this is what makes a Completer of a ChatModel.

    Raises CompletionFault with the ModelError as its cause, CompletionTooLong where that is PromptTooLong.
    """
    try:
        return await _read(pieces)
    except PromptTooLong as error:
        raise CompletionTooLong(str(error)) from error
    except ModelError as error:
        raise CompletionFault(str(error)) from error


async def _read(pieces: AsyncGenerator[TextPiece | Finished, None]) -> Completion:
    texts: list[str] = []
    name, usage = "", None
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, TextPiece):
                texts.append(piece.text)
            else:
                name, usage = piece.model, piece.usage
    text = "".join(texts).strip()
    if not text:
        raise ModelSilent("the reply is blank")
    return Completion(text=text, model=name, usage=usage)
