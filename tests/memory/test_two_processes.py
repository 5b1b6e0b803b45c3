"""Two processes on one database: one session, ended by one of them, summarised once, whoever is faster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.stores.inmemory import InMemoryStore
from memory.types import SessionState
from tests.clock import FakeClock, settle
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN, KEY, TIMEOUT, Process, check_laws, everything, texts
from tests.memory.scripted import Held, ScriptedCompleter


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def base() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def model() -> ScriptedCompleter:
    return ScriptedCompleter()


@pytest.fixture
async def pair(
    base: InMemoryStore, clock: FakeClock, model: ScriptedCompleter
) -> AsyncIterator[tuple[Process, Process]]:
    one = await Process(FlakyStore(base), clock, model).start()
    two = await Process(FlakyStore(base), clock, model).start()
    yield one, two
    await one.stop()
    await two.stop()


Pair = tuple[Process, Process]


async def test_turns_that_alternate_make_one_session_and_one_summary(
    pair: Pair, clock: FakeClock, base: InMemoryStore, model: ScriptedCompleter
) -> None:
    for number in range(12):
        await pair[number % 2].say(str(number))
        await clock.advance(TIMEOUT * 0.7)
    turns, sessions = await everything(base)
    assert [turn.human for turn in turns] == [str(number) for number in range(12)]
    assert [session.state for session in sessions] == [SessionState.OPEN]
    await clock.advance(TIMEOUT)
    sessions = (await everything(base))[1]
    assert [session.summary for session in sessions] == ["A short note."]
    assert len(model.prompts) == 1
    await check_laws(base)


@pytest.mark.parametrize("apart", [2, 600, 1000, 1700])
async def test_each_process_shows_what_was_said_in_the_other(
    pair: Pair, clock: FakeClock, apart: float
) -> None:
    said: list[str] = []
    for number in range(6):
        process = pair[number % 2]
        conversation = await process.sessions.begin(KEY)
        assert [turn.human for turn in conversation.turns] == said
        await process.finish(conversation, str(number))
        said.append(str(number))
        await clock.advance(apart)


async def test_nobody_ends_a_session_that_goes_on_elsewhere(
    pair: Pair, clock: FakeClock, base: InMemoryStore
) -> None:
    one, two = pair
    await one.say("in one")
    await two.say("in two")
    for _ in range(8):
        await clock.advance(TIMEOUT * 0.6)
        await two.say("still here")
        await one.sessions.sweep()
    assert len((await everything(base))[1]) == 1


async def test_a_session_that_one_takes_to_be_over_goes_on_after_a_turn_in_the_other(
    pair: Pair, clock: FakeClock, base: InMemoryStore
) -> None:
    one, two = pair
    first = await one.say("in one")
    await clock.advance(TIMEOUT - 10)
    second = await two.say("just in time")
    await clock.advance(20)  # by what `one` knows, the time is up
    third = await one.say("in one again")
    assert first.session_id == second.session_id == third.session_id
    conversation = await one.sessions.begin(KEY)
    assert [turn.human for turn in conversation.turns] == ["in one", "just in time", "in one again"]


async def test_a_turn_that_takes_so_long_that_the_other_has_ended_the_session_goes_into_the_next(
    pair: Pair, clock: FakeClock, base: InMemoryStore, model: ScriptedCompleter
) -> None:
    one, two = pair
    await two.say("before")
    await clock.advance(10)
    conversation = await one.sessions.begin(KEY)
    turn = one.turn(conversation, "slow")
    await clock.advance(3 * TIMEOUT)
    stored = await one.sessions.finish(conversation, turn)
    await check_laws(base)
    opened = await base.opened(*KEY)
    assert opened is not None
    assert stored.session_id == opened.session_id
    await clock.advance(2)
    again = await one.sessions.begin(KEY)
    assert [turn.human for turn in again.turns] == ["slow"]
    assert [item.text for item in again.block.items] == ["A short note."]
    one.sessions.abandon(again)
    await clock.advance(3 * TIMEOUT)
    assert [session.state for session in (await everything(base))[1]] == [SessionState.CLOSED] * 2
    assert "Person: slow" in model.prompts[-1]


async def test_a_slow_turn_joins_the_session_that_the_other_has_opened_meanwhile(
    pair: Pair, clock: FakeClock, base: InMemoryStore
) -> None:
    one, two = pair
    await two.say("before")
    conversation = await one.sessions.begin(KEY)
    turn = one.turn(conversation, "slow")
    await clock.advance(3 * TIMEOUT)
    await two.say("meanwhile")
    await clock.advance(5)
    stored = await one.sessions.finish(conversation, turn)
    await check_laws(base)
    opened = await base.opened(*KEY)
    assert opened is not None
    assert stored.session_id == opened.session_id
    await clock.advance(2)
    again = await one.sessions.begin(KEY)
    assert {turn.human for turn in again.turns} == {"slow", "meanwhile"}


async def test_a_session_ended_by_hand_in_one_is_not_gone_on_with_in_the_other(
    pair: Pair, clock: FakeClock, base: InMemoryStore
) -> None:
    one, two = pair
    first = await one.say("before")
    await two.say("before too")
    await clock.advance(5)
    await one.sessions.end(KEY)
    second = await two.say("after")
    assert second.session_id != first.session_id
    await check_laws(base)


async def test_both_open_the_first_session_at_once_and_it_is_one(pair: Pair, base: InMemoryStore) -> None:
    await asyncio.gather(pair[0].say("a"), pair[1].say("b"))
    turns, sessions = await everything(base)
    assert {turn.session_id for turn in turns} == {sessions[0].session_id}
    assert len(sessions) == 1


async def test_both_end_one_session_at_once_and_it_gets_one_summary(
    pair: Pair, clock: FakeClock, base: InMemoryStore, model: ScriptedCompleter
) -> None:
    await pair[0].say("hello")
    await pair[1].say("hello")
    held = Held("The only note.")
    model.enqueue(held)
    await clock.advance(TIMEOUT + 1)
    await asyncio.gather(pair[0].sessions.sweep(), pair[1].sessions.sweep())
    await held.reached.wait()
    held.release()
    await settle()
    assert [session.summary for session in (await everything(base))[1]] == ["The only note."]
    assert len(model.prompts) == 1


async def test_a_turn_of_a_person_erased_in_the_other_process_is_not_stored(
    pair: Pair, clock: FakeClock, base: InMemoryStore
) -> None:
    one, two = pair
    await one.say("before")
    conversation = await one.sessions.begin(KEY)
    turn = one.turn(conversation, "under way")
    await clock.advance(5)
    two.sessions.invalidate(ANN, erased=True)
    await base.erase(ANN)
    await one.sessions.finish(conversation, turn)
    assert not await base.holdings(ANN)
    await one.say("a new beginning")
    assert await texts(base) == ["a new beginning"]
    await check_laws(base)


async def test_what_was_erased_in_the_other_process_is_no_longer_shown(
    pair: Pair, clock: FakeClock, base: InMemoryStore
) -> None:
    one, _ = pair
    first = await one.say("to be forgotten")
    await one.say("kept")
    await clock.advance(5)
    await base.revise(ANN, first.session_id, due_at=clock.now())
    await base.delete_turns(ANN, [first.turn_id])
    conversation = await one.sessions.begin(KEY)
    assert [turn.human for turn in conversation.turns] == ["kept"]


async def test_a_clock_that_disagrees_does_not_keep_a_turn_from_its_session(
    base: InMemoryStore, clock: FakeClock
) -> None:
    """One process lives in the past: to it, the other's session is neither due nor over."""
    ahead = FakeClock(clock.now() + timedelta(hours=6))
    one = await Process(FlakyStore(base), ahead).start()
    two = await Process(FlakyStore(base), clock).start()
    await one.say("from the future")
    async with asyncio.timeout(5):
        await two.say("from the past")
    await check_laws(base)
    assert len(await texts(base)) == 2
    await one.stop()
    await two.stop()


