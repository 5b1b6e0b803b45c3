"""Jobs run by cron times, one run at a time, and a job that fails comes again.

The event loop of these tests jumps over the time in which nothing happens, so that hours take milliseconds.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memory.errors import StoreUnavailable
from memory.schedule import Schedule

EVERY_MINUTE = "* * * * *"
UTC_ZONE = ZoneInfo("UTC")
MARKER = "a secret that was said"


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing; says how far the time may jump."""

    jumped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is not None and timeout > 0:
            self.jumped += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes at once."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return super().time() + self._jumping.jumped


def run(work: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(work)


class Job:
    """Counts its runs; may fail, or hold."""

    def __init__(self, fault: Exception | None = None, *, holds: bool = False) -> None:
        self.runs = 0
        self.cancelled = 0
        self.fault = fault
        self.holds = holds

    async def __call__(self) -> None:
        self.runs += 1
        if self.fault is not None:
            raise self.fault
        try:
            if self.holds:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


async def for_a_while(jobs: dict[str, tuple[str, Job]], *, minutes: float, zone: ZoneInfo = UTC_ZONE) -> None:
    schedule = Schedule(dict(jobs), zone=zone)
    schedule.start()
    await asyncio.sleep(minutes * 60)
    await schedule.aclose()


def test_a_job_runs_at_each_of_its_times() -> None:
    every, fifth = Job(), Job()
    run(for_a_while({"every": (EVERY_MINUTE, every), "fifth": ("*/5 * * * *", fifth)}, minutes=60))
    assert every.runs in (59, 60, 61)
    assert fifth.runs in (11, 12, 13)


def test_a_job_still_at_work_is_not_started_again_and_is_cancelled_at_the_end() -> None:
    job = Job(holds=True)
    run(for_a_while({"slow": (EVERY_MINUTE, job)}, minutes=10))
    assert (job.runs, job.cancelled) == (1, 1)


@pytest.mark.parametrize("fault", [ZeroDivisionError(MARKER), StoreUnavailable(MARKER)])
def test_a_job_that_fails_comes_again_and_its_text_is_not_logged(
    fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    failing, other = Job(fault), Job()
    run(for_a_while({"failing": (EVERY_MINUTE, failing), "other": (EVERY_MINUTE, other)}, minutes=10))
    assert failing.runs == other.runs
    assert failing.runs in (9, 10, 11)
    assert "job failing failed" in caplog.text
    assert type(fault).__name__ in caplog.text
    assert MARKER not in caplog.text


def test_after_the_end_nothing_runs_any_more() -> None:
    job = Job()

    async def work() -> None:
        await for_a_while({"job": (EVERY_MINUTE, job)}, minutes=0)
        await asyncio.sleep(600)

    run(work())
    assert job.runs == 0


def test_a_schedule_can_be_closed_twice_and_unstarted() -> None:
    async def work() -> None:
        schedule = Schedule({"job": (EVERY_MINUTE, Job())}, zone=UTC_ZONE)
        await schedule.aclose()
        schedule.start()
        await schedule.aclose()
        await schedule.aclose()

    run(work())


@pytest.mark.parametrize("zone", [ZoneInfo("Asia/Kathmandu"), ZoneInfo("America/New_York"), UTC_ZONE])
def test_times_are_those_of_the_zone(zone: ZoneInfo) -> None:
    job = Job()
    soon = (datetime.now(UTC) + timedelta(minutes=90)).astimezone(zone)
    spec = f"{soon.minute} {soon.hour} * * *"

    async def work() -> None:
        schedule = Schedule({"daily": (spec, job)}, zone=zone)
        schedule.start()
        await asyncio.sleep(88 * 60)
        assert job.runs == 0
        await asyncio.sleep(3 * 60)
        assert job.runs == 1
        await schedule.aclose()

    run(work())
