"""What a person is told is remembered: just what may be shown there, and just what the model is shown."""

from __future__ import annotations

from collections import Counter

from memory.archive import Archive, Unfinished
from memory.closing import ClosingPolicy
from memory.errors import CompletionFault
from memory.overview import look
from memory.stores.inmemory import InMemoryStore
from memory.types import DIRECT, Audience, MemoryId, Person, SessionState
from memory.window import WindowPolicy
from tests.clock import FakeClock, settle
from tests.memory.process import ANN, KEY, TIMEOUT, Process
from tests.memory.scripted import ScriptedCompleter
from tests.memory.talk import Talk

CLUB, OTHER = Audience("club"), Audience("other")


async def test_the_window_told_is_the_window_shown_also_after_evictions() -> None:
    talk = Talk(window=WindowPolicy("messages", max_messages=10, evict_to=0.5))
    async with talk.memory:
        for number in range(25):
            opening = await talk.say(f"turn {number};")
            told = await look(talk.base, ANN, in_front_of=DIRECT)
            assert told.window == (*opening.turns, talk.said[-1])
            assert told.turns == len(talk.said)
            assert await talk.memory.archive.overview(ANN, in_front_of=DIRECT) == told


async def test_each_audience_is_told_of_its_own_sessions_and_the_direct_chat_of_all() -> None:
    base, clock = InMemoryStore(), FakeClock()
    process = await Process(base, clock).start()
    for audience in (DIRECT, CLUB, OTHER):
        await process.say(f"said to {audience}", key=(ANN, audience))
        await clock.advance(1)
    await process.say("of Bob", key=(MemoryId("terminal:bob"), CLUB))
    direct = await look(base, ANN, in_front_of=DIRECT)
    assert [view.session.audience for view in direct.sessions] == [DIRECT, CLUB, OTHER]
    assert (direct.turns, [turn.human for turn in direct.window]) == (3, ["said to direct"])
    club = await look(base, ANN, in_front_of=CLUB)
    assert [view.session.audience for view in club.sessions] == [CLUB]
    assert (club.turns, [turn.human for turn in club.window]) == (1, ["said to club"])
    assert club.current is not None
    assert club.current.session.audience == CLUB
    await process.stop()


async def test_once_the_session_has_ended_there_is_no_window_and_none_is_current() -> None:
    base, clock = InMemoryStore(), FakeClock()
    process = await Process(base, clock).start()
    await process.say("hello")
    await clock.advance(TIMEOUT)
    told = await look(base, ANN, in_front_of=DIRECT)
    assert (told.window, told.current) == ((), None)
    assert [(view.session.state, view.turns) for view in told.sessions] == [(SessionState.CLOSED, 1)]
    await process.stop()


async def test_of_a_stranger_nothing_is_told() -> None:
    told = await look(InMemoryStore(), ANN, in_front_of=DIRECT)
    assert (told.turns, told.sessions, told.window, told.person) == (0, (), (), Person(ANN))


async def test_summaries_that_wait_are_counted_with_the_kinds_of_their_faults() -> None:
    base, clock = InMemoryStore(), FakeClock()
    model = ScriptedCompleter(default=CompletionFault("a secret"))
    process = await Process(base, clock, model, policy=ClosingPolicy()).start()
    archive = Archive(base, clock)
    assert await archive.unfinished() == Unfinished(0, Counter())
    for name in "ab":
        await process.say("hello", key=(MemoryId(f"terminal:{name}"), DIRECT))
    await process.say("still open", key=KEY)
    for name in "ab":
        await process.sessions.end((MemoryId(f"terminal:{name}"), DIRECT))
    await settle()
    assert await archive.unfinished() == Unfinished(2, Counter({"CompletionFault": 2}))
    await process.stop()
