"""The conversations that this process holds, by memory id and audience: the one place of what is shared.

A copy of what the store has, which may be dropped at any time, and beside it what the store cannot know:
the turns that are under way, one lock for each conversation, and the timer that waits for its end. It
decides nothing; whoever changes a conversation holds its lock.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from memory.conversation import Conversation
from memory.ports import Clock
from memory.tasks import KeyedLocks, KeyedTimers
from memory.types import Audience, MemoryId, Session

Key = tuple[MemoryId, Audience]

LONG_AGO = datetime.min.replace(tzinfo=UTC)


def key_of(session: Session) -> Key:
    """Return the conversation that a session belongs to."""
    return session.memory_id, session.audience


class Held:
    """The conversations of this process; `most_loaded` of them keep their window at hand."""

    def __init__(
        self, clock: Clock, *, time_is_up: Callable[[Key], Awaitable[None]], most_loaded: int
    ) -> None:
        """Call `time_is_up` with the key of a conversation once its deadline has passed."""
        self._most_loaded = most_loaded
        self._conversations: dict[Key, Conversation] = {}
        self._under_way: set[Conversation] = set()  # between begin and finish, held or not
        self._erasures: Counter[MemoryId] = Counter()  # how often everything of a person was erased
        self._doubts: Counter[MemoryId] = Counter()  # and how often something of theirs changed
        self._loaded: OrderedDict[Key, None] = OrderedDict()  # the longest unused first
        self._locks: KeyedLocks[Key] = KeyedLocks()
        self._timers: KeyedTimers[Key] = KeyedTimers(clock, time_is_up, name="session")

    def __len__(self) -> int:
        return len(self._conversations)

    def __contains__(self, key: Key) -> bool:
        return key in self._conversations

    def lock(self, key: Key) -> asyncio.Lock:
        """Return the lock of this conversation."""
        return self._locks(key)

    def get(self, key: Key) -> Conversation | None:
        """Return what is held of this conversation."""
        return self._conversations.get(key)

    def waits(self, key: Key) -> bool:
        """Tell whether a timer still waits for the end of this conversation."""
        return key in self._timers

    def hold(self, conversation: Conversation, *, deadline: datetime) -> None:
        """Hold a conversation, in place of what was, and wait for its deadline."""
        conversation.deadline = deadline
        key = key_of(conversation.session)
        self._conversations[key] = conversation
        self._timers.set(key, deadline)

    def drop(self, key: Key) -> None:
        """Hold it no longer."""
        self._timers.cancel(key)
        self._loaded.pop(key, None)
        self._conversations.pop(key, None)

    # Turns

    def take_up(self, conversation: Conversation) -> None:
        """Note that a turn is under way; for its window, others that are idle may have to go."""
        conversation.busy = True
        self._under_way.add(conversation)
        key = key_of(conversation.session)
        self._loaded[key] = None
        self._loaded.move_to_end(key)
        self._let_go_of_idle()

    def lay_down(self, conversation: Conversation) -> None:
        """Note that its turn is over."""
        conversation.busy = False
        self._under_way.discard(conversation)

    def _let_go_of_idle(self) -> None:
        for key in tuple(self._loaded):
            if len(self._loaded) <= self._most_loaded:
                break
            held = self._conversations.get(key)
            if held is None or not (held.busy or held.folding or held.provisional):
                del self._loaded[key]
                if held is not None:
                    held.unload()

    # Erasures

    def erasures(self, memory_id: MemoryId) -> int:
        """Count how often everything of this person was erased: work that saw it change begins anew."""
        return self._erasures[memory_id]

    def doubts(self, memory_id: MemoryId) -> int:
        """Count how often what is held of this person had to be doubted, or was erased."""
        return self._doubts[memory_id] + self._erasures[memory_id]

    def forget(self, memory_id: MemoryId) -> None:
        """Drop everything of a person, and let no turn of theirs that is under way be stored."""
        self._erasures[memory_id] += 1
        for conversation in self._all_of(memory_id):
            conversation.gone = True
        for key in tuple(self._conversations):
            if key[0] == memory_id:
                self.drop(key)

    def doubt(self, memory_id: MemoryId) -> None:
        """Have everything of a person read anew at their next turn, and before one under way is stored."""
        self._doubts[memory_id] += 1
        for conversation in self._all_of(memory_id):
            conversation.unload()
            conversation.checked_at = LONG_AGO

    def _all_of(self, memory_id: MemoryId) -> set[Conversation]:
        known = self._under_way.union(self._conversations.values())
        return {conversation for conversation in known if conversation.session.memory_id == memory_id}

    async def aclose(self) -> None:
        """Wait for no deadline any more; an end that has begun may still finish."""
        self._timers.stop_waiting()
        await self._timers.drain(grace=5)
        await self._timers.aclose()
