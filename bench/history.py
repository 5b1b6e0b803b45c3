"""A past to measure with: a person's earlier sessions, ended and summarised, put into a store.

Twenty turns a session and two sessions a day, back from yesterday, as with somebody who talks every day.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.instant import NOTE, REPLY
from bench.script import MESSAGES
from memory import (
    DIRECT,
    MemoryId,
    Session,
    SessionId,
    SessionState,
    Store,
    Turn,
    TurnId,
    time_ordered_id,
)
from memory.stores.documents import turn_document

TURNS_A_SESSION = 20


def sessions(memory_id: MemoryId, turns: int, *, now: datetime) -> Iterator[tuple[Session, list[Turn]]]:
    """Make up so many turns in ended sessions, the newest session a day before `now`."""
    made = 0
    while made < turns:
        number = made // TURNS_A_SESSION
        started = now - timedelta(days=1 + number // 2, hours=5 * (number % 2))
        session_id = SessionId(time_ordered_id(started))
        said = [
            _turn(memory_id, session_id, started + timedelta(minutes=minute), MESSAGES[minute])
            for minute in range(min(TURNS_A_SESSION, turns - made))
        ]
        made += len(said)
        yield _session(memory_id, session_id, started, said[-1].replied_at), said


def _session(memory_id: MemoryId, session_id: SessionId, started: datetime, last: datetime) -> Session:
    return Session(
        session_id=session_id,
        memory_id=memory_id,
        audience=DIRECT,
        started_at=started,
        due_at=None,
        state=SessionState.CLOSED,
        ended_at=last + timedelta(minutes=30),
        summary=NOTE,
        summary_model="instant",
    )


def _turn(memory_id: MemoryId, session_id: SessionId, at: datetime, human: str) -> Turn:
    return Turn(
        turn_id=TurnId(time_ordered_id(at)),
        memory_id=memory_id,
        session_id=session_id,
        audience=DIRECT,
        at=at,
        human=human,
        reply=REPLY,
        replied_at=at + timedelta(seconds=5),
        model="instant",
    )


async def fill(store: Store, turns_of_all: Any, memory_id: MemoryId, turns: int) -> None:
    """Put so many turns of a person's past into the database.

    The sessions through the store; the turns, a session at a time, into the collection that it keeps them
    in: one by one, ten thousand of them take longer than the whole measurement.
    """
    for session, said in sessions(memory_id, turns, now=datetime.now(UTC)):
        await store.put_session(session)
        await turns_of_all.insert_many([turn_document(turn) for turn in said])
