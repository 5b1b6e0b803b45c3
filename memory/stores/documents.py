"""What a stored value looks like: the rules that every store keeps, and the documents of MongoDB.

Pure: nothing here knows a driver. A value read back is what was written, but for two things that no
database keeps: times have whole milliseconds, and half of a surrogate pair becomes U+FFFD. Ids are never
changed, since two of them could become one: an id that cannot be stored is refused.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from memory.errors import StoreFault
from memory.types import Person, RunningSummary, Session, Turn


def whole_ms(at: datetime) -> datetime:
    """Return the time in UTC, cut to whole milliseconds. Raises ValueError for a naive one."""
    if at.tzinfo is None:
        raise ValueError("a stored time must be aware")
    at = at.astimezone(UTC)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def clean(text: str) -> str:
    """Return the text with every lone surrogate replaced: UTF-8 has no place for one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Two halves that stand side by side are a whole character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def check_id(value: str) -> None:
    """Raise StoreFault for an id that cannot be stored as it is."""
    if not value:
        raise StoreFault("an empty id cannot be stored")
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise StoreFault("an id is not valid Unicode and cannot be stored") from fault


def stored_turn(turn: Turn) -> Turn:
    """Return the turn as it will be read back. Raises StoreFault for an id that cannot be stored."""
    for value in (turn.turn_id, turn.memory_id, turn.session_id, turn.audience):
        check_id(value)
    return replace(
        turn,
        at=whole_ms(turn.at),
        human=clean(turn.human),
        reply=clean(turn.reply),
        replied_at=whole_ms(turn.replied_at),
        model=clean(turn.model),
    )


def stored_running(running: RunningSummary | None) -> RunningSummary | None:
    """Return the running summary as it will be read back."""
    return running and replace(running, text=clean(running.text))


def stored_session(session: Session) -> Session:
    """Return the session as it will be read back. Raises StoreFault for an id that cannot be stored."""
    for value in (session.session_id, session.memory_id, session.audience):
        check_id(value)
    return replace(
        session,
        started_at=whole_ms(session.started_at),
        due_at=session.due_at and whole_ms(session.due_at),
        ended_at=session.ended_at and whole_ms(session.ended_at),
        running=stored_running(session.running),
        summary=session.summary and clean(session.summary),
        summary_model=clean(session.summary_model),
    )


def stored_person(person: Person) -> Person:
    """Return the person as it will be read back. Raises StoreFault for an id that cannot be stored."""
    check_id(person.memory_id)
    return replace(person, timezone=person.timezone and clean(person.timezone))
