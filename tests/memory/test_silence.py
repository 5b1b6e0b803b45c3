"""What people say stays out of the log above debug, also when everything goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator

import pytest

from memory.errors import CompletionFault, CorruptRecord, StoreUnavailable
from memory.stores.inmemory import InMemoryStore
from tests.clock import FakeClock, settle
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN, KEY, TIMEOUT, UTC_ZONE, Process, heal, texts
from tests.memory.scripted import Held, ScriptedCompleter

MARKER = "xyzzy-secret"


def caused(fault: CompletionFault, by: Exception) -> CompletionFault:
    fault.__cause__ = by
    return fault


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Everything above debug that was logged, checked for the marker at the end of the test."""
    caplog.set_level(logging.DEBUG)
    yield caplog
    form = logging.Formatter("%(name)s %(message)s")
    for record in caplog.get_records("call"):
        assert record.levelno <= logging.DEBUG or MARKER not in form.format(record)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store() -> FlakyStore:
    return FlakyStore(InMemoryStore())


async def talk(process: Process, times: int = 3) -> None:
    for number in range(times):
        await process.say(f"{MARKER} {number}")
        await process.clock.advance(5)


async def test_in_a_talk_with_its_summary(
    store: FlakyStore, clock: FakeClock, logged: pytest.LogCaptureFixture
) -> None:
    process = await Process(store, clock, ScriptedCompleter(default=MARKER)).start()
    await talk(process)
    await clock.advance(TIMEOUT)
    await process.stop()
    assert any(record.levelno == logging.INFO for record in logged.records), "something was logged"


@pytest.mark.parametrize(
    "fault",
    [
        CompletionFault(MARKER),
        caused(CompletionFault(MARKER), ValueError(MARKER)),
        KeyError(MARKER),
        UnicodeDecodeError("utf-8", MARKER.encode(), 0, 1, MARKER),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_when_the_model_fails_with_what_it_was_told(
    store: FlakyStore, clock: FakeClock, logged: pytest.LogCaptureFixture, fault: Exception
) -> None:
    process = await Process(store, clock, ScriptedCompleter(default=fault)).start()
    await talk(process)
    conversation = await process.sessions.begin(KEY)
    process.folder.fold(conversation, through=conversation.turns[1].turn_id, zone=UTC_ZONE)
    await settle()
    process.sessions.abandon(conversation)
    await clock.advance(2 * TIMEOUT)
    await process.stop()
    assert any(record.levelno >= logging.WARNING for record in logged.records), "the failure was logged"


async def test_when_the_store_is_away_and_back(
    store: FlakyStore, clock: FakeClock, logged: pytest.LogCaptureFixture
) -> None:
    process = await Process(store, clock).start()
    await talk(process)
    store.away = True
    await talk(process)
    await clock.advance(2 * TIMEOUT)
    await talk(process)
    store.away = False
    await clock.advance(60)
    store.away = True
    await talk(process)
    await process.stop()
    assert any(record.levelno == logging.ERROR for record in logged.records), "turns were lost at the end"


async def test_when_turns_cannot_be_stored_or_read(
    store: FlakyStore, clock: FakeClock, logged: pytest.LogCaptureFixture
) -> None:
    process = await Process(store, clock).start()
    await talk(process)
    cause = ValueError(f"cannot encode {MARKER}")
    fault = CorruptRecord("a turn cannot be stored")
    fault.__cause__ = cause
    store.fail("add_turn", fault)
    await talk(process)
    await clock.advance(60)
    store.fail("add_turn", None)
    store.fail("turns", fault)
    await clock.advance(2 * TIMEOUT)
    await process.stop()
    assert any("dropped" in record.message for record in logged.records)


async def test_when_the_person_is_erased_and_the_process_dies(
    store: FlakyStore, clock: FakeClock, logged: pytest.LogCaptureFixture
) -> None:
    model = ScriptedCompleter(Held(MARKER))
    process = await Process(store, clock, model).start()
    await talk(process)
    await clock.advance(TIMEOUT)
    await talk(process)
    conversation = await process.sessions.begin(KEY)
    process.sessions.invalidate(ANN, erased=True)
    await store.erase(ANN)
    await process.finish(conversation, MARKER)
    await talk(process)
    store.away = True
    with contextlib.suppress(StoreUnavailable):
        await asyncio.wait_for(process.sessions.sweep(), 5)
    await process.stop()
    store.away = False
    await heal(store, clock)
    assert len(await texts(store)) == 3
