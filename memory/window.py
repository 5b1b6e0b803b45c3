"""Which turns the model is shown verbatim: a pure policy that stores nothing and awaits nothing.

A turn goes in or out whole. Eviction is in blocks: once the limit is passed, the oldest turns go until
what is left is at most the low-water mark, so that between two evictions a prompt only grows at its end
and a prefix cache serves the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_NEAR = 0.75  # the part of the limit from which on an eviction is near

WindowMode = Literal["unlimited", "messages", "tokens"]


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """How much the window holds; `evict_to` is the part of the limit that an eviction leaves, 1 slides."""

    mode: WindowMode = "tokens"
    max_tokens: int = 3000
    max_messages: int = 40
    evict_to: float = 0.5


def evicted(sizes: Sequence[int], *, limit: int, keep: int) -> int:
    """Return how many of the oldest turns have to go, given the size of each, oldest first.

    None while all of them fit `limit`. Past it, as few as leave at most `keep`; the newest turn stays even
    above `keep` as long as it fits `limit` by itself.
    """
    total = sum(sizes)
    if total <= limit:
        return 0
    gone = 0
    while gone < len(sizes) and total > min(keep, limit):
        if gone == len(sizes) - 1 and sizes[gone] <= limit:
            break
        total -= sizes[gone]
        gone += 1
    return gone


def next_block(sizes: Sequence[int], *, limit: int, keep: int) -> int:
    """Return how many of the oldest turns the next eviction will take; 0 while it is far off.

    Known ahead, because an eviction begins at `limit` and ends at `keep`: whatever else is said until then,
    the oldest turns that make up the difference go.
    """
    if sum(sizes) < _NEAR * limit:
        return 0
    gone = count = 0
    while count < len(sizes) and gone < limit - keep:
        gone += sizes[count]
        count += 1
    return count
