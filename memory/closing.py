"""What becomes of a session that has ended: its turns are made into a summary, exactly once, in the end.

The queue is the store itself: a session that is `closing` and due waits for a worker, whichever process it
belongs to. A worker takes a lease, asks the model, and lands the result in one conditional write. If it
dies, the lease runs out; if the model fails, the session comes due again later and keeps its turns.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from memory.days import find_zone
from memory.errors import CompletionFault, StoreFault, StoreUnavailable
from memory.ports import Clock, Store
from memory.summarise import Summariser
from memory.tasks import TaskSet, log_failure
from memory.types import MemoryId, Session, SessionId

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClosingPolicy:
    """Seconds: how long a lease holds, and the wait after a failure, doubling from first to longest."""

    lease: float = 120.0
    retry_first: float = 60.0
    retry_longest: float = 3600.0
    concurrency: int = 2

    def wait(self, attempts: int) -> timedelta:
        """Return how long to wait after this many failed attempts before."""
        return timedelta(seconds=min(self.retry_first * 2 ** min(attempts, 30), self.retry_longest))


class Zones:
    """The zone of each person; asked of the store where it is needed."""

    def __init__(self, store: Store, default: ZoneInfo) -> None:
        self._store = store
        self.default = default

    async def of(self, memory_id: MemoryId) -> ZoneInfo:
        """Return the person's own zone, or the configured one. Raises StoreFault."""
        person = await self._store.person(memory_id)
        if person is None or person.timezone is None:
            return self.default
        return find_zone(person.timezone) or self.default


class Closer:
    """The workers that summarise ended sessions."""

    def __init__(
        self,
        store: Store,
        summariser: Summariser,
        clock: Clock,
        *,
        zones: Zones,
        policy: ClosingPolicy,
        owner: str,
    ) -> None:
        self._store = store
        self._summariser = summariser
        self._clock = clock
        self._zones = zones
        self._policy = policy
        self._owner = owner
        self._queue: asyncio.Queue[Session] = asyncio.Queue()
        self._waiting: set[SessionId] = set()
        self._leased: dict[SessionId, Session] = {}
        self._workers = TaskSet()
        self._renewals = TaskSet()

    def __len__(self) -> int:
        return len(self._waiting)

    def start(self) -> None:
        """Let the workers begin."""
        for number in range(self._policy.concurrency):
            self._workers.spawn(self._work(), name=f"closing-{number}")

    async def begin(self, session: Session, *, ended_at: datetime, early: bool = False) -> bool:
        """End an open session here and now, and queue it to be summarised.

        False when it is not ours to end: it has moved on in another process, or is gone. Raises StoreFault.
        """
        now = self._clock.now()
        claimed = await self._store.claim(
            session, owner=self._owner, now=now, until=now, ended_at=ended_at, early=early
        )
        if claimed is None:
            return False
        self.enqueue(claimed)
        return True

    def enqueue(self, session: Session) -> None:
        """Queue a closing session, unless it is queued already."""
        if session.session_id not in self._waiting:
            self._waiting.add(session.session_id)
            self._queue.put_nowait(session)

    async def _work(self) -> None:
        while True:
            session = await self._queue.get()
            try:
                await self._close(session)
            except StoreUnavailable as fault:
                # The lease runs out and the sweep brings it back.
                log.warning("session not closed yet, the store is away: %s", fault)
            except Exception as fault:  # noqa: BLE001 - the boundary: one bad session must not stop the others
                log_failure(log, "closing a session", fault)
                if (leased := self._leased.get(session.session_id)) is not None:
                    await self._put_off(leased, fault)
            finally:
                self._waiting.discard(session.session_id)
                self._leased.pop(session.session_id, None)
                self._queue.task_done()

    async def _close(self, session: Session) -> None:
        leased = await self._claim(session, self._clock.now())
        if leased is None:
            return
        self._leased[leased.session_id] = leased
        turns = await self._store.turns(leased.memory_id, session=leased)
        if not turns:
            await self._store.finish(leased, summary=None, summary_model="")
            return
        renewing = self._renewals.spawn(self._renew(leased), name="closing-lease")
        try:
            summary = await self._summariser.summarise(turns, zone=await self._zones.of(leased.memory_id))
        except CompletionFault as fault:
            await self._put_off(leased, fault)
            return
        finally:
            renewing.cancel()
        landed = await self._store.finish(leased, summary=summary.text, summary_model=summary.model)
        log.info("session of %d turns %s", len(turns), "summarised" if landed else "changed meanwhile: left")

    async def _renew(self, leased: Session) -> None:
        """Take the lease again whenever it runs out under the work.

        Two processes whose model is slower than a lease would otherwise take it from each other for ever.
        """
        current: Session | None = leased
        while current is not None and current.due_at is not None:
            now = self._clock.now()
            if now < current.due_at:
                await self._clock.sleep((current.due_at - now).total_seconds())
                continue
            try:
                current = await self._claim(current, now)
            except StoreUnavailable:
                return  # as if this process were dead: another may take over
            if current is not None and current.revision != leased.revision:
                # The work is void: the session is free for whoever does it anew.
                await self._store.postpone(current, due_at=now, fault=None)
                return

    async def _claim(self, session: Session, now: datetime) -> Session | None:
        until = now + timedelta(seconds=self._policy.lease)
        ended_at = session.ended_at or now
        return await self._store.claim(session, owner=self._owner, now=now, until=until, ended_at=ended_at)

    async def _put_off(self, session: Session, fault: Exception) -> None:
        kind = type(fault.__cause__ or fault).__name__
        wait = self._policy.wait(session.attempts)
        log.warning(
            "no summary yet (%s, attempt %d), next try in %d s",
            kind,
            session.attempts + 1,
            wait.total_seconds(),
        )
        try:
            await self._store.postpone(session, due_at=self._clock.now() + wait, fault=kind)
        except StoreFault as refused:
            log.warning("a session is not put off, its lease runs out by itself: %s", refused)

    async def drain(self, *, grace: float) -> bool:
        """Wait until the queue is empty, for at most `grace` seconds; False if something is left."""
        try:
            async with asyncio.timeout(grace):
                await self._queue.join()
        except TimeoutError:
            return False
        return True

    async def aclose(self) -> None:
        """Stop the workers and give back what they hold: the next process need not wait for a lease."""
        held = tuple(self._leased.values())
        await self._workers.aclose()
        await self._renewals.aclose()
        for session in held:
            try:
                await self._store.postpone(session, due_at=self._clock.now(), fault=None)
            except StoreFault as fault:
                log.warning("a lease could not be given back, it runs out by itself: %s", fault)
