"""Turns that could not be stored when they were made: kept here until the store takes them, in order.

Trouble with the store never stops a reply, and what was said is not lost while this process lives.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable

from memory.errors import StoreFault, StoreUnavailable
from memory.ports import Clock
from memory.tasks import TaskSet
from memory.types import Audience, MemoryId, Session, Turn

log = logging.getLogger(__name__)

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0


class Backlog:
    """The turns that wait for the store, oldest first, and the one task that brings them there."""

    def __init__(self, clock: Clock, write: Callable[[Turn, Session], Awaitable[None]]) -> None:
        self._clock = clock
        self._write = write
        self._turns: deque[tuple[Turn, Session]] = deque()
        self._tasks = TaskSet()
        self._bringing = False

    def __len__(self) -> int:
        return len(self._turns)

    def holds(self, memory_id: MemoryId, audience: Audience) -> bool:
        """Tell whether turns of this conversation wait; later ones must then queue up behind them."""
        return any(turn.memory_id == memory_id and turn.audience == audience for turn, _ in self._turns)

    def count(self, memory_id: MemoryId) -> int:
        """Count the turns of a person that wait."""
        return sum(turn.memory_id == memory_id for turn, _ in self._turns)

    def hold(self, turn: Turn, session: Session) -> None:
        """Keep a turn, and the session it was made in, until the store takes them."""
        self._turns.append((turn, session))
        log.warning("the store is away: %d turns wait to be stored", len(self._turns))
        if not self._bringing:
            self._bringing = True
            self._tasks.spawn(self._bring(), name="backlog")

    def forget(self, memory_id: MemoryId) -> int:
        """Drop all that waits of this person; returns how many turns that were."""
        kept = [(turn, session) for turn, session in self._turns if turn.memory_id != memory_id]
        dropped = len(self._turns) - len(kept)
        self._turns = deque(kept)
        return dropped

    async def _bring(self) -> None:
        wait = _FIRST_WAIT
        try:
            while self._turns:
                await self._clock.sleep(wait)
                try:
                    await self.flush()
                except StoreUnavailable:
                    wait = min(wait * 2, _LONGEST_WAIT)
        finally:
            # Here and not when the task is seen to be done: a turn held in between would be left alone.
            self._bringing = False
        log.warning("the store is back: everything is stored")

    async def flush(self) -> None:
        """Store what waits, now. Raises StoreUnavailable; what is not stored stays."""
        while self._turns:
            turn, session = self._turns[0]
            try:
                await self._write(turn, session)
            except StoreUnavailable:
                raise
            except StoreFault as fault:
                # It will never be taken, and must not stand in the way of the others.
                kind = type(fault.__cause__ or fault).__name__
                log.error("a turn cannot be stored and is dropped (%s)", kind)  # noqa: TRY400 - its text may quote the turn
            if self._turns and self._turns[0][0] is turn:
                self._turns.popleft()

    async def aclose(self) -> None:
        """Make one last try, then stop; says how many turns are lost if the store is still away."""
        await self._tasks.aclose()
        try:
            await self.flush()
        except StoreUnavailable:
            log.error("%d turns could not be stored before the end", len(self._turns))  # noqa: TRY400 - no trace needed
