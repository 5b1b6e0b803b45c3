"""Finding turns by their words: every word must occur, in any letter case, anywhere in the exchange.

Plain containment on purpose: Chinese has no spaces to split at, and a part of a word is often all that is
remembered.
"""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator, Sequence

from memory.types import Audience, Turn, may_show


def _folded(text: str) -> str:
    # Again after the letter case: small and capital letters may be composed of different parts.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def terms_of(words: str) -> tuple[str, ...]:
    """Split what a person typed into the terms to look for."""
    return tuple(_folded(words).split())


def matches(turn: Turn, terms: Sequence[str]) -> bool:
    """Tell whether all of the terms occur in what was said; no terms match nothing."""
    if not terms:
        return False
    text = _folded(f"{turn.human}\n{turn.reply}")
    return all(term in text for term in terms)


async def find(
    turns: AsyncIterator[Turn], words: str, *, in_front_of: Audience, limit: int
) -> tuple[Turn, ...]:
    """Return the first `limit` turns with these words that may be shown in front of this audience."""
    terms, found = terms_of(words), list[Turn]()
    if not terms or limit <= 0:
        return ()
    async for turn in turns:
        if may_show(turn.audience, in_front_of=in_front_of) and matches(turn, terms):
            found.append(turn)
            if len(found) >= limit:
                break
    return tuple(found)
