"""Maps times to jobs; the only file that imports aiocron.

A job is a plain coroutine function without arguments, and safe to run twice. One run of a job at a time: if
the last one is still at work when its time comes, that time is left out. A job that fails is logged, and
comes again at its next time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from zoneinfo import ZoneInfo

import aiocron

from memory.tasks import TaskSet, log_failure

log = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]


class Schedule:
    """The jobs of one process, running from `start` to `aclose`."""

    def __init__(self, jobs: dict[str, tuple[str, Job]], *, zone: ZoneInfo) -> None:
        """Take jobs as name -> (cron expression, coroutine function); times are in `zone`."""
        self._jobs = jobs
        self._zone = zone
        self._crons: list[aiocron.Cron] = []
        self._running: set[str] = set()
        self._tasks = TaskSet()

    def start(self) -> None:
        """Begin to watch the time, on the running event loop."""
        loop = asyncio.get_running_loop()
        for name, (spec, job) in self._jobs.items():
            # start=True would begin through the loop's queue, and a stop before that would come to nothing.
            cron = aiocron.Cron(spec, func=self._due(name, job), start=False, loop=loop, tz=self._zone)
            cron.start()
            self._crons.append(cron)

    def _due(self, name: str, job: Job) -> Callable[[], Awaitable[None]]:
        async def due() -> None:
            if name not in self._running:
                self._running.add(name)
                self._tasks.spawn(self._run(name, job), name=f"job-{name}")

        return due

    async def _run(self, name: str, job: Job) -> None:
        try:
            await job()
        except Exception as fault:  # noqa: BLE001 - the boundary of a job
            log_failure(log, f"job {name}", fault)
        finally:
            self._running.discard(name)

    async def aclose(self) -> None:
        """Stop watching, and wait for the jobs at work to be cancelled."""
        for cron in self._crons:
            cron.stop()
        self._crons.clear()
        await self._tasks.aclose()
