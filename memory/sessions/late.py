"""Turns that come late, out of the backlog: each into its session, which may be unknown, over or erased.

The session goes first, so that no turn is ever without one. A session that has ended meanwhile is
summarised anew with the turn in it; nothing of a person who was erased meanwhile stays.
"""

from __future__ import annotations

from memory.closing import Closer
from memory.ports import Clock, Store
from memory.sessions.current import Current, into
from memory.sessions.held import LONG_AGO, Held
from memory.types import Session, SessionState, Turn


class LateTurns:
    """Stores turns that could not be stored when they were made."""

    def __init__(self, store: Store, closer: Closer, clock: Clock, *, held: Held, current: Current) -> None:
        self._store = store
        self._closer = closer
        self._clock = clock
        self._held = held
        self._current = current

    async def store(self, turn: Turn, session: Session) -> None:
        """Bring a turn into the store, and the session it was made in first. Raises StoreFault."""
        key = (turn.memory_id, turn.audience)
        async with self._held.lock(key):
            erasures = self._held.erasures(turn.memory_id)
            stored = await self._store.session(session.memory_id, session.session_id)
            if stored is None:
                stored = await self._current.open_in_store(key, turn.at, like=session)
            await self._store.add_turn(into(turn, stored))
            if erasures != self._held.erasures(turn.memory_id):
                await self._take_back(turn, stored)
                return
            held = self._held.get(key)
            if held is not None and held.session.session_id == session.session_id:
                held.loaded = held.loaded and stored.session_id == session.session_id
                held.session, held.provisional, held.checked_at = stored, False, LONG_AGO
            await self._tell_if_ended(stored)

    async def _take_back(self, turn: Turn, session: Session) -> None:
        """Undo what was written of a person while they were erased."""
        await self._store.delete_turns(turn.memory_id, (turn.turn_id,))
        if not await self._store.turns(turn.memory_id, session=session, newest=1):
            await self._store.delete_session(turn.memory_id, session.session_id)

    async def _tell_if_ended(self, session: Session) -> None:
        """Have a session summarised anew that had ended before this turn of it could be stored."""
        stored = await self._store.session(session.memory_id, session.session_id)
        if stored is not None and stored.state is not SessionState.OPEN:
            now = self._clock.now()
            revised = await self._store.revise(session.memory_id, session.session_id, due_at=now)
            if revised is not None:
                self._closer.enqueue(revised)
