"""What memory asks of the outside: a store, a model that completes, a clock.

Protocols belong to the side that calls them, so they stand here; who implements them is not known here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

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
    Usage,
)

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's whole answer."""

    text: str
    model: str
    usage: Usage | None = None


class Completer(Protocol):
    """A model asked for one whole answer, for work that nobody is waiting on."""

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        """Answer the prompt. Raises CompletionFault; never returns blank text."""
        ...


class Clock(Protocol):
    """The time, and waiting for it."""

    def now(self) -> datetime:
        """Return the time as an aware UTC datetime."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; a zero or negative time still yields to the event loop once."""
        ...


class Store(Protocol):
    """Append and query, always by memory id; nothing grows inside a document and nothing is replaced whole.

    Every method raises StoreUnavailable when the store cannot be reached and CorruptRecord when what is
    stored cannot be read. Every conditional write is one atomic operation: its condition is checked and its
    change made at once, also against other processes. Datetimes go in and come out as aware UTC, in whole
    milliseconds (the store truncates).
    """

    # Lifetime

    async def prepare(self) -> None:
        """Create missing indexes and run the migrations that are due; safe to run twice, or at once."""
        ...

    async def ping(self) -> str:
        """Make one round trip; returns what the store is, for people ("MongoDB 8.0.4")."""
        ...

    async def aclose(self) -> None:
        """Let go of connections; twice is harmless."""
        ...

    # Turns

    async def add_turn(self, turn: Turn) -> bool:
        """Append a turn; False when one with this id is there already (the call is safe to repeat)."""
        ...

    async def turn(self, memory_id: MemoryId, turn_id: TurnId) -> Turn | None:
        """Return one turn of this person."""
        ...

    async def turns(
        self,
        memory_id: MemoryId,
        *,
        session: Session | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest: int | None = None,
    ) -> tuple[Turn, ...]:
        """Return turns with `since` <= at < `until`, the newest N if given, oldest first by (at, turn_id).

        With `session`, only that session's; none of a session's turns is older than its `started_at`.
        """
        ...

    def scan(self, memory_id: MemoryId) -> AsyncIterator[Turn]:
        """Go through all turns of a person, newest first, in bounded memory."""
        ...

    async def count_turns(self, memory_id: MemoryId) -> Mapping[SessionId, int]:
        """Count a person's turns by session."""
        ...

    # Sessions

    async def open_session(self, session: Session) -> Session:
        """Insert an open session, or return the one that is already open for its memory id and audience.

        At most one is open for a memory id and an audience at any time.
        """
        ...

    async def put_session(self, session: Session) -> bool:
        """Insert a session as it is (for import); False when one with this id is there already."""
        ...

    async def session(self, memory_id: MemoryId, session_id: SessionId) -> Session | None:
        """Return one session of this person, read at the store's primary."""
        ...

    async def opened(self, memory_id: MemoryId, audience: Audience) -> Session | None:
        """Return the session that is open for this audience."""
        ...

    async def sessions(
        self,
        memory_id: MemoryId,
        *,
        audience: Audience | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest: int | None = None,
    ) -> tuple[Session, ...]:
        """Return sessions with `since` <= started_at < `until`, the newest N if given, oldest first."""
        ...

    def due(self, now: datetime) -> AsyncIterator[Session]:
        """Go through the sessions of anyone, open or closing, with `due_at` <= now, in bounded memory.

        This and `live` are the only queries across people.
        """
        ...

    def live(self) -> AsyncIterator[Session]:
        """Go through the open sessions of anyone, whatever their deadline, in bounded memory."""
        ...

    async def touch(self, session: Session, *, due_at: datetime) -> bool:
        """Move the deadline, never back, if the session is still open at this revision; False if not."""
        ...

    async def retime(self, session: Session, *, seconds: float, due_at: datetime) -> bool:
        """Give it another timeout, and the deadline that follows; False if not open at this revision."""
        ...

    async def set_window(
        self, session: Session, *, window_from: TurnId | None, running: RunningSummary | None
    ) -> bool:
        """Record what the window shows and the running summary, if the session is still at this revision."""
        ...

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
        """Take the lease to close a session, until `until`: open or closing, due -> closing, owned.

        Due means `due_at` <= now and, while open, unmoved since `session` was read. `early` closes an open
        one that is not due yet. `ended_at` is kept from the first claim on. Returns the session as it is now,
        or None when somebody else has it, it has moved on, or it is gone.
        """
        ...

    async def finish(self, session: Session, *, summary: str | None, summary_model: str) -> bool:
        """Land the result: closing -> closed, if this owner has the lease and the revision is the same."""
        ...

    async def postpone(self, session: Session, *, due_at: datetime, fault: str | None) -> bool:
        """Give the lease back, to be taken up at `due_at`; with `fault` it counts as a failed attempt."""
        ...

    async def revise(self, memory_id: MemoryId, session_id: SessionId, *, due_at: datetime) -> Session | None:
        """Drop all that was derived from a session's turns and raise its revision; closed -> closing.

        One that was closed is due at `due_at`; an open session stays open with its deadline. Attempts and
        fault start over, a lease is void.
        """
        ...

    # People

    async def person(self, memory_id: MemoryId) -> Person | None:
        """Return what is kept about this person."""
        ...

    async def put_person(self, person: Person) -> None:
        """Store what is kept about this person, in place of what was."""
        ...

    async def known(self, prefix: str, *, limit: int = 20) -> tuple[MemoryId, ...]:
        """Return memory ids that have sessions and begin with `prefix` (for the command line)."""
        ...

    # Forgetting

    async def delete_turns(self, memory_id: MemoryId, turn_ids: Collection[TurnId]) -> int:
        """Erase turns; returns how many there were."""
        ...

    async def delete_session(self, memory_id: MemoryId, session_id: SessionId) -> Holdings:
        """Erase a session and its turns, the session last; returns what there was."""
        ...

    async def erase(self, memory_id: MemoryId) -> Holdings:
        """Erase everything of this person; returns what there was."""
        ...

    async def holdings(self, memory_id: MemoryId) -> Holdings:
        """Count what is stored of this person, in every collection."""
        ...
