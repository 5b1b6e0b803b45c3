"""Many people: what an idle session takes of this process's memory, and how the event loop fares as many end.

Sessions go through Memory as in life, a short turn each. Every figure is taken in a process of its own, so
that no measurement finds what another left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import psutil

from bench.figures import quantile
from bench.instant import InstantModel
from bench.table import Table
from memory import (
    DIRECT,
    Memory,
    MemoryId,
    MemorySettings,
    Session,
    SystemClock,
    Turn,
)
from memory.stores.inmemory import InMemoryStore

SIZES = (10_000, 100_000)
ENDING = 10_000
_LEAD = timedelta(seconds=3)
_PROBE = 0.002
_HUMAN = "I bought a pumpkin today, number {number}, and carried it up four floors."
_REPLY = "Four floors! What will you make of it?"
_KIB = 1024


class FarStore(InMemoryStore):
    """Stands for a database elsewhere: takes everything and holds nothing of it in this process."""

    async def add_turn(self, turn: Turn) -> bool:
        """Take a turn."""
        return True

    async def open_session(self, session: Session) -> Session:
        """Take a session."""
        return session


class ArrangedClock(SystemClock):
    """Stands where it is put, for sessions to be opened in the past; once released it runs on from there."""

    def __init__(self) -> None:
        self._at = datetime.now(UTC)
        self._since: float | None = None
        self._released = asyncio.Event()

    def put(self, at: datetime) -> None:
        """Let it be this time."""
        self._at = at

    def release(self, at: datetime) -> None:
        """Run on from this time."""
        self._at, self._since = at, time.monotonic()
        self._released.set()

    def now(self) -> datetime:
        """Return the time as arranged, or as it runs on from there."""
        if self._since is None:
            return self._at
        return self._at + timedelta(seconds=time.monotonic() - self._since)

    async def sleep(self, seconds: float) -> None:
        """Wait until it is that much later than now, by this clock."""
        until = self.now() + timedelta(seconds=seconds)
        await self._released.wait()
        await super().sleep((until - self.now()).total_seconds())


def _memory(store: InMemoryStore, clock: SystemClock) -> Memory:
    return Memory(
        store, InstantModel(), clock, settings=MemorySettings(zone=ZoneInfo("UTC")), owner="bench-sessions"
    )


async def _talk(memory: Memory, number: int, at: datetime) -> int:
    """Take one short turn of one person; returns the size of its text, in bytes."""
    human = _HUMAN.format(number=number)
    memory_id = MemoryId(f"terminal:person-{number}")
    opening = await memory.begin(memory_id, DIRECT, human=human, at=at, overhead=700)
    await memory.finish(opening, reply=_REPLY, model="instant")
    return len(human) + len(_REPLY)


async def held(count: int, *, traced: bool) -> dict[str, float]:
    """Open so many sessions and say how many bytes each takes, without its text while that is held."""
    async with _memory(FarStore(), SystemClock()) as memory:
        await _talk(memory, -1, datetime.now(UTC))
        gc.collect()
        process = psutil.Process()
        before = process.memory_info().rss
        if traced:
            tracemalloc.start()
        for number in range(count):
            await _talk(memory, number, datetime.now(UTC))
            if number % 100 == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] if traced else process.memory_info().rss - before
        if traced:
            tracemalloc.stop()
    return {"bytes": taken / count}


@dataclass(slots=True)
class Probe:
    """Asks the event loop to be called every few milliseconds and writes down how late that happens."""

    lags: list[float] = field(default_factory=list)
    _due: float = 0.0
    _on: bool = False

    def start(self) -> None:
        """Begin."""
        self._on = True
        self._ask()

    def stop(self) -> None:
        """Enough."""
        self._on = False

    def _ask(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + _PROBE
        loop.call_at(self._due, self._called)

    def _called(self) -> None:
        if self._on:
            self.lags.append(asyncio.get_running_loop().time() - self._due)
            self._ask()


async def lag(live: int, ending: int, *, lead: timedelta = _LEAD, within: float = 1.0) -> dict[str, float]:
    """Let `ending` of `live` sessions run out `within` seconds; returns lags and times in seconds.

    `lead` is the time from the last turn to the first end, for everything to settle.
    """
    clock, store = ArrangedClock(), InMemoryStore()
    async with _memory(store, clock) as memory:
        start = clock.now()
        timeout = timedelta(seconds=MemorySettings(zone=ZoneInfo("UTC")).session_timeout)
        for number in range(live):
            early = start - timeout + lead + timedelta(seconds=within * number / ending)
            clock.put(early if number < ending else start)
            await _talk(memory, number, clock.now())
        await asyncio.sleep(0)
        clock.release(start)
        await clock.sleep(lead.total_seconds() * 0.9)
        probe = Probe()
        probe.start()
        began = time.monotonic()
        while await _summarised(store, ending) < ending:  # noqa: ASYNC110 - nothing tells of a summary
            await asyncio.sleep(0.05)
        lasted = time.monotonic() - began
        probe.stop()
    return {
        "p50": quantile(probe.lags, 0.5),
        "p99": quantile(probe.lags, 0.99),
        "max": max(probe.lags),
        "probes": len(probe.lags),
        "lasted": lasted,
    }


async def _summarised(store: InMemoryStore, ending: int) -> int:
    """Count how far it is, by looking at the last one only until that has ended."""
    last = await store.sessions(MemoryId(f"terminal:person-{ending - 1}"))
    if last[0].summary is None:
        return 0
    people = (MemoryId(f"terminal:person-{number}") for number in range(ending))
    return sum([(await store.sessions(person))[0].summary is not None for person in people])


def _apart(*arguments: str) -> Mapping[str, float]:
    """Run one figure in a process of its own."""
    command = [sys.executable, "-m", "bench.sessions", *arguments]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: Mapping[str, float] = json.loads(answer.stdout)
    return figures


async def measure() -> list[Table]:
    """Measure both, at every size."""
    return [_memory_table(), _lag_table()]


def _memory_table() -> Table:
    rows = []
    for count in SIZES:
        by_python = _apart("held", str(count), "--traced")["bytes"] / _KIB
        by_system = _apart("held", str(count))["bytes"] / _KIB
        rows.append((f"{count:,}", f"{by_python:.2f}", f"{by_system:.2f}"))
    notes = (
        "Beyond their text, which the database holds; the 512 conversations last used are loaded and "
        "counted in with theirs. Each in a process of its own.",
    )
    columns = ("idle sessions", "KiB each (tracemalloc)", "KiB each (resident)")
    return Table("Memory of idle sessions", columns, tuple(rows), notes)


def _lag_table() -> Table:
    rows = []
    for count in SIZES:
        found = _apart("lag", str(count))
        cells = (f"{found[name] * 1000:.1f}" for name in ("p50", "p99", "max"))
        rows.append((f"{count:,}", *cells, f"{found['lasted']:.1f}", f"{found['probes']:.0f}"))
    notes = (
        f"{ENDING:,} of the live sessions run out within one second and are summarised by an instant model, "
        f"store in memory. Lag of a call that is due every {_PROBE * 1000:.0f} ms, from the first end until "
        "the last summary is stored.",
    )
    columns = ("live sessions", "p50, ms", "p99, ms", "max, ms", "until all summarised, s", "probes")
    return Table(f"Event-loop lag while {ENDING:,} sessions end", columns, tuple(rows), notes)


def main() -> None:
    """Take one figure in this process and print it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.sessions")
    parser.add_argument("what", choices=("held", "lag"))
    parser.add_argument("count", type=int)
    parser.add_argument("--traced", action="store_true")
    given = parser.parse_args()
    if given.what == "held":
        print(json.dumps(asyncio.run(held(given.count, traced=given.traced))))
    else:
        print(json.dumps(asyncio.run(lag(given.count, min(ENDING, given.count)))))


if __name__ == "__main__":
    main()
