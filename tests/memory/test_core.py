"""Memory as the one object that a companion talks to: a turn, too little room, and what breaks it off."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import StoreUnavailable
from memory.ports import PromptMessage
from memory.stores.inmemory import InMemoryStore
from memory.types import DIRECT, Outcome, SessionState, Usage
from memory.window import WindowPolicy
from tests.clock import settle
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN, TIMEOUT, check_laws, everything, texts
from tests.memory.talk import OVERHEAD, Talk, check_limit


@pytest.fixture
def store() -> FlakyStore:
    return FlakyStore(InMemoryStore())


async def test_a_turn_is_stored_as_it_was_made() -> None:
    talk = Talk()
    async with talk.memory:
        opening = await talk.begin("hello")
        await talk.clock.advance(7)
        stored = await talk.memory.finish(
            opening, reply="hi", outcome=Outcome.STOPPED, model="m", usage=Usage(3, 2, 1)
        )
        (turn,) = await talk.base.turns(ANN)
    assert turn == stored
    assert (turn.turn_id, turn.session_id, turn.at) == (opening.turn_id, opening.session_id, opening.at)
    assert (turn.human, turn.reply, turn.outcome, turn.model) == ("hello", "hi", Outcome.STOPPED, "m")
    assert turn.usage == Usage(3, 2, 1)
    assert turn.replied_at == opening.at + timedelta(seconds=7)


# Less room


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 400), max_size=25),
    st.lists(st.none() | st.integers(1, 2000), min_size=1, max_size=8),
    st.sampled_from([0.0, 0.5, 1.0]),
)
async def test_shrinking_shows_strictly_less_each_time_until_nothing_can_go(
    lengths: list[int], limits: list[int | None], evict_to: float
) -> None:
    talk = Talk(window=WindowPolicy("unlimited", evict_to=evict_to), context_tokens=4000)
    async with talk.memory:
        for number, length in enumerate(lengths):
            await talk.say(f"turn {number};" + "x" * length)
        opening, context = await talk.begin("too long?"), 4000
        for limit in limits:
            context = min(context, limit or context)
            smaller = await talk.memory.shrink(opening, limit=limit)
            if smaller is None:
                assert not opening.turns
                break
            assert len(smaller.turns) <= len(opening.turns) // 2
            assert smaller.turns == opening.turns[len(opening.turns) - len(smaller.turns) :]
            assert (smaller.turn_id, smaller.human) == (opening.turn_id, opening.human)
            if context > OVERHEAD + 200:
                check_limit(smaller, talk.memory.window, context=context)
            opening = smaller
        assert await talk.reloaded() == (opening.turns, opening.running)
        talk.opening = opening
        await talk.finish()
        after = await talk.say("and now?")
        assert after.turns[-1:] == (talk.said[-2],)
        for number in range(20):
            after = await talk.say(f"more {number};")
        assert len(talk.unread(after)) < (16 if evict_to == 1.0 else 1)


async def test_a_smaller_context_that_the_model_told_holds_from_then_on() -> None:
    talk = Talk(window=WindowPolicy("unlimited"), context_tokens=4000)
    async with talk.memory:
        for number in range(30):
            await talk.say(f"turn {number};" + "x" * 100)
        opening = await talk.begin("x")
        assert (await talk.memory.shrink(opening, limit=600)) is not None
        await talk.finish()
        for number in range(30):
            check_limit(await talk.say(f"turn {number};"), talk.memory.window, context=600)


async def test_what_the_server_counts_makes_the_window_fit_its_tokens() -> None:
    talk = Talk(window=WindowPolicy("tokens", max_tokens=1000), context_tokens=8000)
    async with talk.memory:
        for number in range(20):
            await talk.say(f"turn {number};" + "x" * 100)
        before = talk.memory.count("x" * 1000)
        for _ in range(5):
            talk.memory.learn([PromptMessage("user", "x" * 1000)], counted=1000)
        assert talk.memory.count("x" * 1000) > 2 * before
        opening = await talk.begin("hello")
        assert sum(talk.memory.count(turn.human + turn.reply) for turn in opening.turns) <= 1000


# Broken off


async def test_a_turn_broken_off_while_it_begins_does_not_keep_its_session_open(store: FlakyStore) -> None:
    talk = Talk(store=store, window=WindowPolicy("messages", max_messages=4))
    async with talk.memory:
        for number in range(2):
            await talk.say(f"turn {number};")
        gate = store.hold("set_window")
        beginning = asyncio.ensure_future(talk.begin("broken off"))
        await gate.reached.wait()
        beginning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await beginning
        await talk.clock.advance(2 * TIMEOUT)
        await settle()
        assert [session.state for session in (await everything(store))[1]] == [SessionState.CLOSED]


async def test_a_turn_broken_off_while_it_is_stored_does_not_keep_its_session_open(
    store: FlakyStore,
) -> None:
    talk = Talk(store=store)
    async with talk.memory:
        await talk.say("before")
        opening = await talk.begin("broken off")
        gate = store.hold("add_turn")
        finishing = asyncio.ensure_future(talk.memory.finish(opening, reply="yes"))
        await gate.reached.wait()
        finishing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await finishing
        await talk.clock.advance(2 * TIMEOUT)
        await settle()
        assert [session.state for session in (await everything(store))[1]] == [SessionState.CLOSED]


@pytest.mark.parametrize("back", [0.0, 5.0, 3000.0])
async def test_after_a_turn_that_emptied_the_window_and_came_to_nothing_the_next_is_shown(
    back: float,
) -> None:
    """Its id marks where the window begins: whatever comes next must come after it."""
    for _ in range(8):  # within one millisecond the order of ids is a matter of chance
        talk = Talk(window=WindowPolicy("tokens", max_tokens=200))
        async with talk.memory:
            await talk.say("hello")
            opening = await talk.begin("x" * 5000)
            assert opening.turns == ()
            talk.memory.abandon(opening)
            talk.clock.step(-back)
            opening = await talk.begin("the next")
            turn = await talk.memory.finish(opening, reply="yes")
            assert (await talk.reloaded())[0] == (turn,)


async def test_an_abandoned_turn_leaves_nothing() -> None:
    talk = Talk()
    async with talk.memory:
        talk.memory.abandon(await talk.begin("never mind"))
        await talk.say("hello")
        assert await texts(talk.base) == ["hello"]


# Forgetting, with a store that fails beside it


async def test_what_waits_for_the_store_is_forgotten_with_the_rest(store: FlakyStore) -> None:
    talk = Talk(store=store)
    async with talk.memory:
        await talk.say("stored")
        plan = await talk.memory.plan_forgetting(ANN, DIRECT, "session")
        assert plan is not None
        store.fail("add_turn", StoreUnavailable("away"))
        await talk.say("waiting")
        assert talk.memory.waiting(ANN) == 1
        store.fail("add_turn", None)
        erased = await talk.memory.forget(plan)
        assert (erased.gone.turns, erased.gone.sessions, bool(erased.left)) == (2, 1, False)
        await talk.clock.advance(60)
        assert await texts(store) == []
        assert talk.memory.waiting(ANN) == 0
        await check_laws(store)


async def test_an_erasure_that_was_carried_out_is_told_though_the_store_fails_after_it(
    store: FlakyStore,
) -> None:
    talk = Talk(store=store)
    async with talk.memory:
        await talk.say("hello")
        plan = await talk.memory.plan_forgetting(ANN, DIRECT, "everything")
        assert plan is not None
        gate = store.hold("holdings", when="after")
        forgetting = asyncio.ensure_future(talk.memory.forget(plan))
        await gate.reached.wait()
        store.away = True
        gate.passed.set()
        assert (await forgetting).gone == plan.holdings
        store.away = False


async def test_counts_that_were_told_before_a_store_was_away_are_asked_again(store: FlakyStore) -> None:
    talk = Talk(store=store)
    async with talk.memory:
        await talk.say("hello")
        store.away = True
        with pytest.raises(StoreUnavailable):
            await talk.memory.plan_forgetting(ANN, DIRECT, "everything")
        store.away = False
        assert await talk.memory.plan_forgetting(ANN, DIRECT, "everything") is not None
