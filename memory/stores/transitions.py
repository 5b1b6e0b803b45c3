"""The conditional writes of a session, as pure functions: what is stored and what is asked -> what is next.

None means that the condition does not hold and nothing changes. This is the reference that every store is
held against; the store in memory applies it as it stands.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from memory.stores.documents import clean, stored_running, whole_ms
from memory.types import RunningSummary, Session, SessionState, TurnId


def touched(stored: Session, asked: Session, *, due_at: datetime) -> Session | None:
    """Move the deadline of an open session, never back."""
    if stored.state is not SessionState.OPEN or stored.revision != asked.revision:
        return None
    due_at = whole_ms(due_at)
    return replace(stored, due_at=max(stored.due_at or due_at, due_at))


def retimed(stored: Session, asked: Session, *, timeout: float, due_at: datetime) -> Session | None:
    """Give an open session another timeout."""
    if stored.state is not SessionState.OPEN or stored.revision != asked.revision:
        return None
    return replace(stored, timeout=timeout, due_at=whole_ms(due_at))


def windowed(
    stored: Session, asked: Session, *, window_from: TurnId | None, running: RunningSummary | None
) -> Session | None:
    """Record what the window shows."""
    if stored.revision != asked.revision:
        return None
    return replace(stored, window_from=window_from, running=stored_running(running))


def claimed(
    stored: Session,
    asked: Session,
    *,
    owner: str,
    now: datetime,
    until: datetime,
    ended_at: datetime,
    early: bool,
) -> Session | None:
    """Take the lease of a session that is due, or of an open one `early`."""
    due = stored.due_at is not None and stored.due_at <= whole_ms(now)
    match stored.state:
        case SessionState.OPEN:
            unmoved = asked.due_at is not None and stored.due_at == whole_ms(asked.due_at)
            free = early or (due and unmoved)
        case SessionState.CLOSING:
            free = due
        case SessionState.CLOSED:
            free = False
    if not free:
        return None
    return replace(
        stored,
        state=SessionState.CLOSING,
        owner=owner,
        due_at=whole_ms(until),
        ended_at=whole_ms(ended_at) if stored.state is SessionState.OPEN else stored.ended_at,
    )


def finished(stored: Session, asked: Session, *, summary: str | None, summary_model: str) -> Session | None:
    """Land the result of the owner's work."""
    if not _leased(stored, asked):
        return None
    return replace(
        stored,
        state=SessionState.CLOSED,
        due_at=None,
        owner=None,
        fault=None,
        summary=summary and clean(summary),
        summary_model=clean(summary_model),
    )


def postponed(stored: Session, asked: Session, *, due_at: datetime, fault: str | None) -> Session | None:
    """Give the lease back; with a fault, count it."""
    if not _leased(stored, asked):
        return None
    later = replace(stored, owner=None, due_at=whole_ms(due_at))
    if fault is None:
        return later
    return replace(later, attempts=stored.attempts + 1, fault=fault)


def revised(stored: Session, *, due_at: datetime) -> Session:
    """Drop what was derived; unless the session is open, it is to be summarised anew at `due_at`."""
    fresh = replace(
        stored,
        revision=stored.revision + 1,
        window_from=None,
        running=None,
        summary=None,
        summary_model="",
        owner=None,
        attempts=0,
        fault=None,
    )
    if stored.state is SessionState.OPEN:
        return fresh
    return replace(fresh, state=SessionState.CLOSING, due_at=whole_ms(due_at))


def _leased(stored: Session, asked: Session) -> bool:
    return (
        stored.state is SessionState.CLOSING
        and stored.owner is not None
        and stored.owner == asked.owner
        and stored.revision == asked.revision
    )
