"""The contract of a store, as tests: every implementation runs all of them.

A subclass says how to make the store. The last test plays the same random moves on the store and on the
reference in memory, so that a condition nobody thought of here shows as a difference.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from memory.errors import StoreFault
from memory.ports import Store
from memory.stores.inmemory import InMemoryStore
from memory.types import (
    DIRECT,
    Holdings,
    MemoryId,
    Outcome,
    Person,
    RunningSummary,
    Session,
    SessionId,
    SessionState,
    TurnId,
)
from tests.stores.moves import Moves
from tests.stores.values import ANN, BEN, GROUP, at, full_session, gathered, session, turn

CLOSING, CLOSED, OPEN = SessionState.CLOSING, SessionState.CLOSED, SessionState.OPEN


def ids(turns: object) -> list[str]:
    assert isinstance(turns, (tuple, list))
    return [value.turn_id if hasattr(value, "turn_id") else value.session_id for value in turns]


class Lifetime:
    async def test_preparing_twice_and_at_once_is_harmless(self, store: Store) -> None:
        await store.add_turn(turn("t1"))
        await asyncio.gather(store.prepare(), store.prepare())
        await store.prepare()
        assert ids(await store.turns(ANN)) == ["t1"]

    async def test_it_tells_what_it_is(self, store: Store) -> None:
        assert await store.ping()

    async def test_closing_twice_is_harmless(self, store: Store) -> None:
        await store.aclose()
        await store.aclose()


class Turns:
    async def test_a_turn_comes_back_as_it_went_in(self, store: Store) -> None:
        whole = replace(turn("t1"), outcome=Outcome.STOPPED)
        bare = replace(turn("t2"), usage=None, model="", reply="", outcome=Outcome.FAILED)
        assert await store.add_turn(whole)
        assert await store.add_turn(bare)
        assert await store.turn(ANN, TurnId("t1")) == whole
        assert await store.turn(ANN, TurnId("t2")) == bare

    async def test_a_turn_added_twice_is_there_once_as_it_was_first(self, store: Store) -> None:
        assert await store.add_turn(turn("t1", human="first"))
        assert not await store.add_turn(turn("t1", human="second"))
        assert [found.human for found in await store.turns(ANN)] == ["first"]

    async def test_a_turn_is_not_given_to_another_person(self, store: Store) -> None:
        await store.add_turn(turn("t1"))
        assert await store.turn(BEN, TurnId("t1")) is None
        assert await store.turns(BEN) == ()
        assert await store.turn(ANN, TurnId("t2")) is None

    async def test_times_come_back_in_utc_and_whole_milliseconds(self, store: Store) -> None:
        precise = at(0) + timedelta(microseconds=1999)
        east = timezone(timedelta(hours=9))
        await store.add_turn(replace(turn("t1"), at=precise.astimezone(east), replied_at=precise))
        found = await store.turn(ANN, TurnId("t1"))
        assert found is not None
        assert found.at == found.replied_at == at(0) + timedelta(milliseconds=1)
        assert found.at.utcoffset() == timedelta(0)

    async def test_any_text_can_be_stored(self, store: Store) -> None:
        odd = "思い出 \U0001f375 \0 $set a.b {'$gt': 1} \n\r\u2028 \u0301"
        await store.add_turn(turn("$t.1", human=odd, reply=odd))
        found = await store.turn(ANN, TurnId("$t.1"))
        assert found is not None
        assert (found.human, found.reply) == (odd, odd)

    async def test_half_a_surrogate_pair_is_replaced(self, store: Store) -> None:
        await store.add_turn(turn("t1", human="a\ud83db", reply="\ud83d\ude00"))
        found = await store.turn(ANN, TurnId("t1"))
        assert found is not None
        assert (found.human, found.reply) == ("a\ufffdb", "\U0001f600")

    async def test_an_id_that_cannot_be_stored_as_it_is_is_refused(self, store: Store) -> None:
        for wrong in ("terminal:\udc80", ""):
            with pytest.raises(StoreFault):
                await store.add_turn(turn("t1", memory_id=MemoryId(wrong)))
            with pytest.raises(StoreFault):
                await store.open_session(session(memory_id=MemoryId(wrong)))
            with pytest.raises(StoreFault):
                await store.put_person(Person(MemoryId(wrong)))

    async def test_turns_are_ordered_by_time_and_then_by_id(self, store: Store) -> None:
        for turn_id, minutes in (("t3", 5), ("t1", 5), ("t9", 1), ("t2", 5)):
            await store.add_turn(turn(turn_id, minutes=minutes))
        assert ids(await store.turns(ANN)) == ["t9", "t1", "t2", "t3"]
        assert ids(await store.turns(ANN, newest=2)) == ["t2", "t3"]

    async def test_since_is_in_and_until_is_out(self, store: Store) -> None:
        for number in range(5):
            await store.add_turn(turn(f"t{number}", minutes=number))
        assert ids(await store.turns(ANN, since=at(1), until=at(3))) == ["t1", "t2"]
        assert ids(await store.turns(ANN, since=at(3))) == ["t3", "t4"]
        assert ids(await store.turns(ANN, until=at(1))) == ["t0"]
        assert await store.turns(ANN, since=at(3), until=at(1)) == ()

    @pytest.mark.parametrize("days", [0.01, 0.5, 3, 20, 200, 3000])
    async def test_the_newest_are_found_however_long_ago_they_were(self, store: Store, days: float) -> None:
        now = datetime.now(UTC)
        for number in range(4):
            when = now - timedelta(days=days * (number + 1))
            await store.add_turn(replace(turn(f"t{9 - number}"), at=when))
        assert ids(await store.turns(ANN, newest=3)) == ["t7", "t8", "t9"]
        assert ids(await store.turns(ANN, newest=9)) == ["t6", "t7", "t8", "t9"]
        until = now - timedelta(days=days)
        assert ids(await store.turns(ANN, newest=2, until=until)) == ["t7", "t8"]
        assert ids(await store.turns(ANN, newest=9, since=now - timedelta(days=days * 2.5))) == ["t8", "t9"]
        assert ids(await gathered(store.scan(ANN))) == ["t9", "t8", "t7", "t6"]

    async def test_turns_of_the_future_are_the_newest(self, store: Store) -> None:
        now = datetime.now(UTC)
        for turn_id, days in (("t1", -1), ("t2", 1), ("t3", 900)):
            await store.add_turn(replace(turn(turn_id), at=now + timedelta(days=days)))
        assert ids(await store.turns(ANN, newest=2)) == ["t2", "t3"]
        assert ids(await gathered(store.scan(ANN))) == ["t3", "t2", "t1"]

    async def test_none_of_the_newest_are_none(self, store: Store) -> None:
        await store.add_turn(turn("t1"))
        assert await store.turns(ANN, newest=0) == ()

    async def test_only_the_turns_of_one_session(self, store: Store) -> None:
        for number in range(6):
            await store.add_turn(turn(f"t{number}", minutes=number, session=f"s{number % 2}"))
        odd = session("s1", minutes=1)
        assert ids(await store.turns(ANN, session=odd)) == ["t1", "t3", "t5"]
        assert ids(await store.turns(ANN, session=odd, newest=2)) == ["t3", "t5"]
        assert ids(await store.turns(ANN, session=odd, since=at(2), until=at(5))) == ["t3"]
        assert ids(await store.turns(ANN, session=odd, since=at(-9))) == ["t1", "t3", "t5"]

    async def test_a_scan_goes_through_everything_newest_first(self, store: Store) -> None:
        for number in range(250):
            await store.add_turn(turn(f"t{number:03}", minutes=number // 2))
        await store.add_turn(turn("x", memory_id=BEN))
        assert ids(await gathered(store.scan(ANN))) == [f"t{number:03}" for number in range(249, -1, -1)]

    async def test_a_scan_may_be_left_early(self, store: Store) -> None:
        for number in range(3):
            await store.add_turn(turn(f"t{number}", minutes=number))
        async for found in store.scan(ANN):
            assert found.turn_id == "t2"
            break

    async def test_turns_are_counted_by_session(self, store: Store) -> None:
        for number in range(5):
            await store.add_turn(turn(f"t{number}", session=f"s{number % 2}"))
        await store.add_turn(turn("x", memory_id=BEN))
        assert dict(await store.count_turns(ANN)) == {"s0": 3, "s1": 2}
        assert dict(await store.count_turns(MemoryId("nobody"))) == {}


class OpenSessions:
    async def test_a_session_comes_back_as_it_went_in(self, store: Store) -> None:
        assert await store.put_session(full_session())
        assert await store.session(ANN, SessionId("full")) == full_session()
        assert await store.open_session(session()) == session()
        assert await store.session(ANN, SessionId("s1")) == session()

    async def test_a_session_is_not_given_to_another_person(self, store: Store) -> None:
        await store.open_session(session())
        assert await store.session(BEN, SessionId("s1")) is None
        assert await store.opened(BEN, DIRECT) is None
        assert await store.sessions(BEN) == ()

    async def test_opening_again_returns_the_one_that_is_open(self, store: Store) -> None:
        first = await store.open_session(session("s1"))
        assert await store.open_session(session("s2", minutes=5)) == first
        assert await store.open_session(session("s1")) == first
        assert await store.session(ANN, SessionId("s2")) is None
        assert await store.opened(ANN, DIRECT) == first

    async def test_each_audience_and_each_person_has_an_open_session_of_its_own(self, store: Store) -> None:
        await store.open_session(session("s1"))
        await store.open_session(session("s2", audience=GROUP))
        await store.open_session(session("s3", memory_id=BEN))
        assert sorted(ids(await gathered(store.live()))) == ["s1", "s2", "s3"]

    async def test_after_the_end_another_one_can_be_opened(self, store: Store) -> None:
        await closing(store, await store.open_session(session("s1")))
        assert await store.opened(ANN, DIRECT) is None
        assert (await store.open_session(session("s2"))).session_id == "s2"

    async def test_an_id_that_has_ended_cannot_be_opened(self, store: Store) -> None:
        await closing(store, await store.open_session(session("s1")))
        with pytest.raises(StoreFault):
            await store.open_session(session("s1"))

    async def test_many_who_open_at_once_all_get_the_same_one(self, store: Store) -> None:
        opened = await asyncio.gather(*(store.open_session(session(f"s{n}")) for n in range(8)))
        assert len({found.session_id for found in opened}) == 1
        assert len(await store.sessions(ANN)) == 1

    async def test_a_session_put_twice_is_there_once_as_it_was_first(self, store: Store) -> None:
        assert await store.put_session(session("s1", state=CLOSED, due=None, summary="first"))
        assert not await store.put_session(session("s1", state=CLOSED, due=None, summary="second"))
        assert [found.summary for found in await store.sessions(ANN)] == ["first"]

    async def test_a_second_open_one_cannot_be_put(self, store: Store) -> None:
        await store.open_session(session("s1"))
        with pytest.raises(StoreFault):
            await store.put_session(session("s2"))
        assert not await store.put_session(session("s1"))

    async def test_sessions_are_found_by_their_start(self, store: Store) -> None:
        for number in range(5):
            await store.put_session(session(f"s{number}", minutes=number, due=None, state=CLOSED))
        assert ids(await store.sessions(ANN)) == ["s0", "s1", "s2", "s3", "s4"]
        assert ids(await store.sessions(ANN, since=at(1), until=at(3))) == ["s1", "s2"]
        assert ids(await store.sessions(ANN, until=at(4), newest=2)) == ["s2", "s3"]

    async def test_sessions_are_found_by_their_audience(self, store: Store) -> None:
        for number in range(6):
            audience = GROUP if number % 2 else DIRECT
            await store.put_session(
                session(f"s{number}", minutes=number, due=None, state=CLOSED, audience=audience)
            )
        assert ids(await store.sessions(ANN, audience=GROUP)) == ["s1", "s3", "s5"]
        assert ids(await store.sessions(ANN, audience=GROUP, newest=2)) == ["s3", "s5"]

    async def test_due_are_those_whose_time_has_come(self, store: Store) -> None:
        await store.put_session(session("open", due=10))
        await store.put_session(session("closing", due=20, state=CLOSING, memory_id=BEN))
        await store.put_session(session("later", due=21, audience=GROUP))
        await store.put_session(session("closed", due=None, state=CLOSED))
        assert sorted(ids(await gathered(store.due(at(20))))) == ["closing", "open"]
        assert ids(await gathered(store.due(at(10)))) == ["open"]
        assert await gathered(store.due(at(9))) == []

    async def test_live_are_those_that_are_open(self, store: Store) -> None:
        await store.put_session(session("open", due=10))
        await store.put_session(session("closing", state=CLOSING, memory_id=BEN))
        await store.put_session(session("closed", due=None, state=CLOSED))
        assert ids(await gathered(store.live())) == ["open"]

    async def test_more_sessions_than_one_answer_holds(self, store: Store) -> None:
        for number in range(250):
            await store.put_session(session(f"s{number}", memory_id=MemoryId(f"terminal:{number}")))
        assert len(set(ids(await gathered(store.live())))) == 250
        assert len(set(ids(await gathered(store.due(at(30)))))) == 250


class SessionLife:
    async def test_the_deadline_moves_on_and_never_back(self, store: Store) -> None:
        opened = await store.open_session(session(due=30))
        assert await store.touch(opened, due_at=at(50))
        assert await store.touch(opened, due_at=at(40))
        assert (await stored(store, opened)).due_at == at(50)

    async def test_the_deadline_stands_once_the_session_has_changed(self, store: Store) -> None:
        opened = await store.open_session(session())
        await store.revise(ANN, opened.session_id, due_at=at(0))
        assert not await store.touch(opened, due_at=at(50))
        revised = await stored(store, opened)
        assert await store.touch(revised, due_at=at(50))
        await closing(store, await stored(store, opened))
        assert not await store.touch(revised, due_at=at(60))
        assert not await store.touch(session("none"), due_at=at(60))

    async def test_another_timeout_moves_the_deadline_either_way(self, store: Store) -> None:
        opened = await store.open_session(session(due=30))
        assert await store.retime(opened, seconds=2.0, due_at=at(10))
        assert await stored(store, opened) == replace(opened, timeout=2.0, due_at=at(10))
        await store.revise(ANN, opened.session_id, due_at=at(0))
        assert not await store.retime(opened, seconds=3.0, due_at=at(20))
        revised = await stored(store, opened)
        await closing(store, revised)
        assert not await store.retime(revised, seconds=3.0, due_at=at(20))
        assert not await store.retime(session("none"), seconds=3.0, due_at=at(20))

    async def test_the_window_is_kept_with_its_summary(self, store: Store) -> None:
        opened = await store.open_session(session())
        running = RunningSummary("so far\ud800", through=TurnId("t4"))
        assert await store.set_window(opened, window_from=TurnId("t5"), running=running)
        found = await stored(store, opened)
        assert found.window_from == "t5"
        assert found.running == RunningSummary("so far\ufffd", through=TurnId("t4"))
        assert await store.set_window(opened, window_from=None, running=None)
        assert await stored(store, opened) == opened

    async def test_the_window_of_an_earlier_revision_is_not_kept(self, store: Store) -> None:
        opened = await store.open_session(session())
        await store.revise(ANN, opened.session_id, due_at=at(0))
        assert not await store.set_window(opened, window_from=TurnId("t5"), running=None)
        assert not await store.set_window(session("none"), window_from=None, running=None)
        assert (await stored(store, opened)).window_from is None

    async def test_a_session_that_is_due_is_claimed(self, store: Store) -> None:
        opened = await store.open_session(session(due=30))
        claimed = await claim(store, opened, now=30)
        assert claimed == replace(opened, state=CLOSING, owner="me", due_at=at(32), ended_at=at(30))
        assert await stored(store, opened) == claimed

    async def test_a_session_that_is_not_due_is_claimed_only_early(self, store: Store) -> None:
        opened = await store.open_session(session(due=30))
        assert await claim(store, opened, now=29) is None
        assert await claim(store, opened, now=29, early=True) is not None

    async def test_a_session_whose_deadline_has_moved_is_not_claimed(self, store: Store) -> None:
        opened = await store.open_session(session(due=30))
        await store.touch(opened, due_at=at(31))
        assert await claim(store, opened, now=35) is None
        assert await claim(store, opened, now=35, early=True) is not None

    async def test_a_lease_is_taken_over_when_it_has_run_out(self, store: Store) -> None:
        opened = await store.open_session(session(due=30))
        first = await claim(store, opened, now=30)
        assert first is not None
        assert await claim(store, opened, now=31, owner="you") is None
        assert await claim(store, first, now=31, owner="you", early=True) is None
        second = await claim(store, first, now=32, owner="you")
        assert second is not None
        assert (second.owner, second.due_at, second.ended_at) == ("you", at(34), at(30))
        assert not await store.finish(first, summary="mine", summary_model="")
        assert not await store.postpone(first, due_at=at(99), fault=None)
        assert await store.finish(second, summary="yours", summary_model="")

    async def test_what_is_closed_or_gone_is_not_claimed(self, store: Store) -> None:
        await store.put_session(session("closed", due=None, state=CLOSED))
        assert await claim(store, session("closed", due=0), now=99, early=True) is None
        assert await claim(store, session("none", due=0), now=99, early=True) is None

    async def test_a_result_lands_once(self, store: Store) -> None:
        claimed = await closing(store, await store.open_session(session()))
        assert await store.finish(claimed, summary="tea\ud800", summary_model="small")
        assert not await store.finish(claimed, summary="rain", summary_model="small")
        found = await stored(store, claimed)
        assert (found.state, found.summary, found.summary_model) == (CLOSED, "tea\ufffd", "small")
        assert (found.due_at, found.owner, found.ended_at) == (None, None, claimed.ended_at)
        assert await gathered(store.due(at(999))) == []

    async def test_a_session_without_turns_ends_without_summary(self, store: Store) -> None:
        claimed = await closing(store, await store.open_session(session()))
        assert await store.finish(claimed, summary=None, summary_model="")
        assert (await stored(store, claimed)).summary is None

    async def test_a_result_does_not_land_after_a_revision(self, store: Store) -> None:
        claimed = await closing(store, await store.open_session(session()))
        await store.revise(ANN, claimed.session_id, due_at=at(40))
        assert not await store.finish(claimed, summary="with what was erased", summary_model="small")
        assert (await stored(store, claimed)).summary is None

    async def test_nobody_finishes_without_a_lease(self, store: Store) -> None:
        opened = await store.open_session(session())
        assert not await store.finish(opened, summary="x", summary_model="")
        claimed = await closing(store, opened)
        await store.postpone(claimed, due_at=at(90), fault=None)
        assert not await store.finish(claimed, summary="x", summary_model="")
        assert not await store.finish(replace(claimed, owner=None), summary="x", summary_model="")
        assert not await store.postpone(replace(claimed, owner=None), due_at=at(91), fault=None)

    async def test_a_failed_attempt_is_counted_and_comes_due_again(self, store: Store) -> None:
        claimed = await closing(store, await store.open_session(session()))
        assert await store.postpone(claimed, due_at=at(90), fault="ModelUnavailable")
        waiting = await stored(store, claimed)
        assert (waiting.state, waiting.owner, waiting.due_at) == (CLOSING, None, at(90))
        assert (waiting.attempts, waiting.fault) == (1, "ModelUnavailable")
        again = await claim(store, waiting, now=90)
        assert again is not None
        assert await store.finish(again, summary="at last", summary_model="small")
        assert (await stored(store, claimed)).fault is None

    async def test_a_lease_given_back_counts_nothing(self, store: Store) -> None:
        claimed = await closing(store, await store.open_session(session()))
        assert await store.postpone(claimed, due_at=at(31), fault=None)
        waiting = await stored(store, claimed)
        assert (waiting.attempts, waiting.fault, waiting.due_at) == (0, None, at(31))

    async def test_revising_a_closed_session_closes_it_anew(self, store: Store) -> None:
        claimed = await closing(store, await store.open_session(session()))
        await store.finish(claimed, summary="tea", summary_model="small")
        revised = await store.revise(ANN, claimed.session_id, due_at=at(77))
        assert revised == replace(claimed, revision=1, due_at=at(77), owner=None)
        assert ids(await gathered(store.due(at(77)))) == ["s1"]

    async def test_revising_an_open_session_leaves_it_open(self, store: Store) -> None:
        opened = await store.open_session(session(due=30))
        await store.set_window(
            opened, window_from=TurnId("t5"), running=RunningSummary("so far", TurnId("t4"))
        )
        assert await store.revise(ANN, opened.session_id, due_at=at(77)) == replace(opened, revision=1)

    async def test_revising_voids_a_lease_and_starts_attempts_over(self, store: Store) -> None:
        await store.put_session(full_session())
        revised = await store.revise(ANN, SessionId("full"), due_at=at(41))
        assert revised is not None
        assert (revised.state, revised.owner, revised.due_at) == (CLOSING, None, at(41))
        assert (revised.attempts, revised.fault, revised.revision) == (0, None, 4)
        assert (revised.summary, revised.running, revised.window_from) == (None, None, None)
        assert revised.ended_at == full_session().ended_at

    async def test_only_ones_own_session_is_revised(self, store: Store) -> None:
        await store.open_session(session())
        assert await store.revise(BEN, SessionId("s1"), due_at=at(0)) is None
        assert await store.revise(ANN, SessionId("none"), due_at=at(0)) is None

    async def test_of_many_who_claim_at_once_one_gets_it(self, store: Store) -> None:
        opened = await store.open_session(session())
        claims = await asyncio.gather(*(claim(store, opened, now=30, owner=f"o{n}") for n in range(8)))
        assert len([found for found in claims if found is not None]) == 1

    async def test_of_many_who_finish_at_once_one_lands(self, store: Store) -> None:
        claimed = await closing(store, await store.open_session(session()))
        landed = await asyncio.gather(
            *(store.finish(claimed, summary=f"{n}", summary_model="") for n in range(8))
        )
        assert landed.count(True) == 1
        assert (await stored(store, claimed)).summary == str(landed.index(True))


class People:
    async def test_a_person_is_kept_and_replaced(self, store: Store) -> None:
        assert await store.person(ANN) is None
        await store.put_person(Person(ANN, timezone="Asia/Tokyo"))
        assert await store.person(ANN) == Person(ANN, timezone="Asia/Tokyo")
        await store.put_person(Person(ANN))
        assert await store.person(ANN) == Person(ANN)
        assert await store.person(BEN) is None

    async def test_one_person_put_by_many_at_once(self, store: Store) -> None:
        await asyncio.gather(*(store.put_person(Person(ANN, timezone="Asia/Tokyo")) for _ in range(8)))
        assert (await store.holdings(ANN)).people == 1

    async def test_known_are_those_who_have_sessions(self, store: Store) -> None:
        for name in ("ann", "anna", "ben", "an\ud7ff", "an\U0010ffff", "an*", "AN"):
            await store.put_session(session(f"of-{name}", memory_id=MemoryId(f"terminal:{name}")))
        await store.put_session(session("more", audience=GROUP))
        await store.put_person(Person(MemoryId("terminal:anderson")))
        found = await store.known("terminal:an")
        assert found == tuple(
            f"terminal:{name}" for name in ("an*", "ann", "anna", "an\ud7ff", "an\U0010ffff")
        )
        assert await store.known("terminal:an\ud7ff") == ("terminal:an\ud7ff",)
        assert await store.known("terminal:an\U0010ffff") == ("terminal:an\U0010ffff",)
        assert await store.known("terminal:", limit=2) == ("terminal:AN", "terminal:an*")
        assert len(await store.known("")) == 7
        assert await store.known("", limit=0) == ()
        assert await store.known("discord:") == ()


class Forgetting:
    async def test_turns_are_deleted_and_counted(self, store: Store) -> None:
        for number in range(250):
            await store.add_turn(turn(f"t{number}", minutes=number))
        await store.add_turn(turn("x", memory_id=BEN))
        gone = [TurnId(f"t{number}") for number in range(249)]
        assert await store.delete_turns(ANN, [*gone, TurnId("x"), TurnId("none")]) == 249
        assert ids(await store.turns(ANN)) == ["t249"]
        assert ids(await store.turns(BEN)) == ["x"]
        assert await store.delete_turns(ANN, gone) == 0
        assert await store.delete_turns(ANN, []) == 0

    async def test_a_turn_that_was_deleted_can_be_added_again(self, store: Store) -> None:
        await store.add_turn(turn("t1"))
        await store.delete_turns(ANN, {TurnId("t1")})
        assert await store.add_turn(turn("t1"))

    async def test_a_session_goes_with_its_turns(self, store: Store) -> None:
        await store.put_session(session("s1", due=None, state=CLOSED, summary="tea"))
        await store.open_session(session("s2"))
        for number in range(5):
            await store.add_turn(turn(f"t{number}", minutes=number, session=f"s{number % 2 + 1}"))
        gone = await store.delete_session(ANN, SessionId("s1"))
        assert gone == Holdings(turns=3, sessions=1, summaries=1)
        assert ids(await store.turns(ANN)) == ["t1", "t3"]
        assert await store.session(ANN, SessionId("s1")) is None
        assert not await store.delete_session(ANN, SessionId("s1"))
        assert await store.delete_session(ANN, SessionId("s2")) == Holdings(turns=2, sessions=1)
        assert await store.opened(ANN, DIRECT) is None

    async def test_a_session_of_another_person_is_not_deleted(self, store: Store) -> None:
        await store.open_session(session())
        await store.add_turn(turn("t1"))
        assert not await store.delete_session(BEN, SessionId("s1"))
        assert await store.holdings(ANN) == Holdings(turns=1, sessions=1)

    async def test_everything_of_one_person_is_erased_and_nothing_of_others(self, store: Store) -> None:
        for memory_id in (ANN, BEN):
            name = str(memory_id)
            await store.put_session(
                session(f"{name}1", memory_id=memory_id, due=None, state=CLOSED, summary="tea")
            )
            await store.open_session(session(f"{name}2", memory_id=memory_id))
            for number in range(120):
                await store.add_turn(turn(f"{name}{number}", memory_id=memory_id, minutes=number))
            await store.put_person(Person(memory_id, timezone="Asia/Tokyo"))
        held = Holdings(turns=120, sessions=2, summaries=1, people=1)
        assert await store.holdings(ANN) == held
        assert await store.erase(ANN) == held
        assert not await store.holdings(ANN)
        assert not await store.erase(ANN)
        assert await store.turns(ANN) == ()
        assert await store.sessions(ANN) == ()
        assert await store.known("") == (BEN,)
        assert await store.holdings(BEN) == held

    async def test_after_erasing_a_person_can_begin_again(self, store: Store) -> None:
        await store.open_session(session())
        await store.add_turn(turn("t1"))
        await store.erase(ANN)
        assert await store.open_session(session()) == session()
        assert await store.add_turn(turn("t1"))
        assert await store.holdings(ANN) == Holdings(turns=1, sessions=1)


class StoreContract(Lifetime, Turns, OpenSessions, SessionLife, People, Forgetting):
    """All of it."""

    @pytest.mark.parametrize("seed", range(6))
    async def test_it_does_what_the_reference_does(self, store: Store, seed: int) -> None:
        await Moves(seed).play(store, InMemoryStore(), count=150)


async def stored(store: Store, known: Session) -> Session:
    found = await store.session(known.memory_id, known.session_id)
    assert found is not None
    return found


async def claim(
    store: Store, known: Session, *, now: float, owner: str = "me", early: bool = False
) -> Session | None:
    return await store.claim(
        known, owner=owner, now=at(now), until=at(now + 2), ended_at=at(now), early=early
    )


async def closing(store: Store, known: Session) -> Session:
    claimed = await claim(store, known, now=30, early=True)
    assert claimed is not None
    assert claimed.state is CLOSING
    return claimed
