"""What a stored value looks like: the rules that every store keeps, and the documents of MongoDB.

Pure: nothing here knows a driver. A value read back is what was written, but for two things that no
database keeps: times have whole milliseconds, and half of a surrogate pair becomes U+FFFD. Ids are never
changed, since two of them could become one: an id that cannot be stored is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

from memory.errors import CorruptRecord, StoreFault
from memory.types import (
    Audience,
    MemoryId,
    Outcome,
    Person,
    RunningSummary,
    Session,
    SessionId,
    SessionState,
    Turn,
    TurnId,
    Usage,
)


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


# Documents. A field that is None is absent, so that partial indexes and `$exists` mean what they say.

VERSION = 1

Document = Mapping[str, Any]


def turn_document(turn: Turn) -> dict[str, Any]:
    """Return the document of a turn. Raises StoreFault for an id that cannot be stored."""
    turn = stored_turn(turn)
    document: dict[str, Any] = {
        "_id": turn.turn_id,
        "v": VERSION,
        "memory_id": turn.memory_id,
        "session_id": turn.session_id,
        "audience": turn.audience,
        "at": turn.at,
        "human": turn.human,
        "reply": turn.reply,
        "replied_at": turn.replied_at,
        "outcome": turn.outcome.value,
        "model": turn.model,
    }
    if turn.usage is not None:
        document["usage"] = {
            "prompt": turn.usage.prompt,
            "completion": turn.usage.completion,
            "cached": turn.usage.cached,
        }
    return document


def session_document(session: Session) -> dict[str, Any]:
    """Return the document of a session. Raises StoreFault for an id that cannot be stored."""
    session = stored_session(session)
    waits = session.state is not SessionState.CLOSED and session.due_at is not None
    fields: dict[str, Any] = {
        "_id": session.session_id,
        "v": VERSION,
        "memory_id": session.memory_id,
        "audience": session.audience,
        "started_at": session.started_at,
        "due_at": session.due_at,
        "live": True if waits else None,
        "state": session.state.value,
        "revision": session.revision,
        "ended_at": session.ended_at,
        "window_from": session.window_from,
        "running": running_document(session.running),
        "summary": session.summary,
        "summary_model": session.summary_model,
        "owner": session.owner,
        "attempts": session.attempts,
        "fault": session.fault,
        "timeout": float(session.timeout),
    }
    return {name: value for name, value in fields.items() if value is not None}


def running_document(running: RunningSummary | None) -> dict[str, Any] | None:
    """Return the part of a session's document that holds its running summary."""
    running = stored_running(running)
    return None if running is None else {"text": running.text, "through": running.through}


def person_document(person: Person) -> dict[str, Any]:
    """Return the document of a person. Raises StoreFault for an id that cannot be stored."""
    person = stored_person(person)
    document = {"_id": person.memory_id, "v": VERSION}
    return document if person.timezone is None else {**document, "timezone": person.timezone}


def turn_from(document: Document) -> Turn:
    """Read a turn. Raises CorruptRecord."""
    fields = _Fields("turn", document)
    usage = fields.part("usage")
    return Turn(
        turn_id=TurnId(fields.text("_id")),
        memory_id=MemoryId(fields.text("memory_id")),
        session_id=SessionId(fields.text("session_id")),
        audience=Audience(fields.text("audience")),
        at=fields.time("at"),
        human=fields.text("human"),
        reply=fields.text("reply"),
        replied_at=fields.time("replied_at"),
        outcome=fields.one_of(Outcome, "outcome"),
        model=fields.text("model"),
        usage=None if usage is None else _usage_from(usage),
    )


def session_from(document: Document) -> Session:
    """Read a session. Raises CorruptRecord."""
    fields = _Fields("session", document)
    running = fields.part("running")
    window_from = fields.maybe_text("window_from")
    return Session(
        session_id=SessionId(fields.text("_id")),
        memory_id=MemoryId(fields.text("memory_id")),
        audience=Audience(fields.text("audience")),
        started_at=fields.time("started_at"),
        due_at=fields.maybe_time("due_at"),
        state=fields.one_of(SessionState, "state"),
        revision=fields.count("revision"),
        ended_at=fields.maybe_time("ended_at"),
        window_from=None if window_from is None else TurnId(window_from),
        running=None if running is None else _running_from(running),
        summary=fields.maybe_text("summary"),
        summary_model=fields.text("summary_model"),
        owner=fields.maybe_text("owner"),
        attempts=fields.count("attempts"),
        fault=fields.maybe_text("fault"),
        timeout=fields.seconds("timeout"),
    )


def person_from(document: Document) -> Person:
    """Read a person. Raises CorruptRecord."""
    fields = _Fields("person", document)
    return Person(MemoryId(fields.text("_id")), timezone=fields.maybe_text("timezone"))


_Word = TypeVar("_Word", Outcome, SessionState)


class _Fields:
    """Reads fields of one document, and says which one is wrong (its name and kind, never its content)."""

    def __init__(self, kind: str, document: Document, *, part_of: str = "") -> None:
        self._document = document
        self._kind = part_of or f"{kind} {document.get('_id')!r}"
        version = document.get("v")
        if part_of:
            return
        if not isinstance(version, int) or version < 1:
            raise CorruptRecord(f"{self._kind} has no schema version")
        if version > VERSION:
            raise CorruptRecord(f"{self._kind} has schema version {version}, this version reads {VERSION}")

    def text(self, name: str) -> str:
        value = self._document.get(name)
        return value if isinstance(value, str) else self._wrong(name, value)

    def maybe_text(self, name: str) -> str | None:
        return None if self._document.get(name) is None else self.text(name)

    def time(self, name: str) -> datetime:
        value = self._document.get(name)
        if not isinstance(value, datetime) or value.tzinfo is None:
            self._wrong(name, value)
        return value.astimezone(UTC)

    def maybe_time(self, name: str) -> datetime | None:
        return None if self._document.get(name) is None else self.time(name)

    def count(self, name: str) -> int:
        value = self._document.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else self._wrong(name, value)

    def seconds(self, name: str) -> float:
        value = self._document.get(name)
        return value if isinstance(value, float) and value >= 0 else self._wrong(name, value)

    def one_of(self, words: type[_Word], name: str) -> _Word:
        value: Any = self._document.get(name)
        try:
            return words(value)
        except ValueError:
            self._wrong(name, value)

    def part(self, name: str) -> _Fields | None:
        value = self._document.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self._wrong(name, value)
        return _Fields(name, value, part_of=f"{self._kind}, {name}")

    def _wrong(self, name: str, value: object) -> NoReturn:
        kind = "missing" if value is None else f"of type {type(value).__name__} or unknown"
        raise CorruptRecord(f"{self._kind}: the field {name!r} is {kind}")


def _usage_from(fields: _Fields) -> Usage:
    return Usage(
        prompt=fields.count("prompt"), completion=fields.count("completion"), cached=fields.count("cached")
    )


def _running_from(fields: _Fields) -> RunningSummary:
    return RunningSummary(fields.text("text"), TurnId(fields.text("through")))
