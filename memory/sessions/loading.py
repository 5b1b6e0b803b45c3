"""Reads a conversation's window and memory block from the store, whole or what is new.

Without the store a talk goes on with what there is: a reply without a past is better than none.
"""

from __future__ import annotations

import logging

from memory.blocks import BlockPolicy, load_block
from memory.closing import Zones
from memory.conversation import Conversation
from memory.errors import StoreFault
from memory.ports import Store
from memory.tokens import TokenEstimator
from memory.types import Turn

log = logging.getLogger(__name__)


class Loader:
    """Fills conversations from the store."""

    def __init__(self, store: Store, *, zones: Zones, estimator: TokenEstimator, block: BlockPolicy) -> None:
        self._store = store
        self._zones = zones
        self._estimator = estimator
        self._block = block

    async def load(self, conversation: Conversation) -> None:
        """Read the window and the memory block; without the store, leave the conversation as it is."""
        session = conversation.session
        if conversation.provisional:
            return
        try:
            turns = await self._store.turns(session.memory_id, session=session)
            zone = await self._zones.of(session.memory_id)
            block = await load_block(
                self._store, session, zone=zone, policy=self._block, estimator=self._estimator
            )
        except StoreFault as fault:
            log.warning("a conversation goes on without its past, the store failed: %s", fault)
            return
        _fill(conversation, turns)
        conversation.block = block
        conversation.zone = zone
        conversation.loaded = True

    async def take_in(self, conversation: Conversation) -> None:
        """Add the turns that other processes have added. Raises StoreFault."""
        if not conversation.loaded:
            return
        session = conversation.session
        last = conversation.entries[-1].turn if conversation.entries else None
        since = last.at if last else session.started_at
        known = {entry.turn.turn_id for entry in conversation.entries}
        for turn in await self._store.turns(session.memory_id, session=session, since=since):
            if turn.turn_id not in known and turn.turn_id >= (session.window_from or ""):
                conversation.append(turn)


def _fill(conversation: Conversation, turns: tuple[Turn, ...]) -> None:
    """Show these turns from where the window begins, and after them those that wait for the store."""
    session = conversation.session
    shown = [turn for turn in turns if turn.turn_id >= (session.window_from or "")]
    covered = session.running.through if session.running else ""
    left = [turn.turn_id for turn in turns if covered < turn.turn_id < (session.window_from or "")]
    conversation.behind, conversation.unfolded = (left[-1] if left else None), len(left)
    stored = {turn.turn_id for turn in shown}
    late = [turn for turn in conversation.turns if turn.turn_id not in stored]
    conversation.fill((*shown, *late))
