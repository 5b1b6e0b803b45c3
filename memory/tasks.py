"""The only place where memory starts tasks: each is owned, named, and awaited when its owner stops.

A task set is also a boundary: what fails inside a task is logged there, once, and ends nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from datetime import datetime
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from memory.ports import Clock

log = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


def log_failure(log: logging.Logger, what: str, fault: BaseException) -> None:
    """Log an unexpected failure: kinds and places as an error, its text (it may quote people) as debug."""
    parts: list[str] = []
    cause: BaseException | None = fault
    while cause is not None:
        parts.append(type(cause).__name__ + "\n" + "".join(traceback.format_tb(cause.__traceback__)))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    log.error("%s failed: %s", what, "caused by ".join(parts))
    log.debug("%s failed", what, exc_info=fault)


class TaskSet:
    """Tasks that belong to one owner."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[None, None, None], *, name: str) -> asyncio.Task[None]:
        """Run the coroutine as a task of this set; if it fails, that is logged."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._settle)
        return task

    def _settle(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            log_failure(log, f"task {task.get_name()}", fault)

    async def drain(self, *, grace: float) -> bool:
        """Wait at most `grace` seconds for what runs and what that starts; False if some is left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self._tasks:
                    await asyncio.wait(tuple(self._tasks))
        return not self._tasks

    async def aclose(self, *, patience: float = 5.0) -> None:
        """Cancel what still runs and wait until it has ended.

        What has not ended after `patience` seconds is cancelled again: libraries do lose cancellations.
        """
        while self._tasks:
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=patience)


class KeyedTimers(Generic[Key]):
    """One task per key that waits for a time and then does the one thing these timers are for.

    Setting a key again moves its time. A timer that has begun its work can no longer be moved or
    cancelled: setting the key then starts another.
    """

    def __init__(self, clock: Clock, fire: Callable[[Key], Awaitable[None]], *, name: str) -> None:
        self._clock = clock
        self._fire = fire
        self._name = name
        self._waiting: dict[Key, tuple[datetime, asyncio.Task[None]]] = {}
        self._tasks = TaskSet()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def set(self, key: Key, at: datetime) -> None:
        """Let the timer of this key fire at `at`, or at once if that is past."""
        waiting = self._waiting.get(key)
        if waiting is not None and at >= waiting[0]:
            # Later than before: the task looks again when it wakes, so no task has to be replaced.
            self._waiting[key] = (at, waiting[1])
            return
        if waiting is not None:
            waiting[1].cancel()
        self._waiting[key] = (at, self._tasks.spawn(self._wait(key), name=self._name))

    def cancel(self, key: Key) -> None:
        """Stop waiting for this key; a key that is not waiting is no error."""
        if (waiting := self._waiting.pop(key, None)) is not None:
            waiting[1].cancel()

    async def _wait(self, key: Key) -> None:
        while (left := (self._waiting[key][0] - self._clock.now()).total_seconds()) > 0:
            await self._clock.sleep(left)
        del self._waiting[key]
        await self._fire(key)

    def stop_waiting(self) -> None:
        """Cancel every timer that has not fired; those at work go on."""
        for key in tuple(self._waiting):
            self.cancel(key)

    async def drain(self, *, grace: float) -> bool:
        """Wait for the timers that are at work, for at most `grace` seconds."""
        return await self._tasks.drain(grace=grace)

    async def aclose(self) -> None:
        """Cancel everything and wait until it has ended."""
        self.stop_waiting()
        await self._tasks.aclose()


class KeyedLocks(Generic[Key]):
    """One lock per key, there only while somebody holds or waits for it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    def __call__(self, key: Key) -> asyncio.Lock:
        """Return the lock of this key."""
        lock = self._locks.get(key)
        if lock is None:
            lock = asyncio.Lock()
            self._locks[key] = lock
        return lock
