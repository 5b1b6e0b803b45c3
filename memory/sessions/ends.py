"""The ends of sessions: at their deadline, at a person's wish, or found to be due by the sweep.

A deadline that has passed, here or in the store, is only a reason to look: the newest turn tells when the
time is really up. Who ends a session, and that it is ended once, is decided by the store.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from memory.closing import Closer
from memory.conversation import Conversation
from memory.errors import StoreFault, StoreUnavailable
from memory.ports import Clock, Store
from memory.sessions.held import LONG_AGO, Held, Key, key_of
from memory.types import Session, SessionState

log = logging.getLogger(__name__)


async def deadline_of(store: Store, session: Session) -> datetime:
    """Return when a session's time is really up: the stored deadline may be behind its newest turn."""
    newest = await store.turns(session.memory_id, session=session, newest=1)
    stored = session.due_at or session.started_at
    return max(stored, newest[0].replied_at + timedelta(seconds=session.timeout)) if newest else stored


class Ends:
    """Ends sessions, and waits for the end of those that are held."""

    def __init__(self, store: Store, closer: Closer, clock: Clock, *, most_loaded: int) -> None:
        self._store = store
        self._closer = closer
        self._clock = clock
        self.held = Held(clock, time_is_up=self._time_is_up, most_loaded=most_loaded)

    async def end(self, key: Key) -> bool:
        """End the session of this conversation now; False if none is open. Raises StoreFault."""
        async with self.held.lock(key):
            if (held := self.held.get(key)) is not None:
                held.checked_at = LONG_AGO  # a turn under way looks again before it is stored
            session = await self._store.opened(*key)
            self.held.drop(key)
            if session is None:
                return False
            return await self._closer.begin(session, ended_at=self._clock.now(), early=True)

    async def _time_is_up(self, key: Key) -> None:
        async with self.held.lock(key):
            held = self.held.get(key)
            if held is not None and not held.busy and not self.held.waits(key):
                await self.end_or_log(held)

    async def end_or_log(self, held: Conversation) -> None:
        """End a conversation's session if its time is really up; hold its lock. Never raises StoreFault."""
        try:
            await self._end(held.session)
        except StoreFault as fault:
            # It is due in the store: the sweep ends it when the store is back.
            log.warning("a session is over, and the store cannot be told yet: %s", fault)
            self.held.drop(key_of(held.session))

    async def _end(self, session: Session) -> None:
        """End a session whose time seems to be up; if it is not, wait for the real end."""
        stored = await self._store.session(session.memory_id, session.session_id)
        self.held.drop(key_of(session))
        if stored is None or stored.state is not SessionState.OPEN:
            return
        deadline = await deadline_of(self._store, stored)
        if deadline > self._clock.now():
            self._wait_for(stored, deadline)
        else:
            await self._closer.begin(stored, ended_at=deadline)

    def _wait_for(self, session: Session, deadline: datetime) -> None:
        conversation = Conversation(session, deadline=deadline, checked_at=self._clock.now())
        self.held.hold(conversation, deadline=deadline)

    async def sweep(self) -> None:
        """End every session of anyone whose time is up, and queue those that wait for their summary."""
        async for session in self._store.due(self._clock.now()):
            if session.state is SessionState.CLOSING:
                self._closer.enqueue(session)
                continue
            try:
                await self._end_if_over(session)
            except StoreUnavailable:
                raise
            except StoreFault as fault:
                # One that cannot be read must not keep the others open.
                log.error("a session cannot be ended: %s", fault)  # noqa: TRY400 - no trace needed

    async def _end_if_over(self, session: Session) -> None:
        key = key_of(session)
        async with self.held.lock(key):
            held = self.held.get(key)
            if held is None or not (held.busy or held.deadline > self._clock.now()):
                await self._end(session)

    async def wake(self) -> None:
        """Wait for the end of every session that is open in the store, as the processes before did."""
        async for session in self._store.live():
            if key_of(session) not in self.held and session.due_at is not None:
                self._wait_for(session, session.due_at)
