"""The live sessions of this process: a turn begins in one, is stored in it, and moves its deadline.

Which session that is, how one ends, and what becomes of a turn that comes late have their own files; here
is the way of one turn through them. A turn is stored or waits in the backlog, and is dropped only when its
person was erased meanwhile.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from memory.backlog import Backlog
from memory.blocks import BlockPolicy
from memory.closing import Closer, Zones
from memory.conversation import Conversation
from memory.errors import StoreFault, StoreUnavailable
from memory.ports import Clock, Store
from memory.sessions.current import Current, into
from memory.sessions.ends import Ends
from memory.sessions.held import Key, key_of
from memory.sessions.late import LateTurns
from memory.sessions.loading import Loader
from memory.tokens import TokenEstimator
from memory.types import MemoryId, Turn


class Sessions:
    """Finds, opens and ends sessions; one per memory id and audience at a time."""

    def __init__(
        self,
        store: Store,
        closer: Closer,
        clock: Clock,
        *,
        zones: Zones,
        estimator: TokenEstimator,
        timeout: float,
        block: BlockPolicy,
        most_loaded: int = 512,
    ) -> None:
        """Take a timeout in seconds; at most `most_loaded` conversations keep their window at hand."""
        self._store = store
        self._clock = clock
        self._timeout = timedelta(seconds=timeout)
        self._ends = Ends(store, closer, clock, most_loaded=most_loaded)
        self._held = self._ends.held
        loader = Loader(store, zones=zones, estimator=estimator, block=block)
        self._current = Current(store, closer, clock, ends=self._ends, loader=loader, timeout=self._timeout)
        self._late = LateTurns(store, closer, clock, held=self._held, current=self._current)
        self.backlog = Backlog(clock, self._late.store)

    def __len__(self) -> int:
        return len(self._held)

    # A turn: begin, then finish or abandon

    async def begin(self, key: Key) -> Conversation:
        """Return the conversation of the next turn, loaded, and keep it from ending meanwhile."""
        async with self._held.lock(key):
            while True:
                doubts, erasures = self._held.doubts(key[0]), self._held.erasures(key[0])
                conversation = await self._current.conversation(key)
                if doubts == self._held.doubts(key[0]):
                    break
                # Something was erased while it was being read or opened: it may show that, or not be there.
                if erasures != self._held.erasures(key[0]) or not conversation.provisional:
                    self._held.drop(key)
            self._held.take_up(conversation)
            return conversation

    async def finish(self, conversation: Conversation, turn: Turn) -> Turn:
        """Store the turn and move the deadline; returns the turn as stored.

        While the store does not take it, the turn waits in the backlog. A turn whose person was erased
        meanwhile is not kept.
        """
        try:
            async with self._held.lock(key_of(conversation.session)):
                return await self._keep(conversation, turn)
        except asyncio.CancelledError:
            # A shutdown: whether the store has it or not, storing it again does no harm.
            self._wait_for_store(conversation, turn)
            raise
        finally:
            self._held.lay_down(conversation)

    def abandon(self, conversation: Conversation) -> None:
        """End a turn that has come to nothing."""
        self._held.lay_down(conversation)
        if self._held.get(key_of(conversation.session)) is conversation:
            self._held.hold(conversation, deadline=conversation.deadline)

    async def _keep(self, conversation: Conversation, turn: Turn) -> Turn:
        if conversation.gone:
            return turn
        try:
            turn = await self._write(conversation, turn)
        except StoreFault:
            self._wait_for_store(conversation, turn)
        if conversation.gone:
            return turn
        held = self._held.get(key_of(conversation.session)) or conversation
        if held.session.session_id == conversation.session.session_id:
            # Another object where the session was ended by hand meanwhile and the next one has begun.
            held.append(turn)
            self._held.hold(held, deadline=self._clock.now() + self._timeout)
        return turn

    def _wait_for_store(self, conversation: Conversation, turn: Turn) -> None:
        if not conversation.gone:
            self._late.expect(conversation, first=not len(self.backlog))
            self.backlog.hold(turn, conversation.session)

    async def _write(self, conversation: Conversation, turn: Turn) -> Turn:
        if conversation.provisional or self.backlog.holds(turn.memory_id, turn.audience):
            raise StoreUnavailable("earlier turns of this conversation wait for the store")
        doubts = self._held.doubts(turn.memory_id)
        wanted = await self._current.still_wanted(conversation, at=turn.at)
        if wanted:
            turn = into(turn, conversation.session)
            await self._store.add_turn(turn)
            if doubts != self._held.doubts(turn.memory_id):
                # Something was erased while it was on its way: it may have arrived just after that.
                wanted = not conversation.gone and await self._current.has_place(turn)
                if not wanted:
                    await self._current.take_back(turn)
        if not wanted:
            conversation.gone = True
            self._held.drop(key_of(conversation.session))
        return turn

    # Ends and erasures

    async def end(self, key: Key) -> bool:
        """End the session of this conversation now; False if none is open. Raises StoreFault."""
        if self.backlog.holds(*key):
            await self.backlog.flush()
        return await self._ends.end(key)

    async def sweep(self) -> None:
        """End every session of anyone whose time is up, and queue those that wait for their summary."""
        await self._ends.sweep()

    async def wake(self) -> None:
        """Wait for the end of every session that is open in the store, as the processes before did."""
        await self._ends.wake()

    def invalidate(self, memory_id: MemoryId, erased: bool) -> None:
        """Let go of what is held of a person, after something of theirs was erased.

        With `erased`, everything was: a turn that is under way is not stored any more. Otherwise open
        sessions are read anew at their next turn.
        """
        if erased:
            self._held.forget(memory_id)
            self.backlog.forget(memory_id)
        else:
            self._held.doubt(memory_id)

    async def aclose(self) -> None:
        """Stop waiting; open sessions stay open and end when their time has come, here or elsewhere."""
        await self._held.aclose()
        await self.backlog.aclose()
