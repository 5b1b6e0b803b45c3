"""What an export holds, an import restores, wherever it lands; a file that is not valid changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import BadImport
from memory.portability import Portrait, from_json, to_json
from memory.types import (
    DIRECT,
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
from tests.clock import NOON
from tests.memory.process import ANN, TIMEOUT

BOB = MemoryId("terminal:bob")
LONG = timedelta(seconds=TIMEOUT)

# A valid file, of any content


def ids(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.text("0123456789abcdef", min_size=32, max_size=32).map(kind)


times = st.integers(0, 10**10).map(lambda passed: datetime.fromtimestamp(passed / 1000, UTC))
words = st.text(st.characters(), max_size=12)
audiences = st.sampled_from([DIRECT, Audience("discord:1:2"), Audience("群")])
counts = st.integers(0, 2**53 - 1)
usages = st.builds(Usage, counts, counts, counts)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    state = draw(st.sampled_from(SessionState))
    return Session(
        draw(ids(SessionId)),
        ANN,
        draw(audiences),
        started_at=draw(times),
        due_at=draw(times) if state is SessionState.OPEN else None,
        state=state,
        ended_at=draw(st.none() | times),
        window_from=draw(st.none() | ids(TurnId)),
        running=draw(st.none() | st.builds(RunningSummary, words, ids(TurnId))),
        summary=draw(st.none() | words),
        summary_model=draw(words),
        timeout=draw(st.floats(0, 1e6)),
    )


@st.composite
def turns_of(draw: st.DrawFn, session: Session) -> list[Turn]:
    turns = st.builds(
        lambda wait, **fields: Turn(
            memory_id=ANN,
            session_id=session.session_id,
            audience=session.audience,
            at=session.started_at + timedelta(seconds=wait),
            **fields,
        ),
        st.integers(0, 10**6),
        turn_id=ids(TurnId),
        human=words,
        reply=words,
        replied_at=times,
        outcome=st.sampled_from(Outcome),
        model=words,
        usage=st.none() | usages,
    )
    return draw(st.lists(turns, max_size=3))


@st.composite
def portraits(draw: st.DrawFn) -> Portrait:
    zone = draw(st.sampled_from([None, "Asia/Shanghai", "Europe/Berlin"]))
    chosen = draw(st.lists(sessions(), max_size=3, unique_by=lambda session: session.session_id))
    turns = [turn for session in chosen for turn in draw(turns_of(session))]
    return Portrait(Person(ANN, zone), tuple(chosen), tuple(turns))


@given(portraits())
def test_what_goes_out_comes_back(portrait: Portrait) -> None:
    assert from_json(json.loads(json.dumps(to_json(portrait)))) == portrait


# A file that is not valid


def turn(number: int, session: Session, text: str = "") -> Turn:
    at = session.started_at + timedelta(seconds=number)
    return Turn(
        TurnId(f"{int(at.timestamp()) * 1000:012x}{number:020x}"),
        session.memory_id,
        session.session_id,
        session.audience,
        at,
        text or f"turn {number} of {int(session.session_id, 16)};",
        "yes",
        at,
        usage=Usage(10, 5, 2),
    )


def session_in(
    state: SessionState, number: int = 1, *, memory_id: MemoryId = ANN, at: datetime = NOON
) -> Session:
    ended = {} if state is SessionState.OPEN else {"ended_at": at + LONG}
    return Session(
        SessionId(f"{number:032x}"),
        memory_id,
        DIRECT,
        started_at=at,
        due_at=at + LONG if state is SessionState.OPEN else None,
        state=state,
        summary="From the file." if state is SessionState.CLOSED else None,
        running=RunningSummary("So far.", TurnId("0" * 32)),
        window_from=TurnId("1" * 32),
        **ended,  # type: ignore[arg-type] # one field, of the right type
    )


def valid_file() -> dict[str, Any]:
    session = session_in(SessionState.CLOSED)
    return to_json(
        Portrait(Person(ANN, "Asia/Tokyo"), (session,), (turn(1, session), turn(2, session))),
    )


Values = list[Any]

NO_TEXT: Values = [None, 1, 1.5, True, [], {}, ["text"]]
NO_NAME: Values = [*NO_TEXT, "", "\ud800"]
NO_ID: Values = [
    *NO_TEXT,
    "",
    "0" * 31,
    "0" * 33,
    "G" * 32,
    "A" * 32,
    "０" * 32,
    "0" * 31 + "\n",
    "-" + "0" * 31,
]
NO_COUNT: Values = [None, "1", True, -1, 0.5, 2**53, 10**400, float("nan"), [], {}]
NO_SECONDS: Values = [None, "1", True, -1, -0.5, 1e9, 10**400, float("nan"), float("inf"), [], {}]
NO_TIME: Values = [
    *NO_TEXT,
    "",
    "now",
    "2026-03-04",
    "2026-03-04T12:00:00",
    "2026-13-04T12:00:00Z",
    "0001-01-01T00:00:00+10:00",
    "1969-12-31T23:59:59Z",
    "9999-12-31T23:59:59Z",
    "9000-01-01T00:00:00Z",
    "9999-12-31T23:59:59-10:00",
    "12:00\ud800Z",
]


def but_none(bad: Values) -> Values:
    """Where a field may be null, all else stays forbidden."""
    return [value for value in bad if value is not None]


BAD: dict[str, Values] = {
    "format": [*NO_TEXT, "", "somebody-elses-export"],
    "version": [*NO_COUNT, 0, 2],
    "memory_id": NO_NAME,
    "timezone": [
        *but_none(NO_TEXT),
        "",
        "Mars/Olympus",
        "../etc/passwd",
        "Europe",
        "\0",
        "\ud800",
        "x" * 5000,
    ],
    "sessions": [*NO_TEXT[:4], {}, "text"],
    "sessions[0]": [*NO_TEXT[:5], "text"],
    "sessions[0].id": NO_ID,
    "sessions[0].audience": NO_NAME,
    "sessions[0].state": [*NO_TEXT, "", "CLOSED", "ended"],
    "sessions[0].started_at": NO_TIME,
    "sessions[0].ended_at": but_none(NO_TIME),
    "sessions[0].due_at": but_none(NO_TIME),
    "sessions[0].window_from": but_none(NO_ID),
    "sessions[0].running": [1, True, "text", []],
    "sessions[0].running.text": NO_TEXT,
    "sessions[0].running.through": NO_ID,
    "sessions[0].summary": but_none(NO_TEXT),
    "sessions[0].summary_model": NO_TEXT,
    "sessions[0].timeout": NO_SECONDS,
    "turns": [*NO_TEXT[:4], {}, "text"],
    "turns[1]": [*NO_TEXT[:5], "text"],
    "turns[1].id": NO_ID,
    "turns[1].session": [*NO_ID, "f" * 32],
    "turns[1].audience": [*NO_NAME, "another audience than its session's"],
    "turns[1].at": [*NO_TIME, "2026-03-04T11:59:59.999Z"],  # before its session
    "turns[1].human": NO_TEXT,
    "turns[1].reply": NO_TEXT,
    "turns[1].replied_at": NO_TIME,
    "turns[1].outcome": [*NO_TEXT, "", "great"],
    "turns[1].model": NO_TEXT,
    "turns[1].tokens": [1, True, "text", []],
    "turns[1].tokens.prompt": NO_COUNT,
    "turns[1].tokens.completion": NO_COUNT,
    "turns[1].tokens.cached": NO_COUNT,
}


def places(value: Any, where: str = "") -> Iterator[str]:
    """Name every place of a file."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{where}{key}"
            yield from places(inner, f"{where}{key}.")
    if isinstance(value, list):
        for number, inner in enumerate(value):
            here = f"{where.removesuffix('.')}[{number}]"
            yield here
            yield from places(inner, f"{here}.")


