"""What goes into a document comes out of it, and what cannot be read is told by name and never by content."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from bson import decode, encode
from bson.codec_options import CodecOptions
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import CorruptRecord, StoreFault
from memory.stores import documents
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
from tests.stores.values import full_session, session, turn

any_text = st.text(alphabet=st.characters(exclude_categories=()))  # lone surrogates too
ids = st.text(min_size=1)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(datetime(1900, 1, 1), datetime(2900, 1, 1), timezones=zones)  # noqa: DTZ001 - Hypothesis adds the zone
numbers = st.integers(0, 2**62)


def built(kind: Callable[..., Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, **fields)


turns: st.SearchStrategy[Turn] = built(
    Turn,
    turn_id=ids.map(TurnId),
    memory_id=ids.map(MemoryId),
    session_id=ids.map(SessionId),
    audience=ids.map(Audience),
    at=times,
    human=any_text,
    reply=any_text,
    replied_at=times,
    outcome=st.sampled_from(Outcome),
    model=any_text,
    usage=st.none() | built(Usage, prompt=numbers, completion=numbers, cached=numbers),
)
sessions: st.SearchStrategy[Session] = built(
    Session,
    session_id=ids.map(SessionId),
    memory_id=ids.map(MemoryId),
    audience=ids.map(Audience),
    started_at=times,
    due_at=st.none() | times,
    state=st.sampled_from(SessionState),
    revision=numbers,
    ended_at=st.none() | times,
    window_from=st.none() | ids.map(TurnId),
    running=st.none() | built(RunningSummary, text=any_text, through=ids.map(TurnId)),
    summary=st.none() | any_text,
    summary_model=any_text,
    owner=st.none() | ids,
    attempts=numbers,
    fault=st.none() | ids,
    timeout=st.floats(0, 1e9),
)


def through_bson(document: dict[str, Any]) -> dict[str, Any]:
    return decode(encode(document), CodecOptions(tz_aware=True))


@given(turns)
def test_a_turn_is_read_as_it_is_stored(said: Turn) -> None:
    assert documents.turn_from(through_bson(documents.turn_document(said))) == documents.stored_turn(said)


@given(sessions)
def test_a_session_is_read_as_it_is_stored(held: Session) -> None:
    document = through_bson(documents.session_document(held))
    assert documents.session_from(document) == documents.stored_session(held)


@given(ids, st.none() | any_text)
def test_a_person_is_read_as_they_are_stored(memory_id: str, zone: str | None) -> None:
    person = Person(MemoryId(memory_id), timezone=zone)
    document = through_bson(documents.person_document(person))
    assert documents.person_from(document) == documents.stored_person(person)


@given(turns)
def test_what_is_stored_is_stored_the_same_again(said: Turn) -> None:
    once = documents.stored_turn(said)
    assert documents.stored_turn(once) == once


@given(any_text)
def test_only_lone_surrogates_are_changed(text: str) -> None:
    cleaned = documents.clean(text)
    cleaned.encode()
    assert cleaned.replace("\ufffd", "") == _paired(text).replace("\ufffd", "")
    assert len(cleaned) <= len(text)


def _paired(text: str) -> str:
    """Join the halves that stand side by side, and leave out those that are alone."""
    joined = re.sub("[\ud800-\udbff][\udc00-\udfff]", lambda pair: _whole(pair[0]), text)
    return re.sub("[\ud800-\udfff]", "", joined)


def _whole(pair: str) -> str:
    return chr(0x10000 + ((ord(pair[0]) - 0xD800) << 10) + ord(pair[1]) - 0xDC00)


@given(times)
def test_a_time_loses_less_than_a_millisecond_and_only_backwards(when: datetime) -> None:
    cut = documents.whole_ms(when)
    assert timedelta(0) <= when - cut < timedelta(milliseconds=1)
    assert cut.tzinfo is UTC
    assert cut.microsecond % 1000 == 0


def test_a_naive_time_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        documents.whole_ms(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


def test_two_ids_never_become_one() -> None:
    with pytest.raises(StoreFault):
        documents.turn_document(turn("t\ud800"))


def test_a_field_that_is_none_is_absent() -> None:
    document = documents.session_document(session(due=None, state=SessionState.CLOSED))
    assert None not in document.values()
    assert "live" not in document
    assert documents.session_document(session())["live"] is True
    assert documents.session_document(full_session())["live"] is True


@given(st.data())
def test_a_spoiled_document_is_a_corrupt_record_or_still_a_session(data: st.DataObject) -> None:
    document = documents.session_document(full_session())
    name = data.draw(st.sampled_from(sorted(document)))
    odd = st.none() | st.booleans() | st.floats() | st.text() | st.binary() | st.lists(st.integers())
    document[name] = data.draw(odd | st.dictionaries(st.text(), st.integers()))
    said = ""
    try:
        read = documents.session_from(document)
    except CorruptRecord as fault:
        said = str(fault)
    else:
        assert isinstance(read, Session)
    assert "tea" not in said
