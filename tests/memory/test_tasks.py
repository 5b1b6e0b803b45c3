"""Tasks belong to somebody: timers that move, locks per key, and failures that are logged and not lost."""

from __future__ import annotations

import asyncio
import gc
import logging
from datetime import timedelta

import pytest

from memory.tasks import KeyedLocks, KeyedTimers, TaskSet
from tests.clock import FakeClock, settle

MARKER = "a secret that was said"


async def forever() -> None:
    await asyncio.Event().wait()


class Fired:
    """Remembers which keys fired and when; may be held at work."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.at: list[tuple[str, float]] = []
        self.start = clock.now()
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, key: str) -> None:
        self.at.append((key, (self.clock.now() - self.start).total_seconds()))
        await self.go.wait()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def fired(clock: FakeClock) -> Fired:
    return Fired(clock)


@pytest.fixture
def timers(clock: FakeClock, fired: Fired) -> KeyedTimers[str]:
    return KeyedTimers(clock, fired, name="test")


async def test_a_timer_fires_once_at_its_time(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    timers.set("a", clock.now() + timedelta(seconds=10))
    await clock.advance(9.999)
    assert fired.at == []
    assert "a" in timers
    await clock.advance(100)
    assert fired.at == [("a", 10)]
    assert "a" not in timers


async def test_a_time_that_is_past_fires_at_once(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    timers.set("a", clock.now() - timedelta(seconds=10))
    await settle()
    assert fired.at == [("a", 0)]


async def test_a_timer_that_is_set_again_moves_later(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    timers.set("a", clock.now() + timedelta(seconds=10))
    await clock.advance(5)
    timers.set("a", clock.now() + timedelta(seconds=10))
    assert len(timers) == 1
    await clock.advance(100)
    assert fired.at == [("a", 15)]


async def test_a_timer_that_is_set_again_moves_earlier(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    timers.set("a", clock.now() + timedelta(seconds=10))
    timers.set("a", clock.now() + timedelta(seconds=3))
    await clock.advance(100)
    assert fired.at == [("a", 3)]


async def test_a_cancelled_timer_never_fires_and_a_missing_one_is_no_error(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    timers.set("a", clock.now() + timedelta(seconds=10))
    timers.cancel("a")
    timers.cancel("a")
    timers.cancel("b")
    await clock.advance(100)
    assert fired.at == []
    assert len(timers) == 0


async def test_a_timer_cancelled_and_set_again_fires_once(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    timers.set("a", clock.now() + timedelta(seconds=10))
    await settle()
    timers.cancel("a")
    timers.set("a", clock.now() + timedelta(seconds=20))
    await clock.advance(100)
    assert fired.at == [("a", 20)]


async def test_keys_do_not_disturb_each_other(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    for number in range(20):
        timers.set(str(number), clock.now() + timedelta(seconds=number + 1))
    timers.cancel("7")
    await clock.advance(100)
    assert fired.at == [(str(number), number + 1) for number in range(20) if number != 7]


async def test_a_timer_at_work_is_not_disturbed_and_setting_the_key_starts_another(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    fired.go.clear()
    timers.set("a", clock.now() + timedelta(seconds=1))
    await clock.advance(1)
    timers.cancel("a")
    timers.set("a", clock.now() + timedelta(seconds=1))
    await clock.advance(1)
    assert fired.at == [("a", 1), ("a", 2)]
    timers.stop_waiting()
    assert not await timers.drain(grace=0.01)
    fired.go.set()
    assert await timers.drain(grace=5)


async def test_a_clock_set_back_lets_the_timer_wait_for_its_time(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    timers.set("a", clock.now() + timedelta(seconds=10))
    await settle()
    clock.step(-60)
    await clock.advance(69)
    assert fired.at == []
    await clock.advance(2)
    assert [at for _, at in fired.at] == [10]


async def test_closing_timers_cancels_those_that_wait_and_those_at_work(
    clock: FakeClock, fired: Fired, timers: KeyedTimers[str]
) -> None:
    fired.go.clear()
    timers.set("a", clock.now())
    timers.set("b", clock.now() + timedelta(seconds=10))
    await settle()
    await timers.aclose()
    await clock.advance(100)
    assert fired.at == [("a", 0)]


async def test_a_failing_task_is_logged_and_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError(MARKER)

    tasks = TaskSet()
    other = tasks.spawn(forever(), name="other")
    tasks.spawn(fail(), name="the-failing-one")
    await settle()
    assert "the-failing-one" in caplog.text
    assert "RuntimeError" in caplog.text
    assert not other.done()
    await tasks.aclose()
    assert other.cancelled()


async def test_the_text_of_a_failure_is_not_logged_but_the_place_is(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        try:
            int(MARKER)  # says what it could not read
        except ValueError as fault:
            raise RuntimeError(MARKER) from fault

    tasks = TaskSet()
    tasks.spawn(fail(), name="test")
    await settle()
    assert MARKER not in caplog.text
    assert "RuntimeError" in caplog.text
    assert "ValueError" in caplog.text
    assert "test_tasks.py" in caplog.text


async def test_a_cancelled_task_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tasks = TaskSet()
    tasks.spawn(forever(), name="test").cancel()
    await settle()
    assert len(tasks) == 0
    assert not caplog.records


async def test_draining_waits_for_what_the_tasks_start() -> None:
    done: list[str] = []
    tasks = TaskSet()

    async def second() -> None:
        await asyncio.sleep(0)
        done.append("second")

    async def first() -> None:
        await asyncio.sleep(0)
        tasks.spawn(second(), name="second")
        done.append("first")

    tasks.spawn(first(), name="first")
    assert await tasks.drain(grace=5)
    assert done == ["first", "second"]


async def test_draining_gives_up_after_its_grace_and_leaves_the_task_running() -> None:
    tasks = TaskSet()
    task = tasks.spawn(forever(), name="test")
    assert not await tasks.drain(grace=0.01)
    assert not task.done()
    await tasks.aclose()


async def test_closing_waits_for_a_task_to_clean_up() -> None:
    cleaned: list[bool] = []

    async def careful() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await settle()
            cleaned.append(True)

    tasks = TaskSet()
    tasks.spawn(careful(), name="test")
    await settle()
    await tasks.aclose()
    assert cleaned == [True]


async def test_closing_ends_also_a_task_that_swallows_its_first_cancellation() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()  # as a library does that loses a cancellation

    tasks = TaskSet()
    task = tasks.spawn(stubborn(), name="test")
    await settle()
    async with asyncio.timeout(10):
        await tasks.aclose(patience=0.01)
    assert task.cancelled()


async def test_closing_ends_also_what_a_task_starts_while_it_is_cancelled() -> None:
    tasks = TaskSet()

    async def breeder() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tasks.spawn(forever(), name="child")

    tasks.spawn(breeder(), name="parent")
    await settle()
    await tasks.aclose()
    assert len(tasks) == 0


async def test_a_lock_keeps_others_of_its_key_out_and_only_them() -> None:
    locks: KeyedLocks[str] = KeyedLocks()
    order: list[str] = []

    async def work(key: str, name: str, go: asyncio.Event) -> None:
        async with locks(key):
            order.append(f"{name} in")
            await go.wait()
            order.append(f"{name} out")

    go, at_once = asyncio.Event(), asyncio.Event()
    at_once.set()
    tasks = TaskSet()
    tasks.spawn(work("a", "first", go), name="first")
    tasks.spawn(work("a", "second", at_once), name="second")
    tasks.spawn(work("b", "third", at_once), name="third")
    await settle()
    assert order == ["first in", "third in", "third out"]
    go.set()
    assert await tasks.drain(grace=5)
    assert order[3:] == ["first out", "second in", "second out"]


async def test_a_lock_is_gone_when_nobody_needs_it() -> None:
    locks: KeyedLocks[str] = KeyedLocks()
    first = locks("a")
    assert locks("a") is first
    number = id(first)
    async with locks("a"):
        gc.collect()
        assert id(locks("a")) == number
    del first
    gc.collect()
    assert len(locks._locks) == 0
