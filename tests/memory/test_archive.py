"""An import: sessions in any state land so that somebody takes them up, and nobody else's memory changes."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memory.archive import Archive, Imported
from memory.errors import StoreUnavailable
from memory.portability import Portrait, from_json, to_json
from memory.stores.inmemory import InMemoryStore
from memory.types import Audience, MemoryId, Person, RunningSummary, SessionId, SessionState, TurnId
from tests.clock import NOON, FakeClock, settle
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN, KEY, TIMEOUT, Process, check_laws, everything, heal, texts
from tests.memory.scripted import ScriptedCompleter
from tests.memory.talk import Talk
from tests.memory.test_portability import session_in, turn

BOB = MemoryId("terminal:bob")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def base() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def archive(base: InMemoryStore, clock: FakeClock) -> Archive:
    return Archive(base, clock)


def portrait_of(*states: SessionState, memory_id: MemoryId = ANN) -> Portrait:
    """Sessions a day apart, the last of them begun just now, with two turns each."""
    first = NOON - timedelta(days=len(states) - 1)
    made = tuple(
        replace(
            session_in(state, number + 1, memory_id=memory_id, at=first + timedelta(days=number)),
            window_from=None,
            running=None,
        )
        for number, state in enumerate(states)
    )
    return Portrait(
        Person(memory_id, "Asia/Tokyo"), made, tuple(turn(n, session) for session in made for n in (1, 2))
    )


ALL = (SessionState.CLOSED, SessionState.CLOSING, SessionState.OPEN)


async def test_an_export_imported_elsewhere_exports_to_the_same_file(clock: FakeClock) -> None:
    model = ScriptedCompleter()
    process = await Process(InMemoryStore(), clock, model).start()
    for number in range(3):
        await process.say(f"turn {number};")
        await clock.advance(TIMEOUT * 0.9 * number)
    await clock.advance(TIMEOUT)
    await process.say("again")
    await process.sessions.end(KEY)
    await process.stop()  # the second one is closing
    process = await Process(process.store, clock, model).start()
    await process.say("and again")
    await process.stop()
    archive = Archive(process.store, clock)
    file = to_json((await archive.export(ANN)) or pytest.fail("nothing"))
    assert len({session["state"] for session in file["sessions"]}) >= 2
    elsewhere = Archive(InMemoryStore(), clock)
    await elsewhere.take_in(from_json(copy.deepcopy(file)))
    assert to_json((await elsewhere.export(ANN)) or pytest.fail("nothing")) == file


@pytest.mark.parametrize("state", SessionState)
async def test_a_file_of_a_session_in_any_state_exports_to_the_same_file(
    archive: Archive, state: SessionState
) -> None:
    portrait = portrait_of(state)
    await archive.take_in(portrait)
    assert to_json((await archive.export(ANN)) or pytest.fail("nothing")) == to_json(portrait)


async def test_sessions_in_any_state_land_so_that_somebody_takes_them_up(
    archive: Archive, base: InMemoryStore, clock: FakeClock
) -> None:
    portrait, model = portrait_of(*ALL), ScriptedCompleter(default="Made here.")
    assert await archive.take_in(portrait) == Imported(turns=6, sessions=3, known=0)
    await check_laws(base)
    await heal(base, clock, model)
    stored = (await everything(base))[1]
    assert [session.state for session in stored] == [SessionState.CLOSED] * 3
    assert [session.summary for session in stored] == ["From the file.", "Made here.", "Made here."]
    assert len(model.prompts) == 2
    assert await texts(base) == [turn.human for turn in portrait.turns]


async def test_an_open_session_that_was_imported_goes_on(
    archive: Archive, base: InMemoryStore, clock: FakeClock
) -> None:
    portrait = portrait_of(SessionState.OPEN)
    await archive.take_in(portrait)
    process = await Process(base, clock).start()
    conversation = await process.sessions.begin(KEY)
    assert conversation.session.session_id == portrait.sessions[0].session_id
    assert conversation.turns == portrait.turns
    await process.stop()


async def test_a_deadline_in_the_far_future_does_not_keep_a_session_open_for_ever(
    archive: Archive, base: InMemoryStore, clock: FakeClock
) -> None:
    portrait = portrait_of(SessionState.OPEN)
    far = replace(portrait.sessions[0], due_at=datetime(8999, 12, 31, tzinfo=UTC))
    await archive.take_in(replace(portrait, sessions=(far,)))
    await heal(base, clock)
    assert [session.state for session in (await everything(base))[1]] == [SessionState.CLOSED]


@pytest.mark.parametrize("far", ["f" * 32, "0" + "f" * 31])
async def test_a_window_that_begins_in_the_future_is_read_anew(clock: FakeClock, far: str) -> None:
    talk = Talk()
    portrait = portrait_of(SessionState.OPEN)
    for session in (
        replace(portrait.sessions[0], window_from=TurnId(far)),
        replace(portrait.sessions[0], running=RunningSummary("So far.", TurnId(far))),
    ):
        async with talk.memory:
            await talk.memory.archive.take_in(replace(portrait, sessions=(session,)))
            opening = await talk.begin("hello")
            assert (opening.turns, opening.running) == (portrait.turns, "")
            assert opening.at <= clock.now() + timedelta(minutes=1)
        talk = Talk()


async def test_where_another_session_is_open_the_imported_one_ends_and_is_summarised(
    archive: Archive, base: InMemoryStore, clock: FakeClock
) -> None:
    model = ScriptedCompleter()
    process = await Process(base, clock, model).start()
    here = await process.say("said here")
    portrait = portrait_of(*ALL)
    assert await archive.take_in(portrait) == Imported(turns=6, sessions=3, known=0)
    await check_laws(base)
    opened = await base.opened(*KEY)
    assert opened is not None
    assert opened.session_id == here.session_id
    again = await process.say("and still here")
    assert again.session_id == here.session_id
    ended = await base.session(ANN, portrait.sessions[-1].session_id)
    assert ended is not None
    assert ended.ended_at is not None
    assert ended.started_at <= ended.ended_at <= clock.now()
    await clock.advance(300)
    await process.sessions.sweep()
    await settle()
    states = [session.state for session in (await everything(base))[1]]
    assert sorted(states) == [SessionState.CLOSED] * 3 + [SessionState.OPEN]
    assert (await archive.take_in(portrait)).known == 9, "and nothing is there twice"
    await check_laws(base)
    await process.stop()


async def test_an_import_into_a_talk_that_is_held_shows_at_the_next_turn(
    base: InMemoryStore, clock: FakeClock
) -> None:
    process = await Process(base, clock).start()
    await process.say("said here")
    archive = Archive(base, clock, erased=process.sessions.invalidate)
    portrait = portrait_of(SessionState.CLOSED, SessionState.OPEN)
    await archive.take_in(portrait)
    conversation = await process.sessions.begin(KEY)
    assert "From the file." in [item.text for item in conversation.block.items]
    assert conversation.zone is not None
    assert conversation.zone.key == "Asia/Tokyo"
    await process.stop()


async def test_importing_twice_changes_nothing(archive: Archive, base: InMemoryStore) -> None:
    portrait = portrait_of(*ALL)
    await archive.take_in(portrait)
    before = await everything(base)
    assert await archive.take_in(portrait) == Imported(turns=0, sessions=0, known=9)
    assert await everything(base) == before


async def test_a_zone_that_was_set_here_stays(archive: Archive, base: InMemoryStore) -> None:
    await base.put_person(Person(ANN, "Europe/Berlin"))
    await archive.take_in(portrait_of(SessionState.CLOSED))
    assert await base.person(ANN) == Person(ANN, "Europe/Berlin")


async def test_a_turn_that_comes_back_into_a_session_that_has_ended_is_in_its_summary_again(
    archive: Archive, base: InMemoryStore, clock: FakeClock
) -> None:
    portrait, model = portrait_of(SessionState.CLOSED), ScriptedCompleter(default="Anew.")
    await archive.take_in(portrait)
    await base.delete_turns(ANN, [portrait.turns[0].turn_id])
    await archive.take_in(portrait)
    await heal(base, clock, model)
    assert [session.summary for session in (await everything(base))[1]] == ["Anew."]
    assert all(f"Person: turn {number} of 1;" in model.read for number in (1, 2))


@pytest.mark.parametrize("lands", [False, True], ids=["before it lands", "after it has landed"])
@pytest.mark.parametrize("write", range(1, 12))
async def test_dead_at_any_write_and_imported_again(write: int, lands: bool) -> None:
    """In between, another process has looked for work."""
    base, clock, model = InMemoryStore(), FakeClock(), ScriptedCompleter(default="Made here.")
    portrait, flaky = portrait_of(*ALL), FlakyStore(base)
    flaky.die(at_write=write, lands=lands)
    try:
        await Archive(flaky, clock).take_in(portrait)
    except StoreUnavailable:
        await check_laws(base)
        process = await Process(base, clock, model).start()
        await clock.advance(600)
        await process.sessions.sweep()
        await settle()
        await process.stop()
    else:
        assert write > 10
    await Archive(base, clock).take_in(portrait)
    await check_laws(base)
    assert await texts(base) == [turn.human for turn in portrait.turns]
    await heal(base, clock, model)
    for session in (await everything(base))[1]:
        assert session.state is SessionState.CLOSED
        assert session.summary in ("From the file.", "Made here.")
    for number in (2, 3):  # those that had no summary in the file
        newest = [prompt for prompt in model.prompts if f" of {number};" in prompt][-1]
        assert f"turn 1 of {number};" in newest
        assert f"turn 2 of {number};" in newest


@pytest.mark.parametrize("other", ["sessions and turns", "sessions", "turns"])
async def test_ids_that_are_somebody_elses_change_nothing_of_theirs_and_leave_no_turn_without_a_session(
    archive: Archive, base: InMemoryStore, other: str
) -> None:
    theirs = portrait_of(*ALL, memory_id=BOB)
    await archive.take_in(theirs)
    before = (await everything(base, BOB), await base.person(BOB))
    mine = portrait_of(*ALL)
    if other == "sessions":
        mine = replace(mine, turns=tuple(turn(n, s) for s in mine.sessions for n in (7, 8)))
    if other == "turns":
        moved = {s.session_id: SessionId(f"{number + 50:032x}") for number, s in enumerate(mine.sessions)}
        mine = Portrait(
            mine.person,
            tuple(replace(s, session_id=moved[s.session_id]) for s in mine.sessions),
            tuple(replace(t, session_id=moved[t.session_id]) for t in mine.turns),
        )
    imported = await archive.take_in(mine)
    assert (await everything(base, BOB), await base.person(BOB)) == before
    assert imported.turns == 0
    assert imported.known == (6 if other == "turns" else 9)
    await check_laws(base)
    await check_laws(base, BOB)


async def test_a_file_that_puts_a_known_session_before_another_audience_adds_nothing_to_it(
    archive: Archive, base: InMemoryStore
) -> None:
    portrait = portrait_of(SessionState.CLOSED)
    await archive.take_in(portrait)
    club = Audience("club")
    forged = Portrait(
        portrait.person,
        tuple(replace(session, audience=club) for session in portrait.sessions),
        tuple(replace(turn(n, portrait.sessions[0], "told to the club"), audience=club) for n in (7, 8)),
    )
    assert (await archive.take_in(forged)).turns == 0
    await check_laws(base)


async def test_nobody_has_nothing_to_export(archive: Archive) -> None:
    assert await archive.export(ANN) is None


async def test_an_export_holds_nothing_of_others(archive: Archive) -> None:
    await archive.take_in(portrait_of(*ALL))
    await archive.take_in(
        replace(
            portrait_of(SessionState.CLOSED, memory_id=BOB),
            sessions=(session_in(SessionState.CLOSED, 99, memory_id=BOB),),
            turns=(),
        )
    )
    portrait = await archive.export(BOB)
    assert portrait is not None
    assert [session.session_id for session in portrait.sessions] == [SessionId(f"{99:032x}")]
    assert portrait.turns == ()
