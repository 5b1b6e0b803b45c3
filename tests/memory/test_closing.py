"""An ended session is summarised exactly once, in the end, whatever the model, a worker or a rival does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from memory.closing import ClosingPolicy
from memory.errors import CompletionFault, CompletionTooLong, CorruptRecord, StoreUnavailable
from memory.stores.inmemory import InMemoryStore
from memory.types import Session, SessionState
from tests.clock import FakeClock, settle
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN, KEY, TIMEOUT, Process, everything
from tests.memory.scripted import MODEL, Held, ScriptedCompleter

POLICY = ClosingPolicy(lease=120, retry_first=60, retry_longest=3600)


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
    process = Process(store, clock, model, policy=POLICY)
    yield process
    store.away = False
    await process.stop()


async def only(base: InMemoryStore) -> Session:
    (session,) = (await everything(base))[1]
    return session


async def ended(process: Process, *said: str) -> None:
    """Make a session that is closing and queued, with no worker at it yet."""
    for text in said:
        await process.say(text)
    await process.sessions.end(KEY)


async def sweep(process: Process) -> None:
    await process.sessions.sweep()
    await settle()


async def test_the_summary_lands_with_the_model_that_wrote_it(process: Process, base: InMemoryStore) -> None:
    await ended(process, "hello")
    process.closer.start()
    await settle()
    session = await only(base)
    assert (session.state, session.summary, session.summary_model) == (
        SessionState.CLOSED,
        "A short note.",
        MODEL,
    )
    assert (session.owner, session.due_at, session.fault) == (None, None, None)
    assert len(process.closer) == 0


async def test_two_workers_race_and_one_summary_is_made(
    base: InMemoryStore, clock: FakeClock, process: Process, model: ScriptedCompleter
) -> None:
    rival = Process(FlakyStore(base), clock, model, policy=POLICY)
    await ended(process, "hello")
    rival.closer.enqueue(await only(base))
    held = Held()
    model.enqueue(held)
    process.closer.start()
    rival.closer.start()
    await settle()
    assert len(model.prompts) == 1
    held.release()
    await settle()
    assert (await only(base)).summary == "A note held back."
    await rival.stop()


async def test_a_dead_workers_lease_runs_out_and_another_takes_over(
    base: InMemoryStore, clock: FakeClock, process: Process, store: FlakyStore, model: ScriptedCompleter
) -> None:
    model.enqueue(Held())
    await ended(process, "hello")
    process.closer.start()
    await settle()
    store.away = True  # dead: nothing of it reaches the store any more
    rival = await Process(FlakyStore(base), clock, model, policy=POLICY).start()
    await sweep(rival)
    assert (await only(base)).summary is None, "the lease still holds"
    await clock.advance(POLICY.lease)
    await sweep(rival)
    assert (await only(base)).summary == "A short note."
    await rival.stop()


async def test_a_worker_whose_lease_was_taken_cannot_land_its_result(
    base: InMemoryStore, clock: FakeClock, process: Process, model: ScriptedCompleter
) -> None:
    slow = Held("Too late.")
    model.enqueue(slow)
    await ended(process, "hello")
    process.closer.start()
    await settle()
    await base.claim(
        await only(base),
        owner="somebody else",
        now=clock.now() + timedelta(seconds=POLICY.lease),
        until=clock.now() + timedelta(hours=1),
        ended_at=clock.now(),
    )
    slow.release()
    await settle()
    session = await only(base)
    assert (session.state, session.summary, session.owner) == (SessionState.CLOSING, None, "somebody else")


async def test_a_model_slower_than_its_lease_keeps_the_session(
    base: InMemoryStore, clock: FakeClock, process: Process, model: ScriptedCompleter
) -> None:
    """Two slow processes that take the lease from each other in turn would never come to an end."""
    slow = Held("It took long.")
    model.enqueue(slow)
    await ended(process, "hello")
    process.closer.start()
    await settle()
    rival = await Process(FlakyStore(base), clock, model, policy=POLICY).start()
    for _ in range(6):
        await clock.advance(POLICY.lease * 0.6)
        await sweep(rival)
    slow.release()
    await settle()
    assert (await only(base)).summary == "It took long."
    assert len(model.prompts) == 1
    await rival.stop()


async def test_a_lease_is_not_kept_for_work_that_an_erasure_has_made_void(
    base: InMemoryStore, clock: FakeClock, process: Process, model: ScriptedCompleter
) -> None:
    slow = Held("It quotes the secret.")
    model.enqueue(slow)
    await ended(process, "the secret")
    process.closer.start()
    await settle()
    await base.revise(ANN, (await only(base)).session_id, due_at=clock.now())
    await clock.advance(POLICY.lease)
    session = await only(base)
    assert (session.owner, session.due_at) == (None, clock.now()), "free for whoever does it anew"
    slow.release()
    await settle()
    assert (await only(base)).summary is None


async def test_a_lease_that_cannot_be_taken_anew_is_left_to_another(
    base: InMemoryStore, clock: FakeClock, process: Process, store: FlakyStore, model: ScriptedCompleter
) -> None:
    slow = Held("Too late.")
    model.enqueue(slow)
    await ended(process, "hello")
    process.closer.start()
    await settle()
    store.away = True
    await clock.advance(POLICY.lease)
    store.away = False
    rival = await Process(FlakyStore(base), clock, model, policy=POLICY).start()
    await settle()
    slow.release()
    await settle()
    assert (await only(base)).summary == "A short note."
    await rival.stop()


async def test_after_a_failure_it_tries_again_ever_later_until_it_works(
    base: InMemoryStore, clock: FakeClock, process: Process, model: ScriptedCompleter
) -> None:
    model.enqueue(*[CompletionFault("down")] * 8)
    await ended(process, "hello")
    process.closer.start()
    await settle()
    waits: list[float] = []
    while (session := await only(base)).state is not SessionState.CLOSED:
        assert session.due_at is not None
        assert session.attempts == len(waits) + 1
        assert (session.fault, session.owner, session.summary) == ("CompletionFault", None, None)
        waits.append((session.due_at - clock.now()).total_seconds())
        await clock.advance(waits[-1] - 1)
        await sweep(process)
        assert len(model.prompts) == len(waits), "not before its time"
        await clock.advance(1)
        await sweep(process)
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert session.summary == "A short note."
    assert session.fault is None


class ModelUnreachable(Exception):
    """As the side that knows the model would raise it."""


async def test_the_kind_of_the_cause_is_recorded_and_never_its_text(
    base: InMemoryStore, process: Process, model: ScriptedCompleter
) -> None:
    fault = CompletionFault("a secret")
    fault.__cause__ = ModelUnreachable("a secret too")
    model.enqueue(fault)
    await ended(process, "hello")
    process.closer.start()
    await settle()
    assert (await only(base)).fault == "ModelUnreachable"


async def test_a_failure_that_nobody_expected_is_put_off_like_any_other(
    base: InMemoryStore, clock: FakeClock, process: Process, model: ScriptedCompleter
) -> None:
    model.enqueue(ZeroDivisionError("a secret"))
    await ended(process, "hello")
    process.closer.start()
    await settle()
    session = await only(base)
    assert (session.attempts, session.fault, session.owner) == (1, "ZeroDivisionError", None)
    await clock.advance(60)
    await sweep(process)
    assert (await only(base)).summary == "A short note."


async def test_turns_that_cannot_be_read_are_a_failure_that_shows(
    base: InMemoryStore, process: Process, store: FlakyStore
) -> None:
    await ended(process, "hello")
    store.fail("turns", CorruptRecord("unreadable"))
    process.closer.start()
    await settle()
    session = await only(base)
    assert (session.attempts, session.fault, session.owner) == (1, "CorruptRecord", None)


async def test_one_bad_session_does_not_stop_the_others(
    base: InMemoryStore, process: Process, clock: FakeClock, model: ScriptedCompleter
) -> None:
    model.enqueue(ZeroDivisionError(), ZeroDivisionError(), ZeroDivisionError())
    for number in range(5):
        await ended(process, str(number))
        await clock.advance(1)
    process.closer.start()
    await settle()
    states = [session.state for session in (await everything(base))[1]]
    assert sorted(states) == [SessionState.CLOSED] * 2 + [SessionState.CLOSING] * 3


async def test_what_is_erased_while_the_model_runs_does_not_land_and_is_made_anew_without_it(
    base: InMemoryStore, clock: FakeClock, process: Process, model: ScriptedCompleter
) -> None:
    held = Held("It quotes the secret.")
    model.enqueue(held)
    secret = await process.say("the secret")
    await ended(process, "the rest")
    process.closer.start()
    await settle()
    await base.revise(ANN, secret.session_id, due_at=clock.now())
    await base.delete_turns(ANN, [secret.turn_id])
    held.release()
    await settle()
    assert (await only(base)).summary is None
    await sweep(process)
    assert (await only(base)).summary == "A short note."
    assert "the secret" not in model.prompts[-1]
    assert "the rest" in model.prompts[-1]


async def test_a_session_erased_while_the_model_runs_is_not_brought_back(
    base: InMemoryStore, process: Process, model: ScriptedCompleter
) -> None:
    held = Held()
    model.enqueue(held)
    await ended(process, "hello")
    process.closer.start()
    await settle()
    await base.erase(ANN)
    held.release()
    await settle()
    assert not await base.holdings(ANN)


async def test_an_empty_session_is_closed_without_asking_the_model(
    base: InMemoryStore, process: Process, model: ScriptedCompleter
) -> None:
    process.sessions.abandon(await process.sessions.begin(KEY))
    await process.sessions.end(KEY)
    process.closer.start()
    await settle()
    session = await only(base)
    assert (session.state, session.summary, model.prompts) == (SessionState.CLOSED, None, [])


async def test_of_a_long_session_every_turn_reaches_some_prompt(
    base: InMemoryStore, process: Process, model: ScriptedCompleter, clock: FakeClock
) -> None:
    said = [f"turn {number};" + " and so on" * 60 for number in range(120)]
    await ended(process, *said)
    process.closer.start()
    await settle(2000)
    assert (await only(base)).state is SessionState.CLOSED
    assert len(model.prompts) > 2
    assert all(f"Person: turn {number};" in model.read for number in range(120))
    assert all(f"You said: turn {number};" in model.read for number in range(120))


async def test_when_the_prompt_does_not_fit_it_is_halved_until_it_does(
    base: InMemoryStore, store: FlakyStore, clock: FakeClock
) -> None:
    model = ScriptedCompleter(longest=3000)
    process = Process(store, clock, model, policy=POLICY)
    await ended(process, *[f"turn {number};" + " and so on" * 20 for number in range(40)])
    process.closer.start()
    await settle(2000)
    session = await only(base)
    assert session.summary == "A short note."
    assert session.attempts == 0
    assert all(f"Person: turn {number};" in model.read for number in range(40))
    await process.stop()


async def test_a_model_that_takes_nothing_at_all_is_a_failure_and_no_endless_loop(
    base: InMemoryStore, process: Process, model: ScriptedCompleter
) -> None:
    model.default = CompletionTooLong("never")
    await ended(process, "hello " * 2000)
    process.closer.start()
    await settle(500)
    session = await only(base)
    assert (session.state, session.fault) == (SessionState.CLOSING, "CompletionTooLong")
    assert len(model.prompts) < 20


async def test_the_store_fails_at_the_landing_and_the_lease_brings_it_back(
    base: InMemoryStore, store: FlakyStore, clock: FakeClock, process: Process
) -> None:
    await ended(process, "hello")
    store.fail("finish", StoreUnavailable("for a moment"))
    process.closer.start()
    await settle()
    assert (await only(base)).summary is None
    store.fail("finish", None)
    await clock.advance(POLICY.lease)
    await sweep(process)
    assert (await only(base)).summary == "A short note."


async def test_draining_waits_for_the_queue_but_not_longer_than_its_grace(
    base: InMemoryStore, process: Process, model: ScriptedCompleter
) -> None:
    held = Held()
    model.enqueue(held)
    await ended(process, "hello")
    process.closer.start()
    assert not await process.closer.drain(grace=0.01)
    held.release()
    assert await process.closer.drain(grace=5)
    assert (await only(base)).summary == "A note held back."


async def test_closing_gives_the_lease_back_and_the_next_process_need_not_wait(
    base: InMemoryStore, clock: FakeClock, process: Process, model: ScriptedCompleter
) -> None:
    model.enqueue(Held())
    await ended(process, "hello")
    process.closer.start()
    await settle()
    await process.closer.aclose()
    session = await only(base)
    assert (session.owner, session.due_at, session.attempts) == (None, clock.now(), 0)
    rival = await Process(FlakyStore(base), clock, model, policy=POLICY).start()
    await settle()
    assert (await only(base)).summary == "A short note."
    await rival.stop()


async def test_closing_while_the_store_is_away_is_no_failure(
    process: Process, store: FlakyStore, model: ScriptedCompleter
) -> None:
    model.enqueue(Held())
    await ended(process, "hello")
    process.closer.start()
    await settle()
    store.away = True
    await process.closer.aclose()


async def test_a_session_queued_twice_is_worked_on_once(
    base: InMemoryStore, process: Process, model: ScriptedCompleter
) -> None:
    await ended(process, "hello")
    session = await only(base)
    process.closer.enqueue(session)
    process.closer.enqueue(session)
    assert len(process.closer) == 1
    process.closer.start()
    await settle()
    assert len(model.prompts) == 1


async def test_ten_sessions_ending_at_once_are_all_summarised(
    base: InMemoryStore, clock: FakeClock, process: Process
) -> None:
    process.closer.start()
    keys = [(type(ANN)(f"terminal:{number}"), KEY[1]) for number in range(10)]
    await asyncio.gather(*(process.say("hello", key=key) for key in keys))
    await clock.advance(TIMEOUT)
    await settle(500)
    for memory_id, _ in keys:
        (session,) = (await everything(base, memory_id))[1]
        assert session.summary == "A short note."


def test_the_wait_doubles_and_has_an_end() -> None:
    waits = [POLICY.wait(attempts).total_seconds() for attempts in (0, 1, 2, 6, 7, 1000)]
    assert waits == [60, 120, 240, 3600, 3600, 3600]
