"""What leaves the window comes into the running summary, whatever the policy and however the model fares."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.errors import StoreUnavailable
from memory.stores.inmemory import InMemoryStore
from memory.window import WindowPolicy
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN
from tests.memory.talk import Notes, Talk, check_limit

CONTEXT = 900

policies = st.builds(
    WindowPolicy,
    mode=st.sampled_from(["unlimited", "messages", "tokens"]),
    max_tokens=st.integers(1, 700),
    max_messages=st.integers(1, 30),
    evict_to=st.sampled_from([0.0, 0.25, 0.5, 0.9]),
)
steps = st.lists(
    st.tuples(st.integers(0, 900), st.integers(0, 300), st.booleans(), st.integers(0, 3)), max_size=30
)


@settings(max_examples=60, deadline=None)
@given(steps, st.lists(policies, min_size=1, max_size=4))
async def test_whatever_is_said_under_whatever_policy_the_limit_holds_and_nothing_is_lost(
    stream: list[tuple[int, int, bool, int]], chosen: list[WindowPolicy]
) -> None:
    talk = Talk(context_tokens=CONTEXT, model=Notes("A note. " * 20))
    async with talk.memory:
        before: list[str] = []
        for number, (length, answer, down, which) in enumerate(stream):
            policy = talk.memory.window = chosen[which % len(chosen)]
            talk.model.down = down
            opening = await talk.begin(f"turn {number};" + "x" * length)
            check_limit(opening, policy, context=CONTEXT)
            shown = [turn.turn_id for turn in opening.turns]
            assert shown == before[len(before) - len(shown) :], "grown at the end, gone at the beginning"
            assert await talk.reloaded() == (opening.turns, opening.running)
            await talk.finish("y" * answer)
            before = [*shown, talk.said[-1].turn_id]
        talk.model.down, talk.memory.window = False, WindowPolicy("unlimited")
        for number in range(4):
            opening = await talk.say(f"and then {number};")
        assert talk.unread(opening) == []
        if gone := talk.gone(opening):
            (session,) = await talk.base.sessions(ANN)
            assert session.running is not None
            assert session.running.through >= gone[-1].turn_id
            assert opening.running == talk.model.note.strip()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), st.booleans()), min_size=10, max_size=60), st.integers(2, 20))
async def test_a_window_that_slides_asks_the_model_once_in_eight_evictions_at_most(
    stream: list[tuple[int, bool]], most: int
) -> None:
    talk = Talk(window=WindowPolicy("messages", max_messages=most, evict_to=1.0))
    async with talk.memory:
        for number, (length, down) in enumerate(stream):
            talk.model.down = down
            opening = await talk.say(f"turn {number};" + "x" * length)
            assert talk.model.asked <= len(talk.gone(opening)) // 8
        talk.model.down = False
        for number in range(17):
            opening = await talk.say(f"and then {number};")
        assert len(talk.unread(opening)) < 16


async def test_the_summary_is_there_when_the_turns_go_and_the_beginning_changes_once() -> None:
    talk = Talk(window=WindowPolicy("messages", max_messages=20, evict_to=0.5))
    async with talk.memory:
        beginnings = []
        for number in range(40):
            opening = await talk.say(f"turn {number};")
            beginnings.append((opening.running, opening.turns[:1]))
            assert bool(talk.gone(opening)) == bool(opening.running)
    changes = sum(one != other for one, other in itertools.pairwise(beginnings[1:]))
    assert changes == sum(one[1] != other[1] for one, other in itertools.pairwise(beginnings[1:])), (
        "with the window, and at no other time"
    )
    assert 1 < changes < 10


async def test_a_model_that_is_down_holds_nothing_up_and_is_caught_up_with() -> None:
    talk = Talk(window=WindowPolicy("messages", max_messages=12, evict_to=0.5))
    talk.model.down = True
    async with talk.memory:
        for number in range(30):
            opening = await talk.say(f"turn {number};")
            assert opening.running == ""
        assert len(talk.gone(opening)) > 20
        talk.model.down = False
        await talk.say("it is back;")
        opening = await talk.say("and now?")
        assert opening.running == talk.model.note
        assert talk.unread(opening) == []


async def test_what_went_while_the_model_was_down_is_shown_as_soon_as_it_is_back() -> None:
    """Not only with the next eviction: that may be far off, and until then nobody would know of it."""
    talk = Talk(window=WindowPolicy("messages", max_messages=20, evict_to=0.5))
    async with talk.memory:
        for number in range(18):
            await talk.say(f"turn {number};")
        assert talk.model.asked > 0
        talk.model.down, talk.model.note = True, "A later note."
        for number in range(18, 36):
            opening = await talk.say(f"turn {number};")
        shown = opening.turns[0]
        assert opening.running != "A later note."
        talk.model.down = False
        await talk.say("it is back;")
        opening = await talk.say("and now?")
        assert opening.turns[0] == shown, "nothing had to go for it"
        assert opening.running == "A later note."


async def test_turns_that_wait_for_the_store_are_not_taken_for_summarised() -> None:
    base = InMemoryStore()
    store = FlakyStore(base)
    talk = Talk(store=store, window=WindowPolicy("messages", max_messages=8, evict_to=0.5))
    async with talk.memory:
        for number in range(3):
            await talk.say(f"turn {number};")
        store.fail("add_turn", StoreUnavailable("away"))
        for number in range(3, 20):
            await talk.say(f"turn {number};")
        store.fail("add_turn", None)
        await talk.clock.advance(60)
        for number in range(3):
            opening = await talk.say(f"back {number};")
        assert talk.unread(opening) == []


@pytest.mark.parametrize("mode", ["messages", "tokens", "unlimited"])
async def test_the_window_may_be_changed_at_run_time(mode: str) -> None:
    talk = Talk(window=WindowPolicy("unlimited"), context_tokens=8000)
    async with talk.memory:
        for number in range(30):
            opening = await talk.say(f"turn {number};")
        assert len(opening.turns) == 29
        small = WindowPolicy(mode, max_tokens=120, max_messages=7)  # type: ignore[arg-type] # one of three
        talk.memory.window = small
        opening = await talk.say("smaller;")
        assert len(opening.turns) == {"messages": 1, "tokens": 3, "unlimited": 30}[mode]
        check_limit(opening, small, context=8000)
        talk.memory.window = replace(small, max_tokens=5000, max_messages=500)
        opening = await talk.say("larger again;")
        grown = await talk.say("and on;")
        assert len(grown.turns) == len(opening.turns) + 1


async def test_a_store_that_does_not_take_the_window_does_not_stop_the_talk() -> None:
    base = InMemoryStore()
    store = FlakyStore(base)
    talk = Talk(store=store, window=WindowPolicy("messages", max_messages=8, evict_to=0.5))
    store.fail("set_window", StoreUnavailable("away"))
    async with talk.memory:
        for number in range(12):
            opening = await talk.say(f"turn {number};")
            check_limit(opening, talk.memory.window, context=8192)
        store.fail("set_window", None)
        for number in range(12, 20):
            opening = await talk.say(f"turn {number};")
        assert await talk.reloaded() == ((*opening.turns, talk.said[-1]), opening.running)
        assert talk.unread(opening) == []
