"""The store over a document database: which query answers which question, and in which order things go.

It knows no driver; what it needs of one is the protocol below, which memory/stores/mongo.py implements.
Every conditional write is one update whose filter is its condition. What is derived goes before what it was
derived from, and the session or person last, so that a deletion broken off can be repeated.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import aclosing
from datetime import datetime
from itertools import islice
from typing import Any, Protocol

from memory.errors import StoreFault, StoreUnavailable
from memory.ports import Clock
from memory.stores import documents, migrations, queries
from memory.stores.documents import Document
from memory.stores.queries import PEOPLE, SESSIONS, TURNS, Change, Filter, Index, Pipeline, Update
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

_CHUNK = 100  # ids in one deletion: some servers compare each document with each of them
_TRIES = 8


class Backend(Protocol):
    """A document database, one round trip a method. Every method raises StoreFault and its kinds."""

    async def describe(self) -> str:
        """Say what it is and which version."""
        ...

    async def aclose(self) -> None:
        """Let go of connections; twice is harmless."""
        ...

    async def ensure_index(self, index: Index) -> None:
        """Create an index unless it is there."""
        ...

    async def insert(self, collection: str, document: Document) -> bool:
        """Insert a document; False when a unique index has one like it."""
        ...

    async def put(self, collection: str, document: Document) -> None:
        """Insert a document, or put it in place of the one with its id."""
        ...

    async def update(self, collection: str, found: Filter, update: Update) -> bool:
        """Change the first document found, atomically; False when there is none."""
        ...

    async def delete(self, collection: str, found: Filter) -> int:
        """Delete all documents found; returns how many."""
        ...

    async def get(self, collection: str, found: Filter) -> Document | None:
        """Return the first document found."""
        ...

    def select(self, collection: str, pipeline: Pipeline) -> AsyncGenerator[Document]:
        """Go through what the pipeline gives, in bounded memory."""
        ...


class DocumentStore:
    """A Store over a Backend."""

    def __init__(self, backend: Backend, *, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock  # only tells where "lately" begins: wrong, it costs time and nothing else

    # Lifetime

    async def prepare(self) -> None:
        """See Store.prepare. Raises StoreFault for a database that a newer version has written."""
        await migrations.migrate(self._backend, at=self._clock.now())
        for index in queries.INDEXES:
            await self._backend.ensure_index(index)

    async def ping(self) -> str:
        """See Store.ping."""
        return await self._backend.describe()

    async def aclose(self) -> None:
        """See Store.aclose."""
        await self._backend.aclose()

    # Turns

    async def add_turn(self, turn: Turn) -> bool:
        """See Store.add_turn."""
        return await self._backend.insert(TURNS, documents.turn_document(turn))

    async def turn(self, memory_id: MemoryId, turn_id: TurnId) -> Turn | None:
        """See Store.turn."""
        document = await self._backend.get(TURNS, queries.by_id(memory_id, turn_id))
        return None if document is None else documents.turn_from(document)

    async def turns(
        self,
        memory_id: MemoryId,
        *,
        session: Session | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest: int | None = None,
    ) -> tuple[Turn, ...]:
        """See Store.turns."""
        conditions = {}
        if session is not None:
            conditions["session_id"] = session.session_id
            since = max(since or session.started_at, session.started_at)
        found = await self._in_order(
            (TURNS, "at"), memory_id, since=since, until=until, newest=newest, conditions=conditions
        )
        return tuple(documents.turn_from(document) for document in found)

    async def scan(self, memory_id: MemoryId) -> AsyncIterator[Turn]:
        """See Store.scan."""
        for since, until in queries.steps_back(self._clock.now(), since=None, until=None):
            pipeline = queries.in_time(
                memory_id, "at", since=since, until=until, conditions={}, newest_first=True
            )
            async with aclosing(self._backend.select(TURNS, pipeline)) as found:
                async for document in found:
                    yield documents.turn_from(document)

    async def count_turns(self, memory_id: MemoryId) -> Mapping[SessionId, int]:
        """See Store.count_turns."""
        rows = await self._all(TURNS, queries.turns_by_session(memory_id))
        return {SessionId(row["_id"]): int(row["turns"]) for row in rows}

    # Sessions

    async def open_session(self, session: Session) -> Session:
        """See Store.open_session. Raises StoreFault for an id that is taken by one that is not open."""
        document = documents.session_document(session)
        for _ in range(_TRIES):
            if await self._backend.insert(SESSIONS, document):
                return documents.session_from(document)
            if (found := await self.opened(session.memory_id, session.audience)) is not None:
                return found
            if await self._backend.get(SESSIONS, {"_id": session.session_id}) is not None:
                raise StoreFault("a session with this id is there already, and it is not open")
        raise StoreUnavailable("sessions of one conversation open and close faster than one can be opened")

    async def put_session(self, session: Session) -> bool:
        """See Store.put_session. Raises StoreFault for a second open one of a conversation."""
        if await self._backend.insert(SESSIONS, documents.session_document(session)):
            return True
        if await self._backend.get(SESSIONS, {"_id": session.session_id}) is None:
            raise StoreFault("another session of this conversation is open")
        return False

    async def session(self, memory_id: MemoryId, session_id: SessionId) -> Session | None:
        """See Store.session."""
        return await self._session(queries.by_id(memory_id, session_id))

    async def opened(self, memory_id: MemoryId, audience: Audience) -> Session | None:
        """See Store.opened."""
        return await self._session(queries.opened(memory_id, audience))

    async def sessions(
        self,
        memory_id: MemoryId,
        *,
        audience: Audience | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest: int | None = None,
    ) -> tuple[Session, ...]:
        """See Store.sessions."""
        conditions = {} if audience is None else {"audience": audience}
        found = await self._in_order(
            (SESSIONS, "started_at"),
            memory_id,
            since=since,
            until=until,
            newest=newest,
            conditions=conditions,
        )
        return tuple(documents.session_from(document) for document in found)

    async def due(self, now: datetime) -> AsyncIterator[Session]:
        """See Store.due."""
        async with aclosing(self._backend.select(SESSIONS, queries.due(now))) as found:
            async for document in found:
                yield documents.session_from(document)

    async def live(self) -> AsyncIterator[Session]:
        """See Store.live."""
        async with aclosing(self._backend.select(SESSIONS, queries.live())) as found:
            async for document in found:
                yield documents.session_from(document)

    async def touch(self, session: Session, *, due_at: datetime) -> bool:
        """See Store.touch."""
        return await self._change(session, queries.touched(session, due_at=due_at))

    async def retime(self, session: Session, *, seconds: float, due_at: datetime) -> bool:
        """See Store.retime."""
        return await self._change(session, queries.retimed(session, timeout=seconds, due_at=due_at))

    async def set_window(
        self, session: Session, *, window_from: TurnId | None, running: RunningSummary | None
    ) -> bool:
        """See Store.set_window."""
        return await self._change(
            session, queries.windowed(session, window_from=window_from, running=running)
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
        """See Store.claim."""
        ways = queries.claimed(session, owner=owner, now=now, until=until, ended_at=ended_at, early=early)
        for way in ways:
            if await self._change(session, way):
                # Read after the write, and so maybe after somebody else's: theirs is not ours to return.
                claimed = await self.session(session.memory_id, session.session_id)
                return claimed if claimed is not None and claimed.owner == owner else None
        return None

    async def finish(self, session: Session, *, summary: str | None, summary_model: str) -> bool:
        """See Store.finish."""
        return await self._change(
            session, queries.finished(session, summary=summary, summary_model=summary_model)
        )

    async def postpone(self, session: Session, *, due_at: datetime, fault: str | None) -> bool:
        """See Store.postpone."""
        return await self._change(session, queries.postponed(session, due_at=due_at, fault=fault))

    async def revise(self, memory_id: MemoryId, session_id: SessionId, *, due_at: datetime) -> Session | None:
        """See Store.revise."""
        for conditions, update in queries.revised(due_at=due_at):
            found = queries.by_id(memory_id, session_id, **conditions)
            if await self._backend.update(SESSIONS, found, update):
                return await self.session(memory_id, session_id)
        return None

    # People

    async def person(self, memory_id: MemoryId) -> Person | None:
        """See Store.person."""
        document = await self._backend.get(PEOPLE, {"_id": memory_id})
        return None if document is None else documents.person_from(document)

    async def put_person(self, person: Person) -> None:
        """See Store.put_person."""
        await self._backend.put(PEOPLE, documents.person_document(person))

    async def known(self, prefix: str, *, limit: int = 20) -> tuple[MemoryId, ...]:
        """See Store.known; in the order of their code points."""
        rows = await self._all(SESSIONS, queries.known(prefix, limit=limit)) if limit > 0 else []
        return tuple(MemoryId(row["_id"]) for row in rows)

    # Forgetting

    async def delete_turns(self, memory_id: MemoryId, turn_ids: Collection[TurnId]) -> int:
        """See Store.delete_turns."""
        gone, ids = 0, iter(turn_ids)
        while chunk := list(islice(ids, _CHUNK)):
            gone += await self._backend.delete(TURNS, queries.by_id(memory_id, {"$in": chunk}))
        return gone

    async def delete_session(self, memory_id: MemoryId, session_id: SessionId) -> Holdings:
        """See Store.delete_session."""
        session = await self.session(memory_id, session_id)
        turns = queries.in_time(
            memory_id,
            "at",
            since=None if session is None else session.started_at,
            until=None,
            conditions={"session_id": session_id},
        )
        gone = Holdings(turns=await self._delete_found(TURNS, memory_id, turns))
        if session is None or not await self._backend.delete(SESSIONS, queries.by_id(memory_id, session_id)):
            return gone
        return gone + Holdings(sessions=1, summaries=0 if session.summary is None else 1)

    async def erase(self, memory_id: MemoryId) -> Holdings:
        """See Store.erase."""
        summaries = await self._count(SESSIONS, queries.summarised(memory_id))
        return Holdings(
            turns=await self._delete_found(TURNS, memory_id, queries.of_person(memory_id)),
            sessions=await self._delete_found(SESSIONS, memory_id, queries.of_person(memory_id)),
            summaries=summaries,
            people=await self._backend.delete(PEOPLE, {"_id": memory_id}),
        )

    async def holdings(self, memory_id: MemoryId) -> Holdings:
        """See Store.holdings."""
        return Holdings(
            turns=await self._count(TURNS, queries.of_person(memory_id)),
            sessions=await self._count(SESSIONS, queries.of_person(memory_id)),
            summaries=await self._count(SESSIONS, queries.summarised(memory_id)),
            people=0 if await self._backend.get(PEOPLE, {"_id": memory_id}) is None else 1,
        )

    # How it is asked

    async def _change(self, session: Session, change: Change) -> bool:
        conditions, update = change
        found = queries.by_id(session.memory_id, session.session_id, **conditions)
        return await self._backend.update(SESSIONS, found, update)

    async def _session(self, found: Filter) -> Session | None:
        document = await self._backend.get(SESSIONS, found)
        return None if document is None else documents.session_from(document)

    async def _in_order(
        self,
        field: tuple[str, str],
        memory_id: MemoryId,
        *,
        since: datetime | None,
        until: datetime | None,
        newest: int | None,
        conditions: Mapping[str, Any],
    ) -> list[Document]:
        """Return documents of a person, oldest first; of the newest N only as much as needed is read."""
        collection, name = field
        if newest is None:
            pipeline = queries.in_time(memory_id, name, since=since, until=until, conditions=conditions)
            return await self._all(collection, pipeline)
        found: list[Document] = []
        for low, high in queries.steps_back(self._clock.now(), since=since, until=until):
            missing = newest - len(found)
            if missing <= 0:
                break
            pipeline = queries.in_time(
                memory_id, name, since=low, until=high, conditions=conditions, newest=missing
            )
            found += await self._all(collection, pipeline)
        return found[::-1]

    async def _all(self, collection: str, pipeline: Pipeline) -> list[Document]:
        async with aclosing(self._backend.select(collection, pipeline)) as found:
            return [document async for document in found]

    async def _count(self, collection: str, pipeline: Pipeline) -> int:
        rows = await self._all(collection, queries.counted(pipeline))
        return int(rows[0]["count"]) if rows else 0

    async def _delete_found(self, collection: str, memory_id: MemoryId, pipeline: Pipeline) -> int:
        """Delete what a pipeline finds, some at a time, until it finds nothing."""
        gone = 0
        while ids := [row["_id"] for row in await self._all(collection, queries.only_ids(pipeline))]:
            for start in range(0, len(ids), _CHUNK):
                chunk = queries.by_id(memory_id, {"$in": ids[start : start + _CHUNK]})
                gone += await self._backend.delete(collection, chunk)
        return gone
