"""The store is away, for a moment or for a whole conversation: every turn arrives once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.stores.inmemory import InMemoryStore
from memory.types import SessionState
from tests.clock import FakeClock, settle
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN, KEY, TIMEOUT, Process, check_laws, everything, heal, texts
from tests.memory.scripted import ScriptedCompleter


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def base() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def store(base: InMemoryStore) -> FlakyStore:
    return FlakyStore(base)


@pytest.fixture
def model() -> ScriptedCompleter:
    return ScriptedCompleter()


@pytest.fixture
async def process(store: FlakyStore, clock: FakeClock, model: ScriptedCompleter) -> AsyncIterator[Process]:
    process = await Process(store, clock, model).start()
    yield process
    store.away = False
    await process.stop()


async def all_closed(base: InMemoryStore) -> bool:
    sessions = (await everything(base))[1]
    return {session.state for session in sessions} == {SessionState.CLOSED}


async def test_away_at_the_beginning_of_a_turn(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore
) -> None:
    await process.say("before")
    await clock.advance(10)
    store.away = True
    conversation = await process.sessions.begin(KEY)
    assert [turn.human for turn in conversation.turns] == ["before"]
    store.away = False
    await process.finish(conversation, "during")
    await process.say("after")
    assert await texts(base) == ["before", "during", "after"]
    assert len((await everything(base))[1]) == 1


async def test_away_at_the_end_of_a_turn(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore
) -> None:
    await process.say("before")
    conversation = await process.sessions.begin(KEY)
    store.away = True
    await process.finish(conversation, "during")
    assert await texts(base) == ["before"]
    store.away = False
    await process.say("after")
    await clock.advance(60)
    assert await texts(base) == ["before", "during", "after"]
    conversation = await process.sessions.begin(KEY)
    assert [turn.human for turn in conversation.turns] == ["before", "during", "after"]
    await check_laws(base)


async def test_away_for_a_whole_conversation(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore, model: ScriptedCompleter
) -> None:
    store.away = True
    said = [str(number) for number in range(5)]
    for text in said:
        conversation = await process.sessions.begin(KEY)
        assert [turn.human for turn in conversation.turns] == said[: said.index(text)]
        await process.finish(conversation, text)
        await clock.advance(60)
    store.away = False
    await clock.advance(60)
    assert await texts(base) == said
    assert len((await everything(base))[1]) == 1
    await check_laws(base)
    await clock.advance(TIMEOUT)
    assert await all_closed(base)
    assert all(f"Person: {text}" in model.read for text in said)


async def test_away_for_two_conversations_with_a_long_gap_between_them(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore, model: ScriptedCompleter
) -> None:
    store.away = True
    await process.say("first;")
    await clock.advance(2 * TIMEOUT)
    await process.say("second;")
    await clock.advance(10)
    store.away = False
    await clock.advance(60)
    turns, sessions = await everything(base)
    assert [turn.human for turn in turns] == ["first;", "second;"]
    assert [turn.session_id for turn in turns] == [session.session_id for session in sessions]
    await clock.advance(TIMEOUT)
    assert await all_closed(base)
    assert all("second;" not in prompt for prompt in model.prompts if "first;" in prompt)


async def test_away_at_the_deadline_and_back_later(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore
) -> None:
    await process.say("before")
    await clock.advance(10)
    store.away = True
    await clock.advance(2 * TIMEOUT)
    store.away = False
    await process.sessions.sweep()
    await settle()
    assert await all_closed(base)


async def test_a_turn_that_arrives_after_its_session_has_ended_still_gets_into_the_summary(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore, model: ScriptedCompleter
) -> None:
    other = await Process(FlakyStore(base), clock, model).start()
    await process.say("first;")
    conversation = await process.sessions.begin(KEY)
    store.away = True
    await process.finish(conversation, "late;")
    await clock.advance(TIMEOUT)
    await other.sessions.sweep()
    await settle()
    assert await all_closed(base), "the other process has ended it"
    await other.say("meanwhile;")
    store.away = False
    await clock.advance(60)
    turns, sessions = await everything(base)
    assert [turn.human for turn in turns] == ["first;", "late;", "meanwhile;"]
    assert turns[0].session_id == turns[1].session_id != turns[2].session_id
    assert sessions[0].state is SessionState.CLOSED
    assert "first;" in model.prompts[-1]
    assert "late;" in model.prompts[-1]
    await check_laws(base)
    await other.stop()


async def test_a_session_begun_without_the_store_meets_one_that_another_process_has_opened_later(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore, model: ScriptedCompleter
) -> None:
    other = await Process(FlakyStore(base), clock, model).start()
    store.away = True
    await process.say("early;")
    await clock.advance(5)
    await other.say("other;")
    store.away = False
    await clock.advance(60)
    await process.say("together;")
    await clock.advance(60)
    await check_laws(base)
    conversation = await process.sessions.begin(KEY)
    assert {turn.human for turn in conversation.turns} == {"early;", "other;", "together;"}
    process.sessions.abandon(conversation)
    await clock.advance(2 * TIMEOUT)
    assert await all_closed(base)
    assert all(text in model.read for text in ("early;", "other;", "together;"))
    await other.stop()


async def test_a_session_ended_by_hand_takes_its_late_turns_with_it(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore
) -> None:
    store.away = True
    first = await process.say("before")
    store.away = False
    assert await process.sessions.end(KEY)
    await clock.advance(1)
    second = await process.say("after")
    assert first.session_id != second.session_id
    assert await texts(base) == ["before", "after"]
    await check_laws(base)


async def test_a_turn_whose_write_landed_though_the_answer_was_lost_is_there_once(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore
) -> None:
    await process.say("before")
    conversation = await process.sessions.begin(KEY)
    store.die(at_write=len(store.writes) + 1, lands=True, for_good=False)
    await process.finish(conversation, "twice?")
    await clock.advance(60)
    assert await texts(base) == ["before", "twice?"]
    conversation = await process.sessions.begin(KEY)
    assert [turn.human for turn in conversation.turns] == ["before", "twice?"]


async def test_the_end_of_the_process_stores_what_waits(
    process: Process, base: InMemoryStore, store: FlakyStore
) -> None:
    store.away = True
    await process.say("at the last moment")
    store.away = False
    await process.stop()
    assert await texts(base) == ["at the last moment"]
    await check_laws(base)


# Erasing meanwhile


async def test_a_turn_of_a_person_erased_while_it_was_under_way_is_not_stored(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    await process.say("before")
    conversation = await process.sessions.begin(KEY)
    process.sessions.invalidate(ANN, erased=True)
    await base.erase(ANN)
    await process.finish(conversation, "under way")
    await clock.advance(2 * TIMEOUT)
    await process.sessions.sweep()
    assert not await base.holdings(ANN)


async def test_also_when_its_session_was_ended_by_hand_before(process: Process, base: InMemoryStore) -> None:
    conversation = await process.sessions.begin(KEY)
    await process.sessions.end(KEY)
    process.sessions.invalidate(ANN, erased=True)
    await base.erase(ANN)
    await process.finish(conversation, "under way")
    assert not await base.holdings(ANN)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_turn_on_its_way_into_the_store_while_the_person_is_erased_does_not_stay(
    process: Process, base: InMemoryStore, store: FlakyStore, when: str
) -> None:
    await process.say("before")
    conversation = await process.sessions.begin(KEY)
    gate = store.hold("add_turn", when="before" if when == "before" else "after")
    finishing = asyncio.ensure_future(process.finish(conversation, "on its way"))
    await gate.reached.wait()
    process.sessions.invalidate(ANN, erased=True)
    await base.erase(ANN)
    gate.passed.set()
    await finishing
    assert not await base.holdings(ANN)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_session_being_opened_while_the_person_is_erased_is_there_for_its_turn(
    process: Process, base: InMemoryStore, store: FlakyStore, when: str
) -> None:
    gate = store.hold("open_session", when="before" if when == "before" else "after")
    beginning = asyncio.ensure_future(process.sessions.begin(KEY))
    await gate.reached.wait()
    process.sessions.invalidate(ANN, erased=True)
    await base.erase(ANN)
    process.sessions.invalidate(ANN, erased=True)
    gate.passed.set()
    await process.finish(await beginning, "a new beginning")
    assert await texts(base) == ["a new beginning"]
    await check_laws(base)


@pytest.mark.parametrize("call", ["open_session", "add_turn"])
async def test_a_late_turn_on_its_way_while_the_person_is_erased_does_not_stay(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore, call: str
) -> None:
    store.away = True
    await process.say("late")
    store.away = False
    gate = store.hold(call, when="after")
    await clock.advance(1)
    await gate.reached.wait()
    process.sessions.invalidate(ANN, erased=True)
    await base.erase(ANN)
    process.sessions.invalidate(ANN, erased=True)
    gate.passed.set()
    await clock.advance(60)
    assert not await base.holdings(ANN)


async def test_what_was_erased_from_an_open_session_is_no_longer_shown(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    first = await process.say("to be forgotten")
    await process.say("kept")
    await base.revise(ANN, first.session_id, due_at=clock.now())
    await base.delete_turns(ANN, [first.turn_id])
    process.sessions.invalidate(ANN, erased=False)
    conversation = await process.sessions.begin(KEY)
    assert [turn.human for turn in conversation.turns] == ["kept"]
    await process.finish(conversation, "and on")
    assert await texts(base) == ["kept", "and on"]
    assert len((await everything(base))[1]) == 1


# At any moment


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["say", "say", "say", "away", "back", "wait"]), st.integers(1, 2500)),
        max_size=20,
    )
)
async def test_however_often_it_is_away_every_turn_is_stored_once_in_order_in_a_session(
    steps: list[tuple[str, int]],
) -> None:
    base, clock, model = InMemoryStore(), FakeClock(), ScriptedCompleter()
    store = FlakyStore(base)
    process = await Process(store, clock, model).start()
    said: list[str] = []
    for what, wait in steps:
        if what == "say":
            said.append(f"turn {len(said)};")
            await process.say(said[-1])
        elif what != "wait":
            store.away = what == "away"
        await clock.advance(wait)
    store.away = False
    await clock.advance(61)
    assert await texts(base) == said
    await check_laws(base)
    await process.stop()
    await heal(base, clock, model)
    assert await all_closed(base) or not said
    assert all(text in model.read for text in said)
