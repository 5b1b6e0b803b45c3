"""Turns that come late, out of the backlog: each into its session, which may be unknown, over or erased.

The session goes first, so that no turn is ever without one. A session that has ended meanwhile is
summarised anew with the turn in it; nothing of a person who was erased meanwhile stays.
"""

from __future__ import annotations

from memory.closing import Closer
from memory.conversation import Conversation
from memory.ports import Clock, Store
from memory.sessions.current import Current, into
from memory.sessions.held import LONG_AGO, Held
from memory.types import Session, SessionId, SessionState, Turn


class LateTurns:
    """Stores turns that could not be stored when they were made."""

    def __init__(self, store: Store, closer: Closer, clock: Clock, *, held: Held, current: Current) -> None:
        self._store = store
        self._closer = closer
        self._clock = clock
        self._held = held
        self._current = current
        self._known: set[SessionId] = set()  # sessions that the store has had, of turns that wait

    def expect(self, conversation: Conversation, *, first: bool) -> None:
        """Be told of the conversation of a turn that will come late; `first`: none is waiting yet."""
        if first:
            self._known.clear()
        if not conversation.provisional:
            self._known.add(conversation.session.session_id)

    async def store(self, turn: Turn, session: Session) -> None:
        """Bring a turn into the store, and the session it was made in first. Raises StoreFault."""
        key = (turn.memory_id, turn.audience)
        async with self._held.lock(key):
            erasures = self._held.erasures(turn.memory_id)
            stored = await self._store.session(session.memory_id, session.session_id)
            if stored is None:
                if session.session_id in self._known:
                    return  # it was there: erased meanwhile, and all that belongs to it
                stored = await self._current.open_in_store(key, turn.at, like=session)
                self._known.add(stored.session_id)
            turn = into(turn, stored)
            await self._store.add_turn(turn)
            if erasures != self._held.erasures(turn.memory_id):
                await self._current.take_back(turn)
                return
            held = self._held.get(key)
            if held is not None and held.session.session_id == session.session_id:
                held.loaded = held.loaded and stored.session_id == session.session_id
                held.session, held.provisional, held.checked_at = stored, False, LONG_AGO
            await self._settle(turn)

    async def _settle(self, turn: Turn) -> None:
        """Have the turn's session summarised anew if it has ended; take the turn back if it was erased."""
        stored = await self._store.session(turn.memory_id, turn.session_id)
        if stored is None:
            await self._current.take_back(turn)
        elif stored.state is not SessionState.OPEN:
            now = self._clock.now()
            revised = await self._store.revise(stored.memory_id, stored.session_id, due_at=now)
            if revised is not None:
                self._closer.enqueue(revised)
