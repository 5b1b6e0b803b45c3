"""Turns and sessions for the tests of the stores, each told apart by what a test says of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import TypeVar

from memory.types import (
    DIRECT,
    Audience,
    MemoryId,
    RunningSummary,
    Session,
    SessionId,
    SessionState,
    Turn,
    TurnId,
    Usage,
)
from tests.clock import NOON

ANN = MemoryId("terminal:ann")
BEN = MemoryId("terminal:ben")
GROUP = Audience("discord:guild/1")

_Value = TypeVar("_Value")


def at(minutes: float) -> datetime:
    """Return the time so many minutes after noon."""
    return NOON + timedelta(minutes=minutes)


def turn(
    turn_id: str,
    *,
    minutes: float = 0,
    memory_id: MemoryId = ANN,
    session: str = "s1",
    audience: Audience = DIRECT,
    human: str = "hello",
    reply: str = "hello yourself",
) -> Turn:
    """Return a turn."""
    return Turn(
        turn_id=TurnId(turn_id),
        memory_id=memory_id,
        session_id=SessionId(session),
        audience=audience,
        at=at(minutes),
        human=human,
        reply=reply,
        replied_at=at(minutes) + timedelta(seconds=3),
        model="small",
        usage=Usage(prompt=100, completion=20, cached=80),
    )


def session(
    session_id: str = "s1",
    *,
    minutes: float = 0,
    due: float | None = 30,
    memory_id: MemoryId = ANN,
    audience: Audience = DIRECT,
    state: SessionState = SessionState.OPEN,
    summary: str | None = None,
) -> Session:
    """Return a session that starts and is due so many minutes after noon."""
    return Session(
        session_id=SessionId(session_id),
        memory_id=memory_id,
        audience=audience,
        started_at=at(minutes),
        due_at=None if due is None else at(due),
        state=state,
        summary=summary,
    )


def full_session() -> Session:
    """Return a session in which no field is left out."""
    return Session(
        session_id=SessionId("full"),
        memory_id=ANN,
        audience=GROUP,
        started_at=at(0),
        due_at=at(40),
        state=SessionState.CLOSING,
        revision=3,
        ended_at=at(30),
        window_from=TurnId("t7"),
        running=RunningSummary("They spoke of tea.", through=TurnId("t6")),
        summary="They spoke of tea, and then of rain.",
        summary_model="small",
        owner="process-1",
        attempts=2,
        fault="ModelUnavailable",
    )


async def gathered(values: AsyncIterator[_Value]) -> list[_Value]:
    """Return all that an iterator gives."""
    return [value async for value in values]
