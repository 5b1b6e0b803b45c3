"""A clock that stands still until a test moves it; nothing in the suite waits for real time through it."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class FakeClock:
    """A Clock whose time is moved by `advance`; sleepers wake in the order of their time."""

    def __init__(self, now: datetime = NOON) -> None:
        self._now = now
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._now + timedelta(seconds=seconds), self._count, future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move the time on, waking each sleeper at its own moment, and let everything woken settle."""
        end = self._now + timedelta(seconds=seconds)
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
            await settle()
        self._now = end
        await settle()

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or NTP would: nobody wakes."""
        self._now += timedelta(seconds=seconds)


async def settle(rounds: int = 50) -> None:
    """Let every task that can run without waiting for the outside run."""
    for _ in range(rounds):
        await asyncio.sleep(0)
