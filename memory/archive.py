"""What is stored of a person, looked at, moved and erased: needs a store, and neither a model nor a talk.

The command line works on this alone; while people talk, the same calls go through Memory, which lets go of
what it holds of somebody when something of theirs is erased.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from memory.forgetting import Erased, Forgetting, Plan, Scope
from memory.overview import Overview, look
from memory.portability import WHILE_STORING, Portrait, landing
from memory.ports import Clock, Store
from memory.search import find
from memory.types import Audience, MemoryId, Person, Session, SessionId, SessionState, Turn

_END_OF_TIME = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import added, and what was there already."""

    turns: int = 0
    sessions: int = 0
    known: int = 0

    def __add__(self, other: Imported) -> Imported:
        return Imported(self.turns + other.turns, self.sessions + other.sessions, self.known + other.known)


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
        memory_id = portrait.person.memory_id
        turns: dict[SessionId, list[Turn]] = {}
        for turn in portrait.turns:
            turns.setdefault(turn.session_id, []).append(turn)
        total = Imported()
        for session in portrait.sessions:
            total += await self._take_in(session, turns.pop(session.session_id, []))
        if portrait.person.timezone and await self._store.person(memory_id) is None:
            await self._store.put_person(portrait.person)
        self._erased(memory_id, False)
        return total

    async def _take_in(self, session: Session, turns: Sequence[Turn]) -> Imported:
        """Store a session, then its turns; where it is somebody else's, or not the same, nothing."""
        new = await self._put(session, turns)
        stored = await self._store.session(session.memory_id, session.session_id)
        if stored is None or stored.audience != session.audience:
            return Imported(known=1 + len(turns))
        fitting = [turn for turn in turns if turn.at >= stored.started_at]
        if not new and await self._lacks(stored, fitting):
            # Before they come: whatever was made of the session's turns is then made anew with these.
            due_at = self._clock.now() + WHILE_STORING
            await self._store.revise(session.memory_id, session.session_id, due_at=due_at)
        added = sum([await self._store.add_turn(turn) for turn in fitting])
        return Imported(turns=added, sessions=int(new), known=int(not new) + len(turns) - added)

    async def _put(self, session: Session, turns: Sequence[Turn]) -> bool:
        opened = await self._store.opened(session.memory_id, session.audience)
        alone = opened is None or opened.session_id == session.session_id
        return await self._store.put_session(landing(session, turns, now=self._clock.now(), alone=alone))

    async def _lacks(self, session: Session, turns: Sequence[Turn]) -> bool:
        there = await self._store.turns(session.memory_id, session=session)
        return not {turn.turn_id for turn in turns} <= {turn.turn_id for turn in there}

    async def unfinished(self) -> Unfinished:
        """Count the sessions of anyone that have ended and have no summary yet. Raises StoreFault."""
        waiting, faults = 0, Counter[str]()
        async for session in self._store.due(_END_OF_TIME):
            if session.state is SessionState.CLOSING:
                waiting += 1
                if session.fault:
                    faults[session.fault] += 1
        return Unfinished(waiting, faults)
