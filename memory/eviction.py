"""Keeps a conversation's window within its limit, and what leaves it in the running summary.

The model is asked for the running summary ahead of time, while there is still room; the eviction then takes
just the turns that the text covers, so that the prompt's beginning changes once. Nothing here waits for a
model, and without the store the window is kept all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from memory.conversation import Conversation, Entry
from memory.errors import StoreFault
from memory.folding import Folder
from memory.ports import Store
from memory.tokens import Measure, TokenEstimator
from memory.types import TurnId
from memory.window import WindowPolicy

log = logging.getLogger(__name__)

_FEW = 8  # turns: a window that slides is not worth a model call for each


class Evictor:
    """Makes room in windows."""

    def __init__(self, store: Store, folder: Folder, estimator: TokenEstimator) -> None:
        self._store = store
        self._folder = folder
        self._estimator = estimator

    async def make_room(
        self,
        conversation: Conversation,
        *,
        coming: Measure,
        coming_id: TurnId,
        policy: WindowPolicy,
        room: int,
        zone: ZoneInfo,
    ) -> int:
        """Evict what must go before the coming message fits; returns how many turns went."""
        gone = self._evictable(conversation, coming=coming, policy=policy, room=room)
        if gone:
            await self.evict(conversation, gone, coming_id=coming_id)
        elif conversation.behind and conversation.ready and conversation.ready.through >= conversation.behind:
            # Turns left before the text of them was there: better now than at the next eviction.
            await self._record(conversation, conversation.window_from(coming=coming_id))
        self._catch_up(conversation, policy=policy, zone=zone)
        return gone

    def _evictable(
        self, conversation: Conversation, *, coming: Measure, policy: WindowPolicy, room: int
    ) -> int:
        over = conversation.overflow(policy, room=room, coming=coming, estimator=self._estimator)
        covered = _covered(conversation.entries, conversation.ready.through if conversation.ready else "")
        if not 0 < covered < over:
            return over
        rest = replace(conversation, entries=conversation.entries[covered:], size=Measure())
        for entry in rest.entries:
            rest.size += entry.size
        return covered + rest.overflow(policy, room=room, coming=coming, estimator=self._estimator)

    async def evict(self, conversation: Conversation, count: int, *, coming_id: TurnId) -> None:
        """Take the oldest `count` turns out of the window."""
        conversation.behind = conversation.entries[count - 1].turn.turn_id
        conversation.unfolded += count
        window_from = conversation.evict(count, coming=coming_id)
        await self._record(conversation, window_from)

    def _catch_up(self, conversation: Conversation, *, policy: WindowPolicy, zone: ZoneInfo) -> None:
        """See to it that what has left the window comes into the running summary."""
        running = conversation.ready or conversation.session.running
        if conversation.behind is None:
            return
        if running is not None and running.through >= conversation.behind:
            conversation.behind, conversation.unfolded = None, 0
        elif policy.evict_to < 1 or conversation.unfolded >= _FEW:
            conversation.unfolded = 0
            self._folder.fold(conversation, through=conversation.behind, zone=zone)

    async def _record(self, conversation: Conversation, window_from: TurnId) -> None:
        session = conversation.session
        running = conversation.ready or session.running
        conversation.ready = None
        conversation.session = replace(session, window_from=window_from, running=running)
        if conversation.provisional:
            return
        try:
            await self._store.set_window(session, window_from=window_from, running=running)
        except StoreFault as fault:
            log.warning("the window's new start is not stored, it is found again later: %s", fault)

    def look_ahead(
        self, conversation: Conversation, *, policy: WindowPolicy, room: int, zone: ZoneInfo
    ) -> None:
        """Begin the running summary of the turns that go next, if that is near."""
        if policy.evict_to >= 1 or conversation.provisional:
            return
        going = conversation.next_to_go(policy, room=room, estimator=self._estimator)
        if going:
            through = conversation.entries[going - 1].turn.turn_id
            self._folder.fold(conversation, through=through, zone=zone)


def _covered(entries: Sequence[Entry], through: str) -> int:
    return sum(entry.turn.turn_id <= through for entry in entries)
