"""What a chat memory promises, held at the window of a conversation as properties.

The persona and the memory block are never evicted: they are not in the window at all, only in the room that
the window is given. Turns go in and out whole, in order, and the limit holds after each one.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.blocks import BlockItem, MemoryBlock
from memory.conversation import Conversation, size_of
from memory.stores.inmemory import InMemoryStore
from memory.tokens import Measure, TokenEstimator
from memory.types import DIRECT, Audience, MemoryId, Session, SessionId, Turn, TurnId
from memory.window import WindowPolicy
from tests.clock import NOON, FakeClock
from tests.memory.flaky import FlakyStore
from tests.memory.process import Process

ESTIMATOR = TokenEstimator()
ROOM = 100_000


def make_turn(number: int, human: str, reply: str = "") -> Turn:
    at = NOON + timedelta(seconds=number)
    return Turn(
        TurnId(f"{number:06}"), MemoryId("terminal:ann"), SessionId("s"), DIRECT, at, human, reply, at
    )


def make_conversation() -> Conversation:
    session = Session(SessionId("s"), MemoryId("terminal:ann"), DIRECT, started_at=NOON, due_at=NOON)
    return Conversation(session, deadline=NOON, checked_at=NOON)


def shown(conversation: Conversation) -> list[str]:
    return [turn.human for turn in conversation.turns]


class Talk:
    """Adds turns as the engine does: makes room for the message, then appends the turn."""

    def __init__(self) -> None:
        self.conversation = make_conversation()
        self.said: list[str] = []
        self.evictions: list[int] = []

    def say(self, human: str, reply: str, *, policy: WindowPolicy, room: int = ROOM) -> int:
        coming = size_of(human)
        turn = make_turn(len(self.said), human, reply)
        over = self.conversation.overflow(policy, room=room, coming=coming, estimator=ESTIMATOR)
        if over:
            self.conversation.evict(over, coming=turn.turn_id)
        self.check_limit(policy, room, coming)
        self.conversation.append(turn)
        self.said.append(human)
        return over

    def check_limit(self, policy: WindowPolicy, room: int, coming: Measure) -> None:
        """The message fits, or there is nothing left that could go."""
        size = self.conversation.size + coming
        if not self.conversation.entries:
            return
        most = min(policy.max_tokens, room) if policy.mode == "tokens" else room
        assert ESTIMATOR.tokens(size) <= most + 1  # two sums are rounded up, one bound is not
        if policy.mode == "messages":
            assert size.messages <= policy.max_messages


texts = st.text(st.sampled_from("ab cd\n思い出é"), max_size=120)
policies = st.builds(
    WindowPolicy,
    mode=st.sampled_from(["unlimited", "messages", "tokens"]),
    max_tokens=st.integers(1, 800),
    max_messages=st.integers(1, 30),
    evict_to=st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]),
)
turns = st.lists(st.tuples(texts, texts), max_size=30)


@settings(max_examples=150)
@given(turns, st.lists(policies, min_size=1, max_size=4), st.lists(st.integers(1, 2000), min_size=1))
def test_under_any_policy_and_any_change_of_it_the_limit_holds_and_the_newest_stay_in_order(
    stream: list[tuple[str, str]], chosen: list[WindowPolicy], rooms: list[int]
) -> None:
    talk = Talk()
    for number, (human, reply) in enumerate(stream):
        policy, room = chosen[number % len(chosen)], rooms[number % len(rooms)]
        talk.say(human, reply, policy=policy, room=room)
        window = shown(talk.conversation)
        assert window == talk.said[len(talk.said) - len(window) :], "a run of the newest, in order"
        assert window[-1] == human
        for turn, entry in zip(talk.conversation.turns, talk.conversation.entries, strict=True):
            assert entry.size == size_of(turn.human, turn.reply), "whole"


@given(turns, policies)
def test_the_measure_kept_is_the_measure_of_what_is_shown(
    stream: list[tuple[str, str]], policy: WindowPolicy
) -> None:
    talk = Talk()
    for human, reply in stream:
        talk.say(human, reply, policy=policy)
        total = Measure()
        for turn in talk.conversation.turns:
            total += size_of(turn.human, turn.reply)
        assert talk.conversation.size == total


@given(turns, policies)
def test_between_two_evictions_the_window_only_grows_at_its_end(
    stream: list[tuple[str, str]], policy: WindowPolicy
) -> None:
    talk = Talk()
    before: list[str] = []
    for human, reply in stream:
        over = talk.say(human, reply, policy=policy)
        assert shown(talk.conversation) == [*before[over:], human]
        before = shown(talk.conversation)


@given(turns)
def test_an_unlimited_window_keeps_everything_that_the_model_can_take(stream: list[tuple[str, str]]) -> None:
    talk = Talk()
    for human, reply in stream:
        talk.say(human, reply, policy=WindowPolicy(mode="unlimited"))
    assert shown(talk.conversation) == talk.said


def test_in_messages_the_newest_stay() -> None:
    talk = Talk()
    for number in range(20):
        talk.say(str(number), "yes", policy=WindowPolicy("messages", max_messages=9, evict_to=1))
    assert shown(talk.conversation) == ["15", "16", "17", "18", "19"]


def test_a_block_goes_at_once_and_then_nothing_for_a_while() -> None:
    talk = Talk()
    policy = WindowPolicy("messages", max_messages=20, evict_to=0.5)
    gone = [talk.say(str(number), "yes", policy=policy) for number in range(40)]
    blocks = [(number, count) for number, count in enumerate(gone) if count]
    assert blocks == [(10, 5), (15, 5), (20, 5), (25, 5), (30, 5), (35, 5)]


@pytest.mark.parametrize("evict_to", [0.25, 0.5, 0.75])
def test_after_an_eviction_at_most_the_low_water_mark_is_left(evict_to: float) -> None:
    talk = Talk()
    policy = WindowPolicy("tokens", max_tokens=600, evict_to=evict_to)
    for number in range(200):
        if talk.say(f"message {number} of some length", "a reply of some length", policy=policy):
            talk.conversation.entries.pop()
            assert ESTIMATOR.tokens(Measure()) + sum(
                ESTIMATOR.tokens(entry.size) for entry in talk.conversation.entries
            ) <= int(600 * evict_to)
            talk.conversation.fill([entry.turn for entry in talk.conversation.entries])


def test_a_message_larger_than_everything_empties_the_window_and_no_more() -> None:
    talk = Talk()
    for number in range(5):
        talk.say(str(number), "yes", policy=WindowPolicy(max_tokens=500))
    talk.say("x" * 5000, "oh", policy=WindowPolicy(max_tokens=500))
    assert shown(talk.conversation) == ["x" * 5000]
    assert talk.conversation.session.window_from is None


def test_the_first_turn_shown_is_told_and_it_is_the_coming_one_when_all_go() -> None:
    conversation = make_conversation()
    conversation.fill(make_turn(number, str(number)) for number in range(4))
    assert conversation.evict(3, coming=TurnId("coming")) == "000003"
    assert conversation.evict(1, coming=TurnId("coming")) == "coming"


@given(turns, policies, st.integers(1, 5))
def test_the_memory_block_and_the_running_summary_are_never_evicted(
    stream: list[tuple[str, str]], policy: WindowPolicy, count: int
) -> None:
    talk = Talk()
    block = MemoryBlock(items=(BlockItem("summary", NOON, "a note " * 500),), pinned=("likes tea",) * count)
    talk.conversation.block = block
    for human, reply in stream:
        talk.say(human, reply, policy=policy)
    assert talk.conversation.block == block


@given(turns, st.sampled_from([0.25, 0.5, 0.75]))
def test_what_is_foretold_to_go_is_a_part_of_the_window_and_only_near_the_limit(
    stream: list[tuple[str, str]], evict_to: float
) -> None:
    talk = Talk()
    policy = WindowPolicy("tokens", max_tokens=400, evict_to=evict_to)
    for human, reply in stream:
        talk.say(human, reply, policy=policy)
        going = talk.conversation.next_to_go(policy, room=ROOM, estimator=ESTIMATOR)
        assert 0 <= going <= len(talk.conversation.entries)
        if going:
            assert sum(ESTIMATOR.tokens(entry.size) for entry in talk.conversation.entries) >= 300


def test_letting_go_keeps_nothing_that_can_be_read_again() -> None:
    conversation = make_conversation()
    conversation.fill(make_turn(number, str(number)) for number in range(4))
    conversation.loaded = True
    conversation.unload()
    assert (conversation.turns, conversation.size, conversation.loaded) == ((), Measure(), False)
    assert not conversation.block


async def test_there_is_one_window_for_each_memory_id_and_audience() -> None:
    process = await Process(FlakyStore(InMemoryStore()), FakeClock()).start()
    keys = [(MemoryId(f"terminal:{name}"), Audience(where)) for name in "ab" for where in ("direct", "g:1")]
    for number in range(3):
        for key in keys:
            await process.say(f"{key} {number}", key=key)
    for key in keys:
        conversation = await process.sessions.begin(key)
        assert shown(conversation) == [f"{key} {number}" for number in range(3)]
        assert {(turn.memory_id, turn.audience) for turn in conversation.turns} == {key}
        process.sessions.abandon(conversation)
    await process.stop()


def test_a_turn_without_a_reply_counts_as_one_message() -> None:
    assert size_of("hello").messages == 1
    assert size_of("hello", "hi").messages == 2