def holder(file: Any, place: str) -> tuple[Any, str | int]:
    """Find what holds a place, and as what."""
    steps: list[str | int] = []
    for step in place.replace("[", ".[").split("."):
        steps.append(int(step[1:-1]) if step.startswith("[") else step)
    for inner in steps[:-1]:
        file = file[inner]
    return file, steps[-1]


def test_every_field_of_a_file_is_in_the_table_of_what_it_may_not_be() -> None:
    assert {place for place in places(valid_file()) if "turns[0]" not in place} == set(BAD)


@pytest.mark.parametrize("place", BAD)
def test_a_wrong_value_is_refused_and_its_place_is_named(place: str) -> None:
    for value in BAD[place]:
        file = valid_file()
        inner, key = holder(file, place)
        inner[key] = value
        with pytest.raises(BadImport) as refused:
            from_json(file)
        told = "no export" if place == "format" and isinstance(value, str) else place
        assert told in str(refused.value), (value, str(refused.value))


@pytest.mark.parametrize("place", [place for place in BAD if not place.endswith("]")])
def test_a_missing_field_is_refused_and_its_place_is_named(place: str) -> None:
    file = valid_file()
    inner, key = holder(file, place)
    del inner[key]
    with pytest.raises(BadImport, match="missing") as refused:
        from_json(file)
    assert str(refused.value).startswith(f"{place}:")


@pytest.mark.parametrize("value", [None, 1, "text", [], [1], True])
def test_what_is_no_file_at_all_is_refused(value: object) -> None:
    with pytest.raises(BadImport, match="the file"):
        from_json(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(st.data())
def test_whatever_a_file_is_changed_to_it_is_taken_or_refused_and_nothing_else(data: st.DataObject) -> None:
    file = valid_file()
    chosen = data.draw(st.lists(st.sampled_from(sorted(places(file))), min_size=1, max_size=3))
    for place in sorted(chosen, key=len, reverse=True):  # the inner ones first
        inner, key = holder(file, place)
        inner[key] = data.draw(json_values)
    try:
        portrait = from_json(file)
    except BadImport as refused:
        assert str(refused)  # noqa: PT017 - most are refused, and what counts is that nothing else is raised
    else:
        assert from_json(to_json(portrait)) == portrait


@given(json_values)
def test_no_json_at_all_makes_it_fail_otherwise(value: object) -> None:
    with pytest.raises(BadImport):
        from_json(value)
