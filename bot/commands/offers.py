"""Questions with answers to pick from: who may answer, for how long, and only once.

What an answer would do stays here, on our side; what travels to the platform and back is a random token
that means nothing by itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bot.platforms.base import Choice
from memory import Clock, MemoryId

if TYPE_CHECKING:
    from bot.commands.command import Answer, Call

Action = Callable[["Call"], Awaitable["Answer"]]

_OPEN_FOR = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class _Offer:
    """One question: its answers by token, whose it is, and until when it is open."""

    memory_id: MemoryId
    until: datetime
    actions: dict[str, Action]


class Offers:
    """The questions that are open."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_token: dict[str, _Offer] = {}

    def make(self, memory_id: MemoryId, options: Sequence[tuple[str, Action]]) -> tuple[Choice, ...]:
        """Open a question with these answers (label, action); returns what to show."""
        self._drop_old()
        actions = {secrets.token_urlsafe(9): action for _, action in options}
        offer = _Offer(memory_id, self._clock.now() + _OPEN_FOR, actions)
        self._by_token.update(dict.fromkeys(actions, offer))
        return tuple(Choice(label, token) for (label, _), token in zip(options, actions, strict=True))

    def take(self, token: str, memory_id: MemoryId) -> Action | None:
        """Return what the picked answer does, and close its question; None if it is not this person's.

        Also None when it was answered before or its time is over.
        """
        self._drop_old()
        offer = self._by_token.get(token)
        if offer is None or offer.memory_id != memory_id:
            return None
        for sibling in offer.actions:
            del self._by_token[sibling]
        return offer.actions[token]

    def _drop_old(self) -> None:
        now = self._clock.now()
        for token, offer in tuple(self._by_token.items()):
            if offer.until <= now:
                del self._by_token[token]
