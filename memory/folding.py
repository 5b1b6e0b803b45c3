"""The running summary: turns that leave the window are folded into it, in the background.

The text is made before the turns have to go, and goes in together with their eviction, so that the prompt's
beginning changes once and not twice. A reply never waits for it.
"""

from __future__ import annotations

import logging
from zoneinfo import ZoneInfo

from memory.conversation import Conversation
from memory.errors import CompletionFault, StoreFault
from memory.ports import Store
from memory.summarise import Summariser
from memory.tasks import TaskSet
from memory.types import RunningSummary, Session, Turn, TurnId

log = logging.getLogger(__name__)


class Folder:
    """Makes running summaries; at most one at a time for a conversation."""

    def __init__(self, store: Store, summariser: Summariser) -> None:
        self._store = store
        self._summariser = summariser
        self._tasks = TaskSet()

    def fold(self, conversation: Conversation, *, through: TurnId, zone: ZoneInfo) -> None:
        """Begin to fold the turns up to `through`, unless that is done or under way."""
        done = conversation.ready or conversation.session.running
        if conversation.folding or (done is not None and done.through >= through):
            return
        conversation.folding = True
        self._tasks.spawn(self._fold(conversation, through, zone), name="folding")

    async def _fold(self, conversation: Conversation, through: TurnId, zone: ZoneInfo) -> None:
        before = conversation.ready or conversation.session.running
        session = conversation.session
        try:
            turns = await self._turns(conversation, before, through)
            if not turns or turns[-1].turn_id != through:
                return  # some still wait for the store: the text would pass over them
            summary = await self._summariser.summarise(turns, zone=zone, before=before.text if before else "")
            stored = await self._store.session(session.memory_id, session.session_id)
        except (CompletionFault, StoreFault) as fault:
            # Nothing is lost: the turns are in the store, and the next turn tries again.
            log.info("running summary not made yet (%s)", type(fault.__cause__ or fault).__name__)
            return
        finally:
            conversation.folding = False
        # The text quotes what was erased meanwhile, here or in another process: then it must not be shown.
        if stored is not None and _same(stored, session) and _same(conversation.session, session):
            conversation.ready = RunningSummary(summary.text, through)

    async def _turns(
        self, conversation: Conversation, before: RunningSummary | None, through: TurnId
    ) -> tuple[Turn, ...]:
        turns = await self._store.turns(conversation.session.memory_id, session=conversation.session)
        start = before.through if before else ""
        return tuple(turn for turn in turns if start < turn.turn_id <= through)

    async def drain(self, *, grace: float) -> bool:
        """Wait for what is under way, for at most `grace` seconds."""
        return await self._tasks.drain(grace=grace)

    async def aclose(self) -> None:
        """Stop; what was under way is begun anew by whoever loads the conversation next."""
        await self._tasks.aclose()


def _same(session: Session, known: Session) -> bool:
    return (session.session_id, session.revision) == (known.session_id, known.revision)
