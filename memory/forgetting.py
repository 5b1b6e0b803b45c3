"""Erasing: first the plan in numbers, then the erasure, then a look whether anything is left.

Whatever was made of the turns goes before they do, and the session's revision rises before and after, so
that work begun on the old turns (a summary on its way, a running summary) has nowhere to land.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from memory.ports import Clock, Store
from memory.types import Audience, Holdings, MemoryId, Session, SessionId, SessionState, TurnId

Scope = Literal["last", "session", "everything"]

_WHILE_ERASING = timedelta(minutes=2)  # if we die in between, the summary is made anew after this
_MOST_ROUNDS = 5  # another process may still be writing what it had begun


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be erased, counted."""

    scope: Scope
    memory_id: MemoryId
    holdings: Holdings
    session_id: SessionId | None = None
    turn_id: TurnId | None = None


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased, and what is still there although it should not be."""

    gone: Holdings
    left: Holdings


class Forgetting:
    """Plans and carries out what a person wants forgotten."""

    def __init__(self, store: Store, clock: Clock, *, erased: Callable[[MemoryId, bool], None]) -> None:
        """Take the store; `erased(memory_id, everything)` is told of each erasure."""
        self._store = store
        self._clock = clock
        self._erased = erased

    async def plan(self, memory_id: MemoryId, audience: Audience, scope: Scope) -> Plan | None:
        """Say what erasing would take; None when there is nothing. Raises StoreFault."""
        if scope == "everything":
            holdings = await self._store.holdings(memory_id)
            return Plan(scope, memory_id, holdings) if holdings else None
        session = await self._current(memory_id, audience)
        if session is None:
            return None
        derived = _derived(session)
        if scope == "session":
            turns = (await self._store.count_turns(memory_id)).get(session.session_id, 0)
            holdings = Holdings(turns=turns, sessions=1, summaries=derived)
            return Plan(scope, memory_id, holdings, session.session_id)
        newest = await self._store.turns(memory_id, session=session, newest=1)
        if not newest:
            return None
        holdings = Holdings(turns=1, summaries=derived)
        return Plan(scope, memory_id, holdings, session.session_id, newest[0].turn_id)

    async def _current(self, memory_id: MemoryId, audience: Audience) -> Session | None:
        """Return the session of the last turn: the open one, or one that has ended; none without a turn."""
        for session in reversed(await self._store.sessions(memory_id, audience=audience, newest=3)):
            if await self._store.turns(memory_id, session=session, newest=1):
                return session
        return None

    async def carry_out(self, plan: Plan) -> Erased:
        """Erase what the plan names. Raises StoreFault; done again, it goes on where it stopped."""
        if plan.session_id is None:
            return await self._everything(plan.memory_id)
        if plan.turn_id is None:
            return await self._session(plan.memory_id, plan.session_id)
        return await self._turn(plan.memory_id, plan.session_id, plan.turn_id)

    async def _everything(self, memory_id: MemoryId) -> Erased:
        gone = left = Holdings()
        for _ in range(_MOST_ROUNDS):
            self._erased(memory_id, True)
            gone += await self._store.erase(memory_id)
            self._erased(memory_id, True)
            left = await self._store.holdings(memory_id)
            if not left:
                break
        return Erased(gone, left)

    async def _session(self, memory_id: MemoryId, session_id: SessionId) -> Erased:
        before = await self._store.session(memory_id, session_id)
        await self._revise(memory_id, session_id, last=False)
        self._erased(memory_id, False)
        went = await self._store.delete_session(memory_id, session_id)
        gone = Holdings(turns=went.turns, sessions=went.sessions, summaries=_derived(before))
        await self._refresh_others(memory_id)
        left = (await self._store.count_turns(memory_id)).get(session_id, 0)
        still = await self._store.session(memory_id, session_id)
        return Erased(gone, Holdings(turns=left, sessions=int(still is not None)))

    async def _turn(self, memory_id: MemoryId, session_id: SessionId, turn_id: TurnId) -> Erased:
        before = await self._store.session(memory_id, session_id)
        await self._revise(memory_id, session_id, last=False)
        turns = await self._store.delete_turns(memory_id, (turn_id,))
        session = await self._revise(memory_id, session_id, last=True)
        gone = Holdings(turns=turns, summaries=_derived(before) - _derived(session))
        if session is not None and session.state is not SessionState.OPEN:
            await self._delete_if_empty(session)
        await self._refresh_others(memory_id)
        left = await self._store.turn(memory_id, turn_id)
        return Erased(gone, Holdings(turns=int(left is not None)))

    async def _delete_if_empty(self, session: Session) -> None:
        """Let no empty shell of an ended session stay; an open one may be about to get its next turn."""
        if not (await self._store.count_turns(session.memory_id)).get(session.session_id):
            await self._store.delete_session(session.memory_id, session.session_id)

    async def _revise(self, memory_id: MemoryId, session_id: SessionId, *, last: bool) -> Session | None:
        due_at = self._clock.now() + (timedelta() if last else _WHILE_ERASING)
        return await self._store.revise(memory_id, session_id, due_at=due_at)

    async def _refresh_others(self, memory_id: MemoryId) -> None:
        """Let every open session of this person be read anew, here and in other processes.

        The memory block in front of their window may quote what has just been erased.
        """
        for session in await self._store.sessions(memory_id):
            if session.state is SessionState.OPEN:
                await self._store.revise(memory_id, session.session_id, due_at=self._clock.now())
        self._erased(memory_id, False)


def _derived(session: Session | None) -> int:
    """Count the summaries of a session; a running one is part of how it is shown, and no item of its own."""
    return int(session is not None and session.summary is not None)
