"""Everything of one person as JSON, and back: what an export holds, an import restores.

The file is the person's own, so it is plain and complete; coming back it is untrusted like any other input
and is checked field by field before anything is written. Importing twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from memory.days import find_zone
from memory.errors import BadImport
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
    time_ordered_id,
)

FORMAT, VERSION = "omoide-export", 1

# Outside of these no time is honest, and sums with it would run out of what a datetime can hold.
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
WHILE_STORING = timedelta(minutes=2)  # nobody takes a session up before its turns are there too

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Portrait:
    """Everything that is stored of one person."""

    person: Person
    sessions: tuple[Session, ...]
    turns: tuple[Turn, ...]


def moment(at: datetime | None) -> str | None:
    """Write a time as ISO 8601 in UTC, to the millisecond."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_json(portrait: Portrait) -> Json:
    """Turn everything into plain JSON values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "memory_id": portrait.person.memory_id,
        "timezone": portrait.person.timezone,
        "sessions": [_session_to_json(session) for session in portrait.sessions],
        "turns": [turn_to_json(turn) for turn in portrait.turns],
    }


def _session_to_json(session: Session) -> Json:
    running = session.running
    return {
        "id": session.session_id,
        "audience": session.audience,
        "state": session.state.value,
        "started_at": moment(session.started_at),
        "ended_at": moment(session.ended_at),
        # While it is closing this is a lease or the next try: of this machine, and not of the person.
        "due_at": moment(session.due_at) if session.state is SessionState.OPEN else None,
        "window_from": session.window_from,
        "running": {"text": running.text, "through": running.through} if running else None,
        "summary": session.summary,
        "summary_model": session.summary_model,
        "timeout": session.timeout,
    }


def turn_to_json(turn: Turn) -> Json:
    """Turn a turn into plain JSON values."""
    usage = turn.usage
    return {
        "id": turn.turn_id,
        "session": turn.session_id,
        "audience": turn.audience,
        "at": moment(turn.at),
        "human": turn.human,
        "reply": turn.reply,
        "replied_at": moment(turn.replied_at),
        "outcome": turn.outcome.value,
        "model": turn.model,
        "tokens": {"prompt": usage.prompt, "completion": usage.completion, "cached": usage.cached}
        if usage
        else None,
    }


def from_json(value: object) -> Portrait:
    """Check an export and take it apart. Raises BadImport, which names the place that is wrong."""
    top = _Reader(_mapping(value, "the file"), "")
    if top.text("format") != FORMAT:
        raise BadImport(f"this is no export of Omoide: format is not {FORMAT!r}")
    if top.whole("version") != VERSION:
        raise BadImport(f"version {top.whole('version')} of an export; this Omoide reads version {VERSION}")
    memory_id = MemoryId(top.name("memory_id"))
    timezone = top.maybe("timezone", top.text)
    if timezone is not None and find_zone(timezone) is None:
        raise BadImport(f"timezone: no time zone is called {timezone!r}")
    sessions = tuple(_session(reader, memory_id) for reader in top.each("sessions"))
    turns = tuple(_turn(reader, memory_id) for reader in top.each("turns"))
    _check_places(sessions, turns)
    return Portrait(Person(memory_id, timezone), sessions, turns)


def _check_places(sessions: Sequence[Session], turns: Sequence[Turn]) -> None:
    """Check that each turn fits the session it names."""
    by_id = {session.session_id: session for session in sessions}
    for number, turn in enumerate(turns):
        session = by_id.get(turn.session_id)
        if session is None:
            raise BadImport(f"turns[{number}].session: there is no such session in the file")
        if turn.audience != session.audience:
            raise BadImport(f"turns[{number}].audience: its session has another one")
        if turn.at < session.started_at:
            raise BadImport(f"turns[{number}].at: its session begins later")


def _session(reader: _Reader, memory_id: MemoryId) -> Session:
    running = reader.maybe("running", reader.inner)
    return Session(
        session_id=SessionId(reader.identity("id")),
        memory_id=memory_id,
        audience=Audience(reader.name("audience")),
        started_at=reader.moment("started_at"),
        due_at=reader.maybe("due_at", reader.moment),
        state=SessionState(reader.one_of("state", [state.value for state in SessionState])),
        ended_at=reader.maybe("ended_at", reader.moment),
        window_from=reader.maybe("window_from", lambda key: TurnId(reader.identity(key))),
        running=RunningSummary(running.text("text"), TurnId(running.identity("through")))
        if running
        else None,
        summary=reader.maybe("summary", reader.text),
        summary_model=reader.text("summary_model"),
        timeout=reader.seconds("timeout"),
    )


def _turn(reader: _Reader, memory_id: MemoryId) -> Turn:
    tokens = reader.maybe("tokens", reader.inner)
    return Turn(
        turn_id=TurnId(reader.identity("id")),
        memory_id=memory_id,
        session_id=SessionId(reader.identity("session")),
        audience=Audience(reader.name("audience")),
        at=reader.moment("at"),
        human=reader.text("human"),
        reply=reader.text("reply"),
        replied_at=reader.moment("replied_at"),
        outcome=Outcome(reader.one_of("outcome", [outcome.value for outcome in Outcome])),
        model=reader.text("model"),
        usage=Usage(tokens.whole("prompt"), tokens.whole("completion"), tokens.whole("cached"))
        if tokens
        else None,
    )


def landing(session: Session, turns: Sequence[Turn], *, now: datetime, alone: bool) -> Session:
    """Return a session as it may be stored, so that somebody takes it up unless it is closed.

    One that is open goes on if its time is not over and none else is open (`alone`); otherwise it ends. What
    is not closed then is due in a while, when its turns are there too.
    """
    session = _with_honest_window(session, now)
    if session.state is SessionState.CLOSED:
        return replace(session, due_at=None)
    due_at, silence = session.due_at or session.started_at, timedelta(seconds=session.timeout)
    deadline = max((due_at, *(turn.replied_at + silence for turn in turns)))
    if session.state is SessionState.OPEN:
        if alone and now < deadline <= now + 2 * silence:  # later than that is no honest time
            return replace(session, due_at=due_at if due_at > now else deadline)
        session = replace(session, ended_at=min(deadline, now))
    return replace(
        session,
        state=SessionState.CLOSING,
        due_at=now + WHILE_STORING,
        ended_at=session.ended_at or min(deadline, now),
    )


def _with_honest_window(session: Session, now: datetime) -> Session:
    """Show everything where the window is said to begin after all that can have been said."""
    latest = time_ordered_id(now + timedelta(milliseconds=1))
    if max(session.window_from or "", session.running.through if session.running else "") <= latest:
        return session
    return replace(session, window_from=None, running=None)


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise BadImport(f"{where}: an object was expected")
    return value


class _Reader:
    """Reads checked fields of one JSON object; `where` leads to it."""

    def __init__(self, fields: Mapping[str, object], where: str) -> None:
        self._fields = fields
        self._where = where

    def _get(self, key: str) -> object:
        if key not in self._fields:
            raise BadImport(f"{self._where}{key}: missing")
        return self._fields[key]

    def maybe(self, key: str, read: Callable[[str], T]) -> T | None:
        return None if self._get(key) is None else read(key)

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise BadImport(f"{self._where}{key}: a text was expected")
        return value

    def name(self, key: str) -> str:
        value = self.text(key)
        if not value or any("\ud800" <= char <= "\udfff" for char in value):
            raise BadImport(f"{self._where}{key}: a name of valid characters was expected")
        return value

    def identity(self, key: str) -> str:
        value = self.text(key)
        if len(value) != 32 or not set(value) <= set("0123456789abcdef"):
            raise BadImport(f"{self._where}{key}: an id of 32 hexadecimal digits was expected")
        return value

    def whole(self, key: str) -> int:
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
            raise BadImport(f"{self._where}{key}: a whole number from 0 was expected")
        return value

    def seconds(self, key: str) -> float:
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise BadImport(f"{self._where}{key}: a number of seconds was expected")
        return float(value)

    def one_of(self, key: str, choices: Sequence[str]) -> str:
        value = self.text(key)
        if value not in choices:
            raise BadImport(f"{self._where}{key}: one of {', '.join(choices)} was expected")
        return value

    def moment(self, key: str) -> datetime:
        try:
            at = datetime.fromisoformat(self.text(key))
            if at.tzinfo is not None and _EARLIEST <= at < _LATEST:
                return at.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise BadImport(f"{self._where}{key}: a time with its zone, in ISO 8601, was expected")

    def inner(self, key: str) -> _Reader:
        return _Reader(_mapping(self._get(key), f"{self._where}{key}"), f"{self._where}{key}.")

    def each(self, key: str) -> list[_Reader]:
        values = self._get(key)
        if not isinstance(values, list):
            raise BadImport(f"{self._where}{key}: a list was expected")
        return [
            _Reader(_mapping(value, f"{key}[{number}]"), f"{key}[{number}].")
            for number, value in enumerate(values)
        ]
