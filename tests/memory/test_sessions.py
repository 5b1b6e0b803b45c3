"""The life of sessions in one process: opened, moved, ended at their time, taken up again after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.conversation import Conversation
from memory.errors import CorruptRecord
from memory.stores.inmemory import InMemoryStore
from memory.types import DIRECT, Audience, MemoryId, Person, SessionState
from tests.clock import FakeClock, settle
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN, KEY, TIMEOUT, Process, check_laws, everything, texts
from tests.memory.scripted import Held, ScriptedCompleter

LONG = timedelta(seconds=TIMEOUT)


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
    await process.stop()


# Opening, moving, ending


async def test_the_first_turn_opens_a_session_and_the_turn_belongs_to_it(
    process: Process, base: InMemoryStore
) -> None:
    turn = await process.say("hello")
    stored, sessions = await everything(base)
    assert stored == (turn,)
    assert [session.session_id for session in sessions] == [turn.session_id]
    assert sessions[0].state is SessionState.OPEN
    await check_laws(base)


async def test_each_turn_moves_the_deadline(process: Process, clock: FakeClock, base: InMemoryStore) -> None:
    for number in range(10):
        await process.say(str(number))
        await clock.advance(TIMEOUT * 0.9)
    _, sessions = await everything(base)
    assert [session.state for session in sessions] == [SessionState.OPEN]


async def test_a_session_ends_at_its_deadline_and_not_before(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    await process.say("one")
    await clock.advance(600)
    last = await process.say("two")
    await clock.advance(TIMEOUT - 1)
    assert (await everything(base))[1][0].state is SessionState.OPEN
    await clock.advance(1)
    ended = (await everything(base))[1][0]
    assert ended.state is SessionState.CLOSED
    assert ended.ended_at == last.replied_at + LONG


async def test_a_session_ends_once_and_gets_one_summary(
    process: Process, clock: FakeClock, base: InMemoryStore, model: ScriptedCompleter, store: FlakyStore
) -> None:
    await process.say("hello")
    for _ in range(5):
        await clock.advance(TIMEOUT)
        await process.sessions.sweep()
    assert (await everything(base))[1][0].summary == "A short note."
    assert len(model.prompts) == 1
    assert store.writes.count("finish") == 1


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4000), min_size=1, max_size=12))
async def test_a_gap_of_the_timeout_and_only_that_begins_a_new_session(gaps: list[int]) -> None:
    clock, base = FakeClock(), InMemoryStore()
    process = await Process(FlakyStore(base), clock).start()
    turns = [await process.say("first")]
    for gap in gaps:
        await clock.advance(gap)
        turns.append(await process.say("next"))
    for gap, before, after in zip(gaps, turns, turns[1:], strict=False):
        assert (before.session_id == after.session_id) == (gap < TIMEOUT), gap
    await check_laws(base)
    await process.stop()


async def test_a_message_while_the_last_session_is_summarised_opens_the_next_at_once(
    process: Process, clock: FakeClock, base: InMemoryStore, model: ScriptedCompleter
) -> None:
    held = Held("It was held.")
    model.enqueue(held)
    first = await process.say("before")
    await clock.advance(TIMEOUT)
    await held.reached.wait()
    second = await process.say("after")
    assert second.session_id != first.session_id
    states = [session.state for session in (await everything(base))[1]]
    assert states == [SessionState.CLOSING, SessionState.OPEN]
    held.release()
    await settle()
    assert (await everything(base))[1][0].summary == "It was held."
    await check_laws(base)


async def test_the_block_of_a_new_session_has_the_summary_of_the_last(
    process: Process, clock: FakeClock
) -> None:
    await process.say("before")
    await clock.advance(2 * TIMEOUT)
    conversation = await process.sessions.begin(KEY)
    assert [item.text for item in conversation.block.items] == ["A short note."]
    assert conversation.turns == ()


async def test_two_audiences_of_one_person_are_two_conversations(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    group = (ANN, Audience("group:7"))
    direct = await process.say("between us")
    public = await process.say("to all", key=group)
    assert direct.session_id != public.session_id
    conversation = await process.sessions.begin(group)
    assert [turn.human for turn in conversation.turns] == ["to all"]
    process.sessions.abandon(conversation)
    await clock.advance(TIMEOUT)
    assert {session.state for session in (await everything(base))[1]} == {SessionState.CLOSED}


# A turn that takes its time, or comes to nothing


async def test_a_turn_under_way_for_longer_than_the_timeout_keeps_its_session(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    await process.say("before")
    await clock.advance(100)
    conversation = await process.sessions.begin(KEY)
    turn = process.turn(conversation, "slow")
    for _ in range(3):
        await clock.advance(TIMEOUT)
        await process.sessions.sweep()
    slow = await process.sessions.finish(conversation, turn)
    await clock.advance(TIMEOUT - 1)
    after = await process.say("after")
    turns, sessions = await everything(base)
    assert {turn.session_id for turn in turns} == {slow.session_id} == {after.session_id}
    assert len(sessions) == 1
    await check_laws(base)


async def test_a_session_ends_also_after_an_abandoned_turn(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    kept = await process.say("kept")
    await clock.advance(1000)
    process.sessions.abandon(await process.sessions.begin(KEY))
    await clock.advance(TIMEOUT)
    ended = (await everything(base))[1][0]
    assert ended.summary == "A short note."
    assert ended.ended_at is not None
    assert ended.ended_at >= kept.replied_at + LONG
    assert await texts(base) == ["kept"]


async def test_a_session_in_which_nothing_was_said_is_closed_without_a_model(
    process: Process, clock: FakeClock, base: InMemoryStore, model: ScriptedCompleter
) -> None:
    process.sessions.abandon(await process.sessions.begin(KEY))
    await clock.advance(TIMEOUT)
    sessions = (await everything(base))[1]
    assert [(session.state, session.summary) for session in sessions] == [(SessionState.CLOSED, None)]
    assert model.prompts == []


async def test_the_time_runs_out_while_a_turn_is_being_stored(
    process: Process, clock: FakeClock, base: InMemoryStore, store: FlakyStore
) -> None:
    await process.say("before")
    await clock.advance(TIMEOUT - 1)
    conversation = await process.sessions.begin(KEY)
    gate = store.hold("add_turn")
    finishing = asyncio.ensure_future(process.finish(conversation, "in time"))
    await gate.reached.wait()
    await clock.advance(TIMEOUT + 10)
    gate.passed.set()
    await finishing
    turns, sessions = await everything(base)
    assert len({turn.session_id for turn in turns}) == len(sessions) == 1
    assert sessions[0].state is SessionState.OPEN


# A session ended by hand


async def test_a_session_ended_by_hand_ends_now_and_the_next_turn_opens_another(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    first = await process.say("before")
    assert await process.sessions.end(KEY)
    assert not await process.sessions.end(KEY)
    ended_at = clock.now()
    await clock.advance(1)
    second = await process.say("after")
    assert first.session_id != second.session_id
    assert (await everything(base))[1][0].ended_at == ended_at


async def test_a_turn_under_way_while_its_session_is_ended_by_hand_goes_into_an_open_one(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    await process.say("before")
    conversation = await process.sessions.begin(KEY)
    turn = process.turn(conversation, "under way")
    await process.sessions.end(KEY)
    await settle()
    stored = await process.sessions.finish(conversation, turn)
    opened = await base.opened(*KEY)
    assert opened is not None
    assert stored.session_id == opened.session_id
    again = await process.sessions.begin(KEY)
    assert [turn.human for turn in again.turns] == ["under way"]
    process.sessions.abandon(again)
    await check_laws(base)


async def test_a_turn_abandoned_after_its_session_was_ended_leaves_nothing_behind(
    process: Process, base: InMemoryStore
) -> None:
    await process.say("before")
    conversation = await process.sessions.begin(KEY)
    await process.sessions.end(KEY)
    process.sessions.abandon(conversation)
    after = await process.say("after")
    opened = await base.opened(*KEY)
    assert opened is not None
    assert after.session_id == opened.session_id


# The wall clock is set


async def test_a_clock_set_forward_over_the_deadline_ends_the_session(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    first = await process.say("before")
    clock.step(3 * TIMEOUT)
    second = await process.say("after")
    await settle()
    assert first.session_id != second.session_id
    assert [session.summary is not None for session in (await everything(base))[1]] == [True, False]


@pytest.mark.parametrize("back", [5, 600, 86400])
async def test_a_clock_set_back_loses_and_reorders_nothing(
    process: Process, clock: FakeClock, base: InMemoryStore, model: ScriptedCompleter, back: int
) -> None:
    said = [str(number) for number in range(6)]
    for text in said:
        await process.say(text)
        await clock.advance(10)
        if text == "2":
            clock.step(-back)
    assert await texts(base) == said
    await check_laws(base)
    await clock.advance(2 * TIMEOUT + back)
    await process.sessions.sweep()
    await settle()
    assert {session.state for session in (await everything(base))[1]} == {SessionState.CLOSED}
    assert all(f"Person: {text}" in model.read for text in said)


# After a restart


async def restart(process: Process) -> Process:
    await process.stop()
    return await Process(process.store, process.clock).start()


async def test_after_a_restart_a_session_waits_for_the_rest_of_its_time(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    await process.say("one")
    await clock.advance(1200)
    last = await process.say("two")
    await clock.advance(700)
    second = await restart(process)
    await clock.advance(TIMEOUT - 701)
    assert (await everything(base))[1][0].state is SessionState.OPEN
    await clock.advance(1)
    ended = (await everything(base))[1][0]
    assert ended.state is SessionState.CLOSED
    assert ended.ended_at == last.replied_at + LONG
    await second.stop()


async def test_a_session_that_ran_out_while_nobody_was_there_is_ended_at_the_start(
    process: Process, clock: FakeClock, base: InMemoryStore
) -> None:
    last = await process.say("hello")
    await process.stop()
    clock.step(50 * TIMEOUT)
    second = await Process(process.store, clock).start()
    await settle()
    ended = (await everything(base))[1][0]
    assert (ended.state, ended.ended_at) == (SessionState.CLOSED, last.replied_at + LONG)
    await second.stop()


async def test_a_conversation_goes_on_after_a_restart_with_the_same_window_and_block(
    process: Process, clock: FakeClock
) -> None:
    await process.say("long ago")
    await clock.advance(2 * TIMEOUT)
    for number in range(5):
        await process.say(str(number))
    before = await process.sessions.begin(KEY)
    process.sessions.abandon(before)
    second = await restart(process)
    after = await second.sessions.begin(KEY)
    assert (after.turns, after.block, after.size) == (before.turns, before.block, before.size)
    assert after.session.session_id == before.session.session_id
    await second.stop()


# What is held


async def test_an_idle_conversation_is_let_go_of_and_loaded_again_as_it_was(
    store: FlakyStore, clock: FakeClock
) -> None:
    process = await Process(store, clock, most_loaded=2).start()
    people = [(MemoryId(f"terminal:{number}"), DIRECT) for number in range(5)]
    conversations: dict[MemoryId, Conversation] = {}
    for key in people * 3:
        conversations[key[0]] = conversation = await process.sessions.begin(key)
        await process.finish(conversation, f"I am {key[0]}")
    assert sum(conversation.loaded for conversation in conversations.values()) == 2
    for key in people:
        conversation = await process.sessions.begin(key)
        assert [turn.human for turn in conversation.turns] == [f"I am {key[0]}"] * 3
        process.sessions.abandon(conversation)
    await process.stop()


async def test_a_conversation_loaded_again_shows_what_its_window_showed(
    store: FlakyStore, clock: FakeClock
) -> None:
    process = await Process(store, clock, most_loaded=1).start()
    for number in range(6):
        await process.say(str(number))
        await clock.advance(1)
    conversation = await process.sessions.begin(KEY)
    window_from = conversation.evict(4, coming=conversation.turns[-1].turn_id)
    await store.set_window(conversation.session, window_from=window_from, running=None)
    conversation.session = replace(conversation.session, window_from=window_from)
    process.sessions.abandon(conversation)
    await process.say("hello", key=(MemoryId("terminal:bob"), DIRECT))
    assert not conversation.loaded
    await clock.advance(2)
    again = await process.sessions.begin(KEY)
    assert [turn.human for turn in again.turns] == ["4", "5"]
    await process.stop()


async def test_a_loaded_conversation_is_not_let_go_of_while_its_turn_is_under_way(
    store: FlakyStore, clock: FakeClock
) -> None:
    process = await Process(store, clock, most_loaded=1).start()
    await process.say("first")
    conversation = await process.sessions.begin(KEY)
    for number in range(3):
        await process.say("hello", key=(MemoryId(f"terminal:{number}"), DIRECT))
    assert [turn.human for turn in conversation.turns] == ["first"]
    await process.stop()


async def test_a_warm_turn_costs_one_write_and_no_read(store: FlakyStore, process: Process) -> None:
    await process.say("warm up")
    store.writes.clear()
    store.reads.clear()
    await process.say("warm")
    assert (store.writes, store.reads) == (["add_turn"], [])


@pytest.mark.parametrize("timezone", ["Mars/Olympus", "../etc", ""])
async def test_a_zone_that_no_longer_exists_stops_neither_turn_nor_summary(
    process: Process, clock: FakeClock, base: InMemoryStore, timezone: str
) -> None:
    await base.put_person(Person(ANN, timezone=timezone))
    await process.say("hello")
    await clock.advance(TIMEOUT)
    assert (await everything(base))[1][0].summary == "A short note."


async def test_a_record_that_cannot_be_read_does_not_stop_the_turn(
    process: Process, store: FlakyStore, base: InMemoryStore
) -> None:
    store.fail("sessions", CorruptRecord("unreadable"))
    await process.say("hello")
    assert await texts(base) == ["hello"]


async def test_a_session_that_cannot_be_read_does_not_stop_the_sweep_for_others(
    store: FlakyStore, base: InMemoryStore, clock: FakeClock
) -> None:
    first = await Process(store, clock).start()
    people = [MemoryId(f"terminal:{number}") for number in range(4)]
    for memory_id in people:
        await first.say("hello", key=(memory_id, DIRECT))
    await first.stop()
    clock.step(2 * TIMEOUT)
    store.spoil(people[1])
    second = await Process(store, clock).start()
    await settle()
    states = [(await everything(base, memory_id))[1][0].state for memory_id in people]
    assert states.count(SessionState.CLOSED) == 3
    await second.stop()
