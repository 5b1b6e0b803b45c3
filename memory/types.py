"""The values of memory: who, what was said, and the sessions it was said in.

Every value is frozen, every time is an aware UTC datetime, and nothing here knows a store or a model.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

MemoryId = NewType("MemoryId", str)
"""Whose memory it is. Opaque here: the side that knows the platforms makes it."""

Audience = NewType("Audience", str)
"""Who was there when something was said: DIRECT, or the name of one group or channel."""

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)

DIRECT = Audience("direct")


def may_show(said_to: Audience, *, in_front_of: Audience) -> bool:
    """Tell whether what was said to one audience may be shown to another (without sharing switched on)."""
    return in_front_of == DIRECT or said_to == in_front_of


def time_ordered_id(at: datetime) -> str:
    """Make an id whose text order is the order of its millisecond, unique by 80 random bits (like UUIDv7)."""
    return f"{int(at.timestamp() * 1000):012x}{os.urandom(10).hex()}"


class Outcome(StrEnum):
    """How the reply of a turn ended."""

    ANSWERED = "answered"
    INTERRUPTED = "interrupted"  # the model broke off: what had arrived is the reply
    STOPPED = "stopped"  # the person said stop: what had arrived is the reply
    FAILED = "failed"  # there is no reply


class SessionState(StrEnum):
    """The life of a session, in this order only."""

    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the server reported them; `cached` is the part of `prompt` out of its cache."""

    prompt: int
    completion: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a person (or a burst of them, merged) and the reply to it."""

    turn_id: TurnId
    memory_id: MemoryId
    session_id: SessionId
    audience: Audience
    at: datetime
    human: str
    reply: str
    replied_at: datetime
    outcome: Outcome = Outcome.ANSWERED
    model: str = ""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class RunningSummary:
    """The text made of a session's turns up to and including `through`, while the session goes on."""

    text: str
    through: TurnId


@dataclass(frozen=True, slots=True)
class Session:
    """A run of turns with no gap longer than the session timeout.

    `due_at` is when somebody must look at it again: the deadline while it is open, the end of the lease or
    the time of the next try while it is closing, None once it is closed. `revision` grows whenever
    something that belonged to it is erased, so that work begun before that cannot land after it. `timeout`
    is the silence, in seconds, that ends it: whichever process looks, it is the one it was used with last.
    """

    session_id: SessionId
    memory_id: MemoryId
    audience: Audience
    started_at: datetime
    due_at: datetime | None
    state: SessionState = SessionState.OPEN
    revision: int = 0
    ended_at: datetime | None = None
    window_from: TurnId | None = None  # the first turn that the window shows; None: all
    running: RunningSummary | None = None
    summary: str | None = None
    summary_model: str = ""
    owner: str | None = None  # who holds the lease while it is closing
    attempts: int = 0  # failed tries to summarise
    fault: str | None = None  # the kind of the last failure, never its text
    timeout: float = 1800.0


@dataclass(frozen=True, slots=True)
class Person:
    """What is kept about a person beside their turns."""

    memory_id: MemoryId
    timezone: str | None = None  # IANA name; None: the configured default


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much of one person is stored, or went: counts only."""

    turns: int = 0
    sessions: int = 0
    summaries: int = 0
    people: int = 0

    def __add__(self, other: Holdings) -> Holdings:
        return Holdings(
            turns=self.turns + other.turns,
            sessions=self.sessions + other.sessions,
            summaries=self.summaries + other.summaries,
            people=self.people + other.people,
        )

    def __bool__(self) -> bool:
        return bool(self.turns or self.sessions or self.summaries or self.people)
