"""Which session a turn goes into: the one that is held, the one found open in the store, or a new one.

The store is the truth and is looked at once a second at most: what was read in that time is taken to be
still so. Moving the stored deadline is spared while more than half of the timeout is left of it. Without
the store a talk goes on, in the session known or in one the store does not know yet.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from memory.closing import Closer
from memory.conversation import Conversation
from memory.errors import StoreFault
from memory.ports import Clock, Store
from memory.sessions.ends import Ends, deadline_of
from memory.sessions.held import Key, key_of
from memory.sessions.loading import Loader
from memory.types import Session, SessionId, SessionState, Turn, time_ordered_id

log = logging.getLogger(__name__)

_FRESH = timedelta(seconds=1)


def into(turn: Turn, session: Session) -> Turn:
    """Put a turn into a session; none is older than the session it is in."""
    at = max(turn.at, session.started_at)
    return replace(turn, session_id=session.session_id, at=at, replied_at=max(turn.replied_at, at))


class Current:
    """Finds the session of each conversation that is current, and opens it where there is none."""

    def __init__(
        self, store: Store, closer: Closer, clock: Clock, *, ends: Ends, loader: Loader, timeout: timedelta
    ) -> None:
        self._store = store
        self._closer = closer
        self._clock = clock
        self._ends = ends
        self._held = ends.held
        self._loader = loader
        self._timeout = timeout
        self._fresh_for = min(_FRESH, timeout / 4)

    async def conversation(self, key: Key) -> Conversation:
        """Return the conversation of a turn that begins now, loaded; hold its lock."""
        held = self._held.get(key)
        now = self._clock.now()
        if held is not None and held.deadline <= now and not held.busy:
            await self._ends.end_or_log(held)
            held = self._held.get(key)
        if held is not None and not await self._still_so(held, now):
            self._held.drop(key)
            held = None
        if held is None:
            held = await self._open(key, now)
        if not held.loaded:
            await self._loader.load(held)
        return held

    async def _still_so(self, held: Conversation, now: datetime) -> bool:
        """Tell whether the session is still open at its revision, and take in what other processes added."""
        if held.provisional:
            return True
        session, due_at = held.session, now + self._timeout
        if session.timeout != self._timeout.total_seconds():
            return False  # used by others with theirs; found anew, it gets ours
        fresh = self._is_fresh(held, now)
        ample = session.due_at is not None and session.due_at - now >= self._timeout / 2
        if fresh and ample:
            return True
        try:
            if not ample:
                if not await self._store.touch(session, due_at=due_at):
                    return False
                held.session = replace(session, due_at=due_at)
            elif not _same(session, await self._store.session(session.memory_id, session.session_id)):
                return False
            if not fresh:
                await self._loader.take_in(held)
        except StoreFault as fault:
            log.warning("going on from memory, the store failed: %s", fault)
            return True
        held.checked_at = now
        return True

    def _is_fresh(self, conversation: Conversation, now: datetime) -> bool:
        return now - conversation.checked_at < self._fresh_for

    async def still_wanted(self, conversation: Conversation, *, at: datetime) -> bool:
        """Look again after a reply that took long; False when the session was erased meanwhile.

        If another process has ended it, a turn of that time belongs to the next session, and the
        conversation moves there. Raises StoreFault.
        """
        now = self._clock.now()
        if self._is_fresh(conversation, now):
            return True
        known, due_at = conversation.session, now + self._timeout
        while True:
            stored = await self._store.session(known.memory_id, known.session_id)
            if stored is None:
                return False
            if stored.state is not SessionState.OPEN:
                conversation.session = await self.open_in_store(key_of(known), at)
                conversation.unload()
                break
            if await self._store.touch(stored, due_at=due_at):
                if stored.revision != known.revision:
                    known = stored
                    conversation.unload()
                conversation.session = replace(known, due_at=due_at)
                break
        conversation.checked_at = now
        return True

    async def has_place(self, turn: Turn) -> bool:
        """Tell whether the turn's session is there. Raises StoreFault."""
        return await self._store.session(turn.memory_id, turn.session_id) is not None

    async def take_back(self, turn: Turn) -> None:
        """Undo what was written of a turn erased on its way: it, and its session if that is empty."""
        await self._store.delete_turns(turn.memory_id, (turn.turn_id,))
        counts = await self._store.count_turns(turn.memory_id)
        if not counts.get(turn.session_id):
            await self._store.delete_session(turn.memory_id, turn.session_id)

    # Opening

    async def _open(self, key: Key, now: datetime) -> Conversation:
        try:
            session = await self.open_in_store(key, now)
            provisional = False
        except StoreFault as fault:
            log.warning("a session begins without the store: %s", fault)
            session, provisional = self._fresh(key, now), True
        conversation = Conversation(
            session, deadline=now + self._timeout, checked_at=now, provisional=provisional
        )
        self._held.hold(conversation, deadline=conversation.deadline)
        return conversation

    def _fresh(self, key: Key, at: datetime) -> Session:
        memory_id, audience = key
        return Session(
            SessionId(time_ordered_id(at)),
            memory_id,
            audience,
            started_at=at,
            due_at=max(at, self._clock.now()) + self._timeout,
            timeout=self._timeout.total_seconds(),
        )

    async def open_in_store(self, key: Key, at: datetime, *, like: Session | None = None) -> Session:
        """Open a session for a turn of that time (this one, if given), or return the one that is open.

        One that was over by then is ended first. Raises StoreFault.
        """
        fresh = like or self._fresh(key, at)
        refused: Session | None = None
        while True:
            session = await self._store.open_session(fresh)
            if session.session_id == fresh.session_id:
                return session
            deadline = await deadline_of(self._store, session)
            if deadline > at or session == refused:
                # Refused and unchanged: by the clock of now it is not due after all, so it goes on.
                return await self._with_our_timeout(session)
            await self._closer.begin(session, ended_at=deadline)
            refused = session

    async def _with_our_timeout(self, session: Session) -> Session:
        """Go on with a session that was used with another timeout: the last one counts."""
        timeout, due_at = self._timeout.total_seconds(), self._clock.now() + self._timeout
        if session.timeout == timeout or not await self._store.retime(
            session, seconds=timeout, due_at=due_at
        ):
            return session
        return replace(session, timeout=timeout, due_at=due_at)


def _same(known: Session, stored: Session | None) -> bool:
    """Tell whether the session is still open, and nothing of it was erased."""
    return stored is not None and stored.state is SessionState.OPEN and stored.revision == known.revision