async def test_a_session_that_cannot_be_claimed_is_joined_and_not_fought_over(
    base: InMemoryStore, clock: FakeClock
) -> None:
    """A late turn from the future finds a session over that by the clock of now is not."""
    process = await Process(FlakyStore(base), clock).start()
    turn = await process.say("now")
    future = replace(turn, at=clock.now() + timedelta(hours=9), replied_at=clock.now() + timedelta(hours=9))
    conversation = await process.sessions.begin(KEY)
    lost = replace(conversation.session, session_id=type(turn.session_id)("0" * 32))
    process.sessions.abandon(conversation)
    process.sessions.backlog.hold(replace(future, turn_id=type(turn.turn_id)("f" * 32)), lost)
    async with asyncio.timeout(5):
        await process.sessions.backlog.flush()
    await check_laws(base)
    assert len(await texts(base)) == 2
    await process.stop()


Step = tuple[int, float]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.floats(1, 3000)), min_size=1, max_size=15))
async def test_whoever_speaks_where_a_session_is_a_run_of_turns_without_a_long_gap(steps: list[Step]) -> None:
    base, clock, model = InMemoryStore(), FakeClock(), ScriptedCompleter()
    pair = [await Process(FlakyStore(base), clock, model).start() for _ in range(2)]
    turns = []
    for number, (who, wait) in enumerate(steps):
        turns.append(await pair[who].say(f"turn {number};"))
        await clock.advance(wait)
    for (_, wait), before, after in zip(steps, turns, turns[1:], strict=False):
        assert (before.session_id == after.session_id) == (wait < TIMEOUT)
    await clock.advance(2 * TIMEOUT)
    await check_laws(base)
    sessions = (await everything(base))[1]
    assert {session.state for session in sessions} == {SessionState.CLOSED}
    assert len(model.prompts) == len(sessions)
    assert all(model.read.count(f"Person: turn {number};") == 1 for number in range(len(steps)))
    for process in pair:
        await process.stop()
