"""Random moves on two stores at once: whatever one of them answers, the other has to answer too."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from memory.errors import StoreFault
from memory.ports import Store
from memory.types import DIRECT, MemoryId, RunningSummary, Session, SessionId, SessionState, TurnId
from tests.stores.values import ANN, BEN, GROUP, at, gathered, session, turn


class Moves:
    """A sequence of moves that is the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._seen: list[Session] = [session("s0")]  # as they were at some time: stale ones are the point

    async def play(self, one: Store, other: Store, *, count: int) -> None:
        """Play, and compare every answer, and in the end all that is stored."""
        for number in range(count):
            name, move = self._next()
            first, second = await _outcome(move, one), await _outcome(move, other)
            assert first == second, f"move {number}: {name}"
            if isinstance(first, Session):
                self._seen.append(first)
        for memory_id in (ANN, BEN):
            assert await one.turns(memory_id) == await other.turns(memory_id)
            assert await one.sessions(memory_id) == await other.sessions(memory_id)
            assert await one.holdings(memory_id) == await other.holdings(memory_id)

    def _next(self) -> tuple[str, Callable[[Store], Awaitable[Any]]]:
        pick, minute = self._random, self._random.randrange
        known = pick.choice(self._seen[-12:])
        memory_id: MemoryId = pick.choice((ANN, BEN))
        name = f"s{minute(12)}"
        when, later = at(minute(60)), at(minute(60))
        owner = pick.choice(("me", "you"))
        audience = pick.choice((DIRECT, GROUP))
        fresh = session(name, minutes=minute(30), due=minute(60), memory_id=memory_id, audience=audience)
        state = pick.choice(tuple(SessionState))
        text = pick.choice((None, "", "tea"))
        turn_id = TurnId(f"t{minute(40)}")
        running = pick.choice((None, RunningSummary("so far", turn_id)))
        said = turn(turn_id, minutes=minute(30, 60), memory_id=memory_id, session=name)
        moves: dict[str, Callable[[Store], Awaitable[Any]]] = {
            "open": lambda s: s.open_session(fresh),
            "put": lambda s: s.put_session(_in_state(fresh, state)),
            "read": lambda s: s.session(known.memory_id, known.session_id),
            "read any": lambda s: s.session(memory_id, SessionId(name)),
            "opened": lambda s: s.opened(memory_id, audience),
            "touch": lambda s: s.touch(known, due_at=later),
            "retime": lambda s: s.retime(known, seconds=5.0, due_at=later),
            "window": lambda s: s.set_window(known, window_from=pick_id(turn_id, text), running=running),
            "claim": lambda s: s.claim(known, owner=owner, now=when, until=later, ended_at=when),
            "claim again": lambda s: s.claim(known, owner=owner, now=at(60), until=later, ended_at=when),
            "claim early": lambda s: s.claim(
                known, owner=owner, now=when, until=later, ended_at=when, early=True
            ),
            "finish": lambda s: s.finish(known, summary=text, summary_model="small"),
            "postpone": lambda s: s.postpone(known, due_at=later, fault=text or None),
            "revise": lambda s: s.revise(known.memory_id, known.session_id, due_at=later),
            "due": lambda s: _sorted(gathered(s.due(when))),
            "live": lambda s: _sorted(gathered(s.live())),
            "add turn": lambda s: s.add_turn(said),
            "turns": lambda s: s.turns(memory_id, session=known, newest=3),
            "newest": lambda s: s.sessions(memory_id, newest=2),
            "delete session": lambda s: s.delete_session(memory_id, SessionId(name)),
            "delete turns": lambda s: s.delete_turns(memory_id, [turn_id]),
        }
        weights = [1 if move.startswith("delete") else 3 for move in moves]
        chosen = pick.choices(tuple(moves), weights)[0]
        return chosen, moves[chosen]


def pick_id(turn_id: TurnId, text: str | None) -> TurnId | None:
    return turn_id if text else None


def _in_state(fresh: Session, state: SessionState) -> Session:
    closed = state is SessionState.CLOSED
    return session(
        fresh.session_id,
        due=None if closed else 20,
        memory_id=fresh.memory_id,
        audience=fresh.audience,
        state=state,
        summary="tea" if closed else None,
    )


async def _sorted(sessions: Awaitable[list[Session]]) -> list[Session]:
    return sorted(await sessions, key=lambda found: found.session_id)


async def _outcome(move: Callable[[Store], Awaitable[Any]], store: Store) -> Any:
    try:
        return await move(store)
    except StoreFault as fault:
        return type(fault)
