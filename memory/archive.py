"""What is stored of a person, looked at, moved and erased: needs a store, and neither a model nor a talk.

The command line works on this alone; while people talk, the same calls go through Memory, which lets go of
what it holds of somebody when something of theirs is erased.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from memory.forgetting import Erased, Forgetting, Plan, Scope
from memory.overview import Overview, look
from memory.portability import Portrait, landing
from memory.ports import Clock, Store
from memory.search import find
from memory.types import Audience, MemoryId, Person, Session, SessionState, Turn

_END_OF_TIME = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import added, and what was there already."""

    turns: int = 0
    sessions: int = 0
    known: int = 0


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Sessions that have ended and wait for their summary, and why the failed ones failed."""

    waiting: int
    faults: Counter[str]


def _nothing(memory_id: MemoryId, everything: bool) -> None:
    """Be told of an erasure where nothing is held."""


class Archive:
    """Looks at what is stored, and changes it at a person's wish."""

    def __init__(
        self, store: Store, clock: Clock, *, erased: Callable[[MemoryId, bool], None] = _nothing
    ) -> None:
        self._store = store
        self._clock = clock
        self._erased = erased
        self._forgetting = Forgetting(store, clock, erased=erased)

    async def overview(self, memory_id: MemoryId, *, in_front_of: Audience) -> Overview:
        """Return what is remembered and may be shown in front of this audience. Raises StoreFault."""
        return await look(self._store, memory_id, in_front_of=in_front_of)

    async def search(
        self, memory_id: MemoryId, words: str, *, in_front_of: Audience, limit: int = 10
    ) -> tuple[Turn, ...]:
        """Return the newest turns in which all the words occur. Raises StoreFault."""
        return await find(self._store.scan(memory_id), words, in_front_of=in_front_of, limit=limit)

    async def known(self, prefix: str, *, limit: int = 20) -> tuple[MemoryId, ...]:
        """Return memory ids that begin with this. Raises StoreFault."""
        return await self._store.known(prefix, limit=limit)

    async def set_timezone(self, memory_id: MemoryId, zone: ZoneInfo) -> None:
        """Remember in which zone this person's days begin. Raises StoreFault."""
        person = await self._store.person(memory_id) or Person(memory_id)
        await self._store.put_person(replace(person, timezone=zone.key))
        self._erased(memory_id, False)  # what is held was read with the old zone

    async def plan_forgetting(self, memory_id: MemoryId, audience: Audience, scope: Scope) -> Plan | None:
        """Say in numbers what erasing would take; None when there is nothing. Raises StoreFault."""
        return await self._forgetting.plan(memory_id, audience, scope)

    async def forget(self, plan: Plan) -> Erased:
        """Erase, and check that nothing is left. Raises StoreFault."""
        return await self._forgetting.carry_out(plan)

    async def export(self, memory_id: MemoryId) -> Portrait | None:
        """Return everything that is stored of a person, None if that is nothing. Raises StoreFault."""
        if not await self._store.holdings(memory_id):
            return None
        person = await self._store.person(memory_id) or Person(memory_id)
        sessions = await self._store.sessions(memory_id)
        return Portrait(person, sessions, await self._store.turns(memory_id))

    async def take_in(self, portrait: Portrait) -> Imported:
        """Store what an export holds; what is there already stays as it is. Raises StoreFault."""
        added, turns_added = 0, 0
        for session in portrait.sessions:
            added += await self._put(session)
        for turn in portrait.turns:
            turns_added += await self._store.add_turn(turn)
        memory_id = portrait.person.memory_id
        if portrait.person.timezone and await self._store.person(memory_id) is None:
            await self._store.put_person(portrait.person)
        known = len(portrait.sessions) - added + len(portrait.turns) - turns_added
        self._erased(memory_id, False)
        return Imported(turns=turns_added, sessions=added, known=known)

    async def _put(self, session: Session) -> bool:
        session = landing(session, now=self._clock.now())
        if await self._store.put_session(session):
            return True
        if session.state is not SessionState.OPEN:
            return False
        if await self._store.session(session.memory_id, session.session_id) is not None:
            return False
        # Another session is open for this audience here, so this one has to end.
        ended = replace(session, state=SessionState.CLOSING, due_at=None)
        return await self._store.put_session(landing(ended, now=self._clock.now()))

    async def unfinished(self) -> Unfinished:
        """Count the sessions of anyone that have ended and have no summary yet. Raises StoreFault."""
        waiting, faults = 0, Counter[str]()
        async for session in self._store.due(_END_OF_TIME):
            if session.state is SessionState.CLOSING:
                waiting += 1
                if session.fault:
                    faults[session.fault] += 1
        return Unfinished(waiting, faults)
