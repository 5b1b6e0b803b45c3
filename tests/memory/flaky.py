"""A store that can be switched away, die at its n-th write, or be held in the middle of a call.

It wraps another store, which stands for the database itself: what was written is there whatever becomes of
the wrapper. Every call yields to the event loop, as a real one does, so that races have room.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeVar

from memory.errors import CorruptRecord, StoreFault, StoreUnavailable
from memory.ports import Store
from memory.types import (
    Audience,
    Holdings,
    MemoryId,
    Person,
    RunningSummary,
    Session,
    SessionId,
    Turn,
    TurnId,
)

T = TypeVar("T")


@dataclass(slots=True)
class Gate:
    """Holds one call until the test lets it pass; `reached` is set once the call is there."""

    when: Literal["before", "after"]
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    passed: asyncio.Event = field(default_factory=asyncio.Event)


class FlakyStore:
    """A Store over another Store, with switches."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away = False
        self.writes: list[str] = []
        """The name of every write that was asked for, in order."""
        self.reads: list[str] = []
        """The name of every read, in order."""
        self._spoiled: MemoryId | None = None
        self._dies_at: int | None = None
        self._lands = False
        self._stays_dead = True
        self._gates: dict[str, Gate] = {}
        self._faults: dict[str, StoreFault] = {}

    # Switches

    def die(self, *, at_write: int, lands: bool, for_good: bool = True) -> None:
        """Raise at this write, counted from 1; `lands`: it is written all the same."""
        self._dies_at, self._lands, self._stays_dead = at_write, lands, for_good

    def hold(self, call: str, *, when: Literal["before", "after"] = "before") -> Gate:
        """Stop the next call of this name, before it is made or before it returns."""
        gate = self._gates[call] = Gate(when)
        return gate

    def fail(self, call: str, fault: StoreFault | None) -> None:
        """Raise this at every call of this name; None: no longer."""
        if fault is None:
            self._faults.pop(call, None)
        else:
            self._faults[call] = fault

    def spoil(self, memory_id: MemoryId) -> None:
        """Make what is stored of this person unreadable, one by one."""
        self._spoiled = memory_id

    async def _read(self, name: str, memory_id: MemoryId, call: Callable[[], Awaitable[T]]) -> T:
        self.reads.append(name)
        if memory_id == self._spoiled:
            raise CorruptRecord("spoiled by the test")
        return await self._call(name, call)

    async def _call(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        gate = self._gates.pop(name, None)
        if gate is not None and gate.when == "before":
            await self._stop(gate)
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailable("switched away")
        if name in self._faults:
            raise self._faults[name]
        result = await call()
        if gate is not None and gate.when == "after":
            await self._stop(gate)
        return result

    async def _stop(self, gate: Gate) -> None:
        gate.reached.set()
        await gate.passed.wait()

    async def _write(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        if not self.away:
            self.writes.append(name)
        if self._dies_at == len(self.writes) and not self.away:
            self._dies_at = None
            self.away = self._stays_dead
            if self._lands:
                await call()
            raise StoreUnavailable("died at a write")
        return await self._call(name, call)

    async def _each(self, sessions: AsyncIterator[T]) -> AsyncIterator[T]:
        async for session in sessions:
            await asyncio.sleep(0)
            if self.away:
                raise StoreUnavailable("switched away")
            yield session

    # Store

    async def prepare(self) -> None:
        await self._call("prepare", self._store.prepare)

    async def ping(self) -> str:
        return await self._call("ping", self._store.ping)

    async def aclose(self) -> None:
        await self._store.aclose()

    async def add_turn(self, turn: Turn) -> bool:
        return await self._write("add_turn", lambda: self._store.add_turn(turn))

    async def turn(self, memory_id: MemoryId, turn_id: TurnId) -> Turn | None:
        return await self._read("turn", memory_id, lambda: self._store.turn(memory_id, turn_id))

    async def turns(
        self,
        memory_id: MemoryId,
        *,
        session: Session | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest: int | None = None,
    ) -> tuple[Turn, ...]:
        return await self._read(
            "turns",
            memory_id,
            lambda: self._store.turns(memory_id, session=session, since=since, until=until, newest=newest),
        )

    def scan(self, memory_id: MemoryId) -> AsyncIterator[Turn]:
        return self._each(self._store.scan(memory_id))

    async def count_turns(self, memory_id: MemoryId) -> Mapping[SessionId, int]:
        return await self._read("count_turns", memory_id, lambda: self._store.count_turns(memory_id))

    async def open_session(self, session: Session) -> Session:
        return await self._write("open_session", lambda: self._store.open_session(session))

    async def put_session(self, session: Session) -> bool:
        return await self._write("put_session", lambda: self._store.put_session(session))

    async def session(self, memory_id: MemoryId, session_id: SessionId) -> Session | None:
        return await self._read("session", memory_id, lambda: self._store.session(memory_id, session_id))

    async def opened(self, memory_id: MemoryId, audience: Audience) -> Session | None:
        return await self._read("opened", memory_id, lambda: self._store.opened(memory_id, audience))

    async def sessions(
        self,
        memory_id: MemoryId,
        *,
        audience: Audience | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest: int | None = None,
    ) -> tuple[Session, ...]:
        return await self._read(
            "sessions",
            memory_id,
            lambda: self._store.sessions(
                memory_id, audience=audience, since=since, until=until, newest=newest
            ),
        )

    def due(self, now: datetime) -> AsyncIterator[Session]:
        return self._each(self._store.due(now))

    def live(self) -> AsyncIterator[Session]:
        return self._each(self._store.live())

    async def retime(self, session: Session, *, seconds: float, due_at: datetime) -> bool:
        return await self._write(
            "retime", lambda: self._store.retime(session, seconds=seconds, due_at=due_at)
        )

    async def touch(self, session: Session, *, due_at: datetime) -> bool:
        return await self._write("touch", lambda: self._store.touch(session, due_at=due_at))

    async def set_window(
        self, session: Session, *, window_from: TurnId | None, running: RunningSummary | None
    ) -> bool:
        return await self._write(
            "set_window", lambda: self._store.set_window(session, window_from=window_from, running=running)
        )

    async def claim(
        self,
        session: Session,
        *,
        owner: str,
        now: datetime,
        until: datetime,
        ended_at: datetime,
        early: bool = False,
    ) -> Session | None:
        return await self._write(
            "claim",
            lambda: self._store.claim(
                session, owner=owner, now=now, until=until, ended_at=ended_at, early=early
            ),
        )

    async def finish(self, session: Session, *, summary: str | None, summary_model: str) -> bool:
        return await self._write(
            "finish", lambda: self._store.finish(session, summary=summary, summary_model=summary_model)
        )

    async def postpone(self, session: Session, *, due_at: datetime, fault: str | None) -> bool:
        return await self._write(
            "postpone", lambda: self._store.postpone(session, due_at=due_at, fault=fault)
        )

    async def revise(self, memory_id: MemoryId, session_id: SessionId, *, due_at: datetime) -> Session | None:
        return await self._write("revise", lambda: self._store.revise(memory_id, session_id, due_at=due_at))

    async def person(self, memory_id: MemoryId) -> Person | None:
        return await self._read("person", memory_id, lambda: self._store.person(memory_id))

    async def put_person(self, person: Person) -> None:
        await self._write("put_person", lambda: self._store.put_person(person))

    async def known(self, prefix: str, *, limit: int = 20) -> tuple[MemoryId, ...]:
        return await self._call("known", lambda: self._store.known(prefix, limit=limit))

    async def delete_turns(self, memory_id: MemoryId, turn_ids: Collection[TurnId]) -> int:
        return await self._write("delete_turns", lambda: self._store.delete_turns(memory_id, turn_ids))

    async def delete_session(self, memory_id: MemoryId, session_id: SessionId) -> Holdings:
        return await self._write("delete_session", lambda: self._store.delete_session(memory_id, session_id))

    async def erase(self, memory_id: MemoryId) -> Holdings:
        return await self._write("erase", lambda: self._store.erase(memory_id))

    async def holdings(self, memory_id: MemoryId) -> Holdings:
        return await self._read("holdings", memory_id, lambda: self._store.holdings(memory_id))
