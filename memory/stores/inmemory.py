"""The store in memory: the reference that shows what the contract means, and the double for tests.

It ships with the product and passes the same suite as MongoDB. Every method is atomic because none of them
waits for anything.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from datetime import datetime
from typing import TypeVar

from memory.errors import StoreFault
from memory.stores import transitions
from memory.stores.documents import stored_person, stored_session, stored_turn, whole_ms
from memory.types import (
    Audience,
    Holdings,
    MemoryId,
    Person,
    RunningSummary,
    Session,
    SessionId,
    SessionState,
    Turn,
    TurnId,
)

_Place = tuple[datetime, TurnId]
_Kept = TypeVar("_Kept", Turn, Session)


class _History:
    """The turns of one person, with their places in time."""

    def __init__(self) -> None:
        self.turns: dict[TurnId, Turn] = {}
        self.places: list[_Place] = []

    def add(self, turn: Turn) -> None:
        self.turns[turn.turn_id] = turn
        insort(self.places, (turn.at, turn.turn_id))

    def remove(self, turn_ids: Collection[TurnId]) -> int:
        gone = {turn_id for turn_id in turn_ids if self.turns.pop(turn_id, None)}
        self.places = [place for place in self.places if place[1] not in gone]
        return len(gone)

    def between(self, since: datetime | None, until: datetime | None) -> list[Turn]:
        low = bisect_left(self.places, (whole_ms(since), TurnId(""))) if since else 0
        high = bisect_left(self.places, (whole_ms(until), TurnId(""))) if until else len(self.places)
        return [self.turns[turn_id] for _, turn_id in self.places[low:high]]


class InMemoryStore:
    """A Store that lasts as long as the process."""

    def __init__(self) -> None:
        self._histories: dict[MemoryId, _History] = {}
        self._turn_ids: set[TurnId] = set()
        self._sessions: dict[SessionId, Session] = {}
        self._sessions_of: dict[MemoryId, dict[SessionId, None]] = {}
        self._open: dict[tuple[MemoryId, Audience], SessionId] = {}
        self._people: dict[MemoryId, Person] = {}

    # Lifetime

    async def prepare(self) -> None:
        """Do nothing: there is nothing to create."""

    async def ping(self) -> str:
        """Tell what this store is."""
        return "in memory"

    async def aclose(self) -> None:
        """Do nothing: what is held stays until the store itself goes."""

    # Turns

    async def add_turn(self, turn: Turn) -> bool:
        """See Store.add_turn."""
        turn = stored_turn(turn)
        if turn.turn_id in self._turn_ids:
            return False
        self._turn_ids.add(turn.turn_id)
        self._histories.setdefault(turn.memory_id, _History()).add(turn)
        return True

    async def turn(self, memory_id: MemoryId, turn_id: TurnId) -> Turn | None:
        """See Store.turn."""
        return self._history(memory_id).turns.get(turn_id)

    async def turns(
        self,
        memory_id: MemoryId,
        *,
        session: Session | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest: int | None = None,
    ) -> tuple[Turn, ...]:
        """See Store.turns."""
        found = self._history(memory_id).between(since, until)
        if session is not None:
            found = [turn for turn in found if turn.session_id == session.session_id]
        return _newest(found, newest)

    async def scan(self, memory_id: MemoryId) -> AsyncIterator[Turn]:
        """See Store.scan."""
        for turn in reversed(self._history(memory_id).between(None, None)):
            yield turn

    async def count_turns(self, memory_id: MemoryId) -> Mapping[SessionId, int]:
        """See Store.count_turns."""
        return Counter(turn.session_id for turn in self._history(memory_id).turns.values())

    # Sessions

    async def open_session(self, session: Session) -> Session:
        """See Store.open_session. Raises StoreFault for an id that is taken by one that is not open."""
        if (found := await self.opened(session.memory_id, session.audience)) is not None:
            return found
        if not await self.put_session(session):
            raise StoreFault("a session with this id is there already, and it is not open")
        return self._sessions[session.session_id]

    async def put_session(self, session: Session) -> bool:
        """See Store.put_session. Raises StoreFault for a second open one of a conversation."""
        session = stored_session(session)
        if session.session_id in self._sessions:
            return False
        if session.state is SessionState.OPEN and (session.memory_id, session.audience) in self._open:
            raise StoreFault("another session of this conversation is open")
        self._sessions_of.setdefault(session.memory_id, {})[session.session_id] = None
        self._keep(session)
        return True

    async def session(self, memory_id: MemoryId, session_id: SessionId) -> Session | None:
        """See Store.session."""
        found = self._sessions.get(session_id)
        return found if found is not None and found.memory_id == memory_id else None

    async def opened(self, memory_id: MemoryId, audience: Audience) -> Session | None:
        """See Store.opened."""
        session_id = self._open.get((memory_id, audience))
        return None if session_id is None else self._sessions[session_id]

    async def sessions(
        self,
        memory_id: MemoryId,
        *,
        audience: Audience | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest: int | None = None,
    ) -> tuple[Session, ...]:
        """See Store.sessions."""
        found = [
            session
            for session in self._of(memory_id)
            if (audience is None or session.audience == audience)
            and (since is None or session.started_at >= whole_ms(since))
            and (until is None or session.started_at < whole_ms(until))
        ]
        found.sort(key=lambda session: (session.started_at, session.session_id))
        return _newest(found, newest)

    async def due(self, now: datetime) -> AsyncIterator[Session]:
        """See Store.due."""
        now = whole_ms(now)
        for session in tuple(self._sessions.values()):
            over = session.due_at is not None and session.due_at <= now
            if over and session.state is not SessionState.CLOSED:
                yield session

    async def live(self) -> AsyncIterator[Session]:
        """See Store.live."""
        for session_id in tuple(self._open.values()):
            yield self._sessions[session_id]

    async def touch(self, session: Session, *, due_at: datetime) -> bool:
        """See Store.touch."""
        stored = await self.session(session.memory_id, session.session_id)
        return self._moved(stored and transitions.touched(stored, session, due_at=due_at))

    async def retime(self, session: Session, *, seconds: float, due_at: datetime) -> bool:
        """See Store.retime."""
        stored = await self.session(session.memory_id, session.session_id)
        return self._moved(stored and transitions.retimed(stored, session, timeout=seconds, due_at=due_at))

    async def set_window(
        self, session: Session, *, window_from: TurnId | None, running: RunningSummary | None
    ) -> bool:
        """See Store.set_window."""
        stored = await self.session(session.memory_id, session.session_id)
        if stored is None:
            return False
        return self._moved(transitions.windowed(stored, session, window_from=window_from, running=running))

    async def claim(
        self,
        session: Session,
        *,
        owner: str,
        now: datetime,
        until: datetime,
        ended_at: datetime,
        early: bool = False,
    ) -> Session | None:
        """See Store.claim."""
        stored = await self.session(session.memory_id, session.session_id)
        if stored is None:
            return None
        claimed = transitions.claimed(
            stored, session, owner=owner, now=now, until=until, ended_at=ended_at, early=early
        )
        self._moved(claimed)
        return claimed

    async def finish(self, session: Session, *, summary: str | None, summary_model: str) -> bool:
        """See Store.finish."""
        stored = await self.session(session.memory_id, session.session_id)
        if stored is None:
            return False
        return self._moved(
            transitions.finished(stored, session, summary=summary, summary_model=summary_model)
        )

    async def postpone(self, session: Session, *, due_at: datetime, fault: str | None) -> bool:
        """See Store.postpone."""
        stored = await self.session(session.memory_id, session.session_id)
        return self._moved(stored and transitions.postponed(stored, session, due_at=due_at, fault=fault))

    async def revise(self, memory_id: MemoryId, session_id: SessionId, *, due_at: datetime) -> Session | None:
        """See Store.revise."""
        stored = await self.session(memory_id, session_id)
        revised = stored and transitions.revised(stored, due_at=due_at)
        self._moved(revised)
        return revised

    # People

    async def person(self, memory_id: MemoryId) -> Person | None:
        """See Store.person."""
        return self._people.get(memory_id)

    async def put_person(self, person: Person) -> None:
        """See Store.put_person."""
        self._people[person.memory_id] = stored_person(person)

    async def known(self, prefix: str, *, limit: int = 20) -> tuple[MemoryId, ...]:
        """See Store.known; in the order of their code points."""
        found = sorted(memory_id for memory_id in self._sessions_of if memory_id.startswith(prefix))
        return tuple(found[:limit])

    # Forgetting

    async def delete_turns(self, memory_id: MemoryId, turn_ids: Collection[TurnId]) -> int:
        """See Store.delete_turns."""
        history = self._history(memory_id)
        self._turn_ids.difference_update(turn_id for turn_id in turn_ids if turn_id in history.turns)
        return history.remove(turn_ids)

    async def delete_session(self, memory_id: MemoryId, session_id: SessionId) -> Holdings:
        """See Store.delete_session."""
        turns = self._history(memory_id).turns.values()
        there = [turn.turn_id for turn in turns if turn.session_id == session_id]
        session = await self.session(memory_id, session_id)
        gone = Holdings(turns=await self.delete_turns(memory_id, there))
        if session is None:
            return gone
        self._forget(session)
        return gone + _holdings_of(session)

    async def erase(self, memory_id: MemoryId) -> Holdings:
        """See Store.erase."""
        gone = await self.holdings(memory_id)
        history = self._histories.pop(memory_id, _History())
        self._turn_ids.difference_update(history.turns)
        for session in self._of(memory_id):
            self._forget(session)
        self._people.pop(memory_id, None)
        return gone

    async def holdings(self, memory_id: MemoryId) -> Holdings:
        """See Store.holdings."""
        held = Holdings(
            turns=len(self._history(memory_id).turns), people=1 if memory_id in self._people else 0
        )
        return sum((_holdings_of(session) for session in self._of(memory_id)), held)

    # What is held

    def _history(self, memory_id: MemoryId) -> _History:
        return self._histories.get(memory_id) or _History()

    def _of(self, memory_id: MemoryId) -> tuple[Session, ...]:
        return tuple(self._sessions[session_id] for session_id in self._sessions_of.get(memory_id, ()))

    def _moved(self, session: Session | None) -> bool:
        """Keep the session as it is now; False when nothing moved."""
        if session is None:
            return False
        self._keep(session)
        return True

    def _keep(self, session: Session) -> None:
        key = (session.memory_id, session.audience)
        self._sessions[session.session_id] = session
        if session.state is SessionState.OPEN:
            self._open[key] = session.session_id
        elif self._open.get(key) == session.session_id:
            del self._open[key]

    def _forget(self, session: Session) -> None:
        key = (session.memory_id, session.audience)
        del self._sessions[session.session_id]
        of_person = self._sessions_of[session.memory_id]
        del of_person[session.session_id]
        if not of_person:
            del self._sessions_of[session.memory_id]
        if self._open.get(key) == session.session_id:
            del self._open[key]


def _newest(found: list[_Kept], newest: int | None) -> tuple[_Kept, ...]:
    if newest is None:
        return tuple(found)
    return tuple(found[-newest:]) if newest > 0 else ()


def _holdings_of(session: Session) -> Holdings:
    return Holdings(sessions=1, summaries=0 if session.summary is None else 1)
