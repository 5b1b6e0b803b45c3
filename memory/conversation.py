"""The part of a session that this process holds in memory: what the next prompt is made of.

All of it can be rebuilt from the store; an idle conversation may be let go of at any time. Only the
session's owner in this process (memory/sessions/) changes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from memory.blocks import MemoryBlock
from memory.tokens import Measure, TokenEstimator, measure
from memory.types import RunningSummary, Session, Turn, TurnId
from memory.window import WindowPolicy, evicted, next_block

_MILLISECOND = timedelta(milliseconds=1)
_STAMP = Measure(ascii=10)  # each message of a person goes with its time


@dataclass(frozen=True, slots=True)
class Entry:
    """A turn in the window, and the measure of its text."""

    turn: Turn
    size: Measure


def size_of(human: str, reply: str = "") -> Measure:
    """Measure what a turn adds to a prompt."""
    size = measure(human, messages=1) + _STAMP
    return size + measure(reply, messages=1) if reply else size


def time_of(turn_id: TurnId) -> datetime:
    """Return the millisecond in which an id was made."""
    return datetime.fromtimestamp(int(turn_id[:12], 16) / 1000, UTC)


@dataclass(slots=True, eq=False)
class Conversation:
    """One live session as this process knows it."""

    session: Session
    deadline: datetime
    checked_at: datetime
    loaded: bool = False
    provisional: bool = False  # the store could not be asked, so it does not know this session yet
    busy: bool = False  # a turn is under way: it must not be ended now
    gone: bool = False  # erased under our hands: nothing may be written for it any more
    entries: list[Entry] = field(default_factory=list)
    size: Measure = field(default_factory=Measure)
    block: MemoryBlock = field(default_factory=MemoryBlock)
    zone: ZoneInfo | None = None  # the person's, read with the block
    ready: RunningSummary | None = None  # made in the background, goes in with the next eviction
    folding: bool = False
    behind: TurnId | None = None  # the last turn that has left the window with no text covering it yet
    unfolded: int = 0  # how many such turns there are since the last folding began

    def fill(self, turns: Iterable[Turn]) -> None:
        """Put these turns into the window in place of what was there."""
        self.entries = []
        self.size = Measure()
        for turn in turns:
            self.append(turn)

    def append(self, turn: Turn) -> None:
        """Add a turn at the end of the window."""
        entry = Entry(turn, size_of(turn.human, turn.reply))
        self.entries.append(entry)
        self.size += entry.size

    def unload(self) -> None:
        """Let go of all that can be read again."""
        self.loaded = False
        self.entries = []
        self.size = Measure()
        self.block = MemoryBlock()
        self.ready = None

    def next_at(self, at: datetime) -> datetime:
        """Return the time of a turn that begins at `at`: after all that was said and where the window begins.

        Clocks are set back, and platforms tell times of their own; a turn's id has the order of its time.
        """
        if self.entries:
            at = max(at, self.entries[-1].turn.at + _MILLISECOND)
        elif self.session.window_from:
            at = max(at, time_of(self.session.window_from) + _MILLISECOND)
        return max(at, self.session.started_at)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The window, oldest first."""
        return tuple(entry.turn for entry in self.entries)

    def overflow(self, policy: WindowPolicy, *, room: int, coming: Measure, estimator: TokenEstimator) -> int:
        """Return how many of the oldest turns must go before a message of this measure fits.

        `room` is what the model can take of window and message, in tokens; it binds in every mode.
        """
        most = min(policy.max_tokens, room) if policy.mode == "tokens" else room
        limit = most - estimator.tokens(coming)
        over = 0
        if estimator.tokens(self.size) > limit:
            tokens = [estimator.tokens(entry.size) for entry in self.entries]
            over = evicted(tokens, limit=limit, keep=int(most * policy.evict_to))
        if policy.mode == "messages":
            messages = [entry.size.messages for entry in self.entries]
            limit = policy.max_messages - coming.messages
            over = max(over, evicted(messages, limit=limit, keep=int(policy.max_messages * policy.evict_to)))
        return over

    def next_to_go(self, policy: WindowPolicy, *, room: int, estimator: TokenEstimator) -> int:
        """Return how many of the oldest turns the next eviction will take, or 0 while it is far off."""
        if policy.mode == "messages":
            most, sizes = policy.max_messages, [entry.size.messages for entry in self.entries]
        else:
            most = min(policy.max_tokens, room) if policy.mode == "tokens" else room
            sizes = [estimator.tokens(entry.size) for entry in self.entries]
        return next_block(sizes, limit=most, keep=int(most * policy.evict_to))

    def evict(self, count: int, *, coming: TurnId) -> TurnId:
        """Take the oldest `count` turns out; returns the first turn that the window shows from now on."""
        for entry in self.entries[:count]:
            self.size -= entry.size
        del self.entries[:count]
        return self.window_from(coming=coming)

    def window_from(self, *, coming: TurnId) -> TurnId:
        """Return the first turn that the window shows."""
        return self.entries[0].turn.turn_id if self.entries else coming
