"""The live sessions of this process: opened by the first turn, moved by each, ended when their time has come.

The store is the truth: a session is open there, with its deadline, and ends there in conditional writes.
What is held here is a copy that spares a warm turn all reads but a glance, at most once a second, at what
other processes did. Moving the stored deadline is spared too while more than half of the timeout is left
of it: whoever finds it passed looks at the newest turn before ending anything.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from memory.backlog import Backlog
from memory.blocks import BlockPolicy, load_block
from memory.closing import Closer, Zones
from memory.conversation import Conversation
from memory.errors import StoreFault, StoreUnavailable
from memory.ports import Clock, Store
from memory.tasks import KeyedLocks, KeyedTimers
from memory.tokens import TokenEstimator
from memory.types import (
    Audience,
    MemoryId,
    Session,
    SessionId,
    SessionState,
    Turn,
    time_ordered_id,
)

log = logging.getLogger(__name__)

Key = tuple[MemoryId, Audience]

_FRESH = timedelta(seconds=1)  # for so long, what was read of a session is taken to be still so
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


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
        self._store = store
        self._closer = closer
        self._clock = clock
        self._zones = zones
        self._estimator = estimator
        self._timeout = timedelta(seconds=timeout)
        self._block = block
        self._most_loaded = most_loaded
        self._fresh_for = min(_FRESH, self._timeout / 4)
        self._held: dict[Key, Conversation] = {}
        self._under_way: set[Conversation] = set()  # between begin and finish, held or not
        self._erasures: Counter[MemoryId] = Counter()  # how often everything of a person was erased
        self._loaded: OrderedDict[Key, None] = OrderedDict()
        self._locks: KeyedLocks[Key] = KeyedLocks()
        self._timers: KeyedTimers[Key] = KeyedTimers(clock, self._time_is_up, name="session")
        self.backlog = Backlog(clock, self._store_late)

    def __len__(self) -> int:
        return len(self._held)

    # A turn: begin, then finish or abandon

    async def begin(self, key: Key) -> Conversation:
        """Return the conversation of the next turn, loaded, and keep it from ending meanwhile."""
        async with self._locks(key):
            while True:
                erasures = self._erasures[key[0]]
                conversation = await self._current(key)
                if erasures == self._erasures[key[0]]:
                    break
                self._drop(key)  # erased while it was being read or opened: it may not be there any more
            conversation.busy = True
            self._under_way.add(conversation)
            self._loaded[key] = None
            self._loaded.move_to_end(key)
            self._let_go_of_idle()
            return conversation

    async def finish(self, conversation: Conversation, turn: Turn) -> Turn:
        """Store the turn and move the deadline; returns the turn as stored.

        While the store does not take it, the turn waits in the backlog. A turn whose person was erased
        meanwhile is not kept.
        """
        async with self._locks(self._key(conversation.session)):
            try:
                return await self._keep(conversation, turn)
            finally:
                conversation.busy = False
                self._under_way.discard(conversation)

    def abandon(self, conversation: Conversation) -> None:
        """End a turn that has come to nothing."""
        conversation.busy = False
        self._under_way.discard(conversation)
        if self._held.get(self._key(conversation.session)) is conversation:
            self._hold(conversation, deadline=conversation.deadline)

    async def _keep(self, conversation: Conversation, turn: Turn) -> Turn:
        if conversation.gone:
            return turn
        try:
            turn = await self._write(conversation, turn)
        except StoreFault:
            if not conversation.gone:
                self.backlog.hold(turn, conversation.session)
        if conversation.gone:
            return turn
        held = self._held.get(self._key(conversation.session), conversation)
        if held.session.session_id == conversation.session.session_id:
            # Another object where the session was ended by hand meanwhile and the next one has begun.
            held.append(turn)
            self._hold(held, deadline=self._clock.now() + self._timeout)
        return turn

    async def _write(self, conversation: Conversation, turn: Turn) -> Turn:
        if conversation.provisional or self.backlog.holds(turn.memory_id, turn.audience):
            raise StoreUnavailable("earlier turns of this conversation wait for the store")
        if not await self._still_wanted(conversation, turn):
            conversation.gone = True
            self._drop(self._key(conversation.session))
            return turn
        turn = _into(turn, conversation.session)
        await self._store.add_turn(turn)
        if conversation.gone:
            # Erased while it was on its way: it may have arrived just after the erasure.
            await self._store.delete_turns(turn.memory_id, (turn.turn_id,))
        return turn

    async def _still_wanted(self, conversation: Conversation, turn: Turn) -> bool:
        """Look again after a reply that took long; False when the session was erased meanwhile.

        If another process has ended it, the turn belongs to the next session.
        """
        now = self._clock.now()
        if now - conversation.checked_at < self._fresh_for:
            return True
        session, due_at = conversation.session, now + self._timeout
        stored = await self._store.session(session.memory_id, session.session_id)
        if stored is None:
            return False
        if stored.state is SessionState.OPEN and await self._store.touch(stored, due_at=due_at):
            conversation.session = replace(session, due_at=due_at)
        else:
            conversation.session = await self._open_in_store(self._key(session), turn.at)
            conversation.unload()
        conversation.checked_at = now
        return True

    async def _store_late(self, turn: Turn, session: Session) -> None:
        """Bring a turn from the backlog into the store, and its session first."""
        key = (turn.memory_id, turn.audience)
        async with self._locks(key):
            erasures = self._erasures[turn.memory_id]
            stored = await self._store.session(session.memory_id, session.session_id)
            if stored is None:
                stored = await self._open_in_store(key, turn.at, like=session)
            await self._store.add_turn(_into(turn, stored))
            if erasures != self._erasures[turn.memory_id]:
                await self._take_back(turn, stored)
                return
            held = self._held.get(key)
            if held is not None and held.session.session_id == session.session_id:
                held.loaded = held.loaded and stored.session_id == session.session_id
                held.session, held.provisional, held.checked_at = stored, False, _LONG_AGO
            await self._tell_if_ended(stored)

    async def _take_back(self, turn: Turn, session: Session) -> None:
        """Undo what was written of a person while they were erased."""
        await self._store.delete_turns(turn.memory_id, (turn.turn_id,))
        if not await self._store.turns(turn.memory_id, session=session, newest=1):
            await self._store.delete_session(turn.memory_id, session.session_id)

    async def _tell_if_ended(self, session: Session) -> None:
        """Have a session summarised anew that had ended before this turn of it could be stored."""
        stored = await self._store.session(session.memory_id, session.session_id)
        if stored is not None and stored.state is not SessionState.OPEN:
            now = self._clock.now()
            revised = await self._store.revise(session.memory_id, session.session_id, due_at=now)
            if revised is not None:
                self._closer.enqueue(revised)

    # Which session

    async def _current(self, key: Key) -> Conversation:
        held = self._held.get(key)
        now = self._clock.now()
        if held is not None and held.deadline <= now and not held.busy:
            await self._end_or_log(held)
            held = self._held.get(key)
        if held is not None and not await self._still_so(held, now):
            self._drop(key)
            held = None
        if held is None:
            held = await self._open(key, now)
        if not held.loaded:
            await self._load(held)
        return held

    async def _still_so(self, held: Conversation, now: datetime) -> bool:
        """Tell whether the session is still open at its revision, and take in what other processes added."""
        if held.provisional:
            return True
        session, due_at = held.session, now + self._timeout
        if session.timeout != self._timeout.total_seconds():
            return False  # used by others with theirs; found anew, it gets ours
        fresh = now - held.checked_at < self._fresh_for
        ample = session.due_at is not None and session.due_at - now >= self._timeout / 2
        if fresh and ample:
            return True
        try:
            if not ample:
                if not await self._store.touch(session, due_at=due_at):
                    return False
                held.session = replace(session, due_at=due_at)
            elif not _same(session, await self._store.session(session.memory_id, session.session_id)):
                return False
            if not fresh:
                await self._take_in(held)
        except StoreFault as fault:
            log.warning("going on from memory, the store failed: %s", fault)
            return True
        held.checked_at = now
        return True

    async def _take_in(self, held: Conversation) -> None:
        if not held.loaded:
            return
        last = held.entries[-1].turn if held.entries else None
        since = last.at if last else held.session.started_at
        known = {entry.turn.turn_id for entry in held.entries}
        newer = await self._store.turns(held.session.memory_id, session=held.session, since=since)
        for turn in newer:
            if turn.turn_id not in known and turn.turn_id >= (held.session.window_from or ""):
                held.append(turn)

    async def _open(self, key: Key, now: datetime) -> Conversation:
        try:
            session = await self._open_in_store(key, now)
            provisional = False
        except StoreFault as fault:
            log.warning("a session begins without the store: %s", fault)
            session, provisional = self._fresh(key, now), True
        conversation = Conversation(
            session, deadline=now + self._timeout, checked_at=now, provisional=provisional
        )
        self._hold(conversation, deadline=conversation.deadline)
        return conversation

    def _fresh(self, key: Key, at: datetime) -> Session:
        memory_id, audience = key
        session_id = SessionId(time_ordered_id(at))
        due_at = max(at, self._clock.now()) + self._timeout
        return Session(
            session_id,
            memory_id,
            audience,
            started_at=at,
            due_at=due_at,
            timeout=self._timeout.total_seconds(),
        )

    async def _open_in_store(self, key: Key, at: datetime, *, like: Session | None = None) -> Session:
        fresh = like or self._fresh(key, at)
        refused: Session | None = None
        while True:
            session = await self._store.open_session(fresh)
            if session.session_id == fresh.session_id:
                return session
            deadline = await self._deadline(session)
            if deadline > at or session == refused:
                # Refused and unchanged: by the clock of now it is not due after all, so it goes on.
                return await self._with_our_timeout(session)
            await self._closer.begin(session, ended_at=deadline)
            refused = session

    async def _with_our_timeout(self, session: Session) -> Session:
        """Go on with a session that was used with another timeout: the last one counts."""
        timeout, due_at = self._timeout.total_seconds(), self._clock.now() + self._timeout
        if session.timeout == timeout or not await self._store.retime(
            session, seconds=timeout, due_at=due_at
        ):
            return session
        return replace(session, timeout=timeout, due_at=due_at)

    async def _deadline(self, session: Session) -> datetime:
        """Return when a session's time is really up: the stored deadline may be behind its newest turn."""
        newest = await self._store.turns(session.memory_id, session=session, newest=1)
        stored = session.due_at or session.started_at
        return max(stored, newest[0].replied_at + timedelta(seconds=session.timeout)) if newest else stored

    async def _load(self, conversation: Conversation) -> None:
        """Read the window and the memory block; without the store, go on with what there is."""
        session = conversation.session
        if conversation.provisional:
            return
        try:
            turns = await self._store.turns(session.memory_id, session=session)
            zone = await self._zones.of(session.memory_id)
            block = await load_block(
                self._store, session, zone=zone, policy=self._block, estimator=self._estimator
            )
        except StoreFault as fault:
            log.warning("a conversation goes on without its past, the store failed: %s", fault)
            return
        shown = [turn for turn in turns if turn.turn_id >= (session.window_from or "")]
        covered = session.running.through if session.running else ""
        left = [turn.turn_id for turn in turns if covered < turn.turn_id < (session.window_from or "")]
        conversation.behind, conversation.unfolded = (left[-1] if left else None), len(left)
        stored = {turn.turn_id for turn in shown}
        late = [turn for turn in conversation.turns if turn.turn_id not in stored]
        conversation.fill((*shown, *late))
        conversation.block = block
        conversation.zone = zone
        conversation.loaded = True

    # The end of a session

    async def end(self, key: Key) -> bool:
        """End the session of this conversation now; False if none is open. Raises StoreFault."""
        if self.backlog.holds(*key):
            await self.backlog.flush()
        async with self._locks(key):
            if (held := self._held.get(key)) is not None:
                held.checked_at = _LONG_AGO  # a turn under way looks again before it is stored
            session = await self._store.opened(*key)
            self._drop(key)
            if session is None:
                return False
            return await self._closer.begin(session, ended_at=self._clock.now(), early=True)

    async def _time_is_up(self, key: Key) -> None:
        async with self._locks(key):
            held = self._held.get(key)
            if held is not None and not held.busy and key not in self._timers:
                await self._end_or_log(held)

    async def _end_or_log(self, held: Conversation) -> None:
        try:
            await self._end(held.session)
        except StoreFault as fault:
            # It is due in the store: the sweep ends it when the store is back.
            log.warning("a session is over, and the store cannot be told yet: %s", fault)
            self._drop(self._key(held.session))

    async def _end(self, session: Session) -> None:
        """End a session whose time seems to be up; if it is not, wait for the real end."""
        key = self._key(session)
        stored = await self._store.session(session.memory_id, session.session_id)
        self._drop(key)
        if stored is None or stored.state is not SessionState.OPEN:
            return
        deadline = await self._deadline(stored)
        if deadline > self._clock.now():
            self._hold(
                Conversation(stored, deadline=deadline, checked_at=self._clock.now()), deadline=deadline
            )
        else:
            await self._closer.begin(stored, ended_at=deadline)

    async def sweep(self) -> None:
        """End every session of anyone whose time is up, and queue those that wait for their summary."""
        async for session in self._store.due(self._clock.now()):
            if session.state is SessionState.CLOSING:
                self._closer.enqueue(session)
                continue
            try:
                await self._end_if_over(session)
            except StoreUnavailable:
                raise
            except StoreFault as fault:
                # One that cannot be read must not keep the others open.
                log.error("a session cannot be ended: %s", fault)  # noqa: TRY400 - no trace needed

    async def _end_if_over(self, session: Session) -> None:
        key = self._key(session)
        async with self._locks(key):
            held = self._held.get(key)
            if held is None or not (held.busy or held.deadline > self._clock.now()):
                await self._end(session)

    async def wake(self) -> None:
        """Wait for the end of every session that is open in the store, as the processes before did."""
        now = self._clock.now()
        async for session in self._store.live():
            key = self._key(session)
            if key not in self._held and session.due_at is not None:
                self._hold(
                    Conversation(session, deadline=session.due_at, checked_at=now), deadline=session.due_at
                )

    # What is held

    def _key(self, session: Session) -> Key:
        return session.memory_id, session.audience

    def _hold(self, conversation: Conversation, *, deadline: datetime) -> None:
        conversation.deadline = deadline
        key = self._key(conversation.session)
        self._held[key] = conversation
        self._timers.set(key, deadline)

    def _drop(self, key: Key) -> None:
        self._timers.cancel(key)
        self._loaded.pop(key, None)
        self._held.pop(key, None)

    def _let_go_of_idle(self) -> None:
        for key in tuple(self._loaded):
            if len(self._loaded) <= self._most_loaded:
                break
            held = self._held.get(key)
            if held is None or not (held.busy or held.folding or held.provisional):
                del self._loaded[key]
                if held is not None:
                    held.unload()

    def invalidate(self, memory_id: MemoryId, erased: bool) -> None:
        """Let go of what is held of a person, after something of theirs was erased.

        With `erased`, everything was: a turn that is under way is not stored any more. Otherwise open
        sessions are read anew at their next turn.
        """
        if erased:
            self._erasures[memory_id] += 1
            for conversation in self._under_way:
                conversation.gone |= conversation.session.memory_id == memory_id
        for key, held in tuple(self._held.items()):
            if key[0] != memory_id:
                continue
            if erased:
                held.gone = True
                self._drop(key)
            else:
                held.unload()
                held.checked_at = _LONG_AGO
        if erased:
            self.backlog.forget(memory_id)

    async def aclose(self) -> None:
        """Stop waiting; open sessions stay open and end when their time has come, here or elsewhere."""
        self._timers.stop_waiting()
        await self._timers.drain(grace=5)
        await self._timers.aclose()
        await self.backlog.aclose()


def _same(known: Session, stored: Session | None) -> bool:
    """Tell whether the session is still open, and nothing of it was erased."""
    return stored is not None and stored.state is SessionState.OPEN and stored.revision == known.revision


def _into(turn: Turn, session: Session) -> Turn:
    """Put a turn into a session; none is older than the session it is in."""
    at = max(turn.at, session.started_at)
    return replace(turn, session_id=session.session_id, at=at, replied_at=max(turn.replied_at, at))
