"""What MongoDB is asked: the indexes, and the filters, pipelines and updates that they serve.

Pure. The rule: every query names the person first and is served by an index, also by a planner that knows
little. Such a planner takes an index only when the filter is its leading fields and nothing else (equal, the
last one at most a range), or takes the first clause that alone has an index. So a document's own id comes
first where it is known, and whatever else a query asks for goes into a second stage of its pipeline. A
better planner merges the stages. There are no hints: to some servers a hint means the whole index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memory.stores.documents import clean, running_document, whole_ms
from memory.types import (
    Audience,
    MemoryId,
    RunningSummary,
    Session,
    SessionState,
    TurnId,
)

TURNS = "turns"
SESSIONS = "sessions"
PEOPLE = "people"
MIGRATIONS = "migrations"

Filter = Mapping[str, Any]
Update = Mapping[str, Any]
Pipeline = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Index:
    """An index that the code creates; `only` makes it partial."""

    collection: str
    name: str
    keys: tuple[str, ...]
    unique: bool = False
    only: Filter | None = None


_OPEN = SessionState.OPEN.value
_CLOSING = SessionState.CLOSING.value
_CLOSED = SessionState.CLOSED.value

INDEXES = (
    # The id at the end makes the order of turns of one millisecond part of the index.
    Index(TURNS, "at", ("memory_id", "at", "_id")),
    # The plainest planner takes the first index that fits, by name: `due` has to come before `started`.
    Index(SESSIONS, "due", ("memory_id", "due_at"), only={"live": True}),
    Index(SESSIONS, "open", ("memory_id", "audience"), unique=True, only={"state": _OPEN}),
    Index(SESSIONS, "started", ("memory_id", "started_at", "_id")),
)

# Steps back in time, in which the newest are looked for: sorting reads no more than a step's documents.
_STEPS = (
    timedelta(hours=1),
    timedelta(days=1),
    timedelta(days=7),
    timedelta(days=30),
    timedelta(days=365),
)


def by_id(memory_id: MemoryId, own_id: str | Mapping[str, Any], **conditions: Any) -> dict[str, Any]:
    """Return the filter for one document of a person; the id comes first (see the module's rule)."""
    return {"_id": own_id, "memory_id": memory_id, **conditions}


def of_person(memory_id: MemoryId, **conditions: Any) -> Pipeline:
    """Return the pipeline over everything of a person that meets these conditions."""
    return _staged({"memory_id": memory_id}, conditions)


def in_time(
    memory_id: MemoryId,
    field: str,
    *,
    since: datetime | None,
    until: datetime | None,
    conditions: Mapping[str, Any],
    newest: int | None = None,
    newest_first: bool = False,
) -> Pipeline:
    """Return the pipeline over a person's documents with `since` <= field < `until`, in order."""
    bounds: dict[str, datetime] = {}
    if since is not None:
        bounds["$gte"] = whole_ms(since)
    if until is not None:
        bounds["$lt"] = whole_ms(until)
    way = -1 if newest_first or newest is not None else 1
    first: dict[str, Any] = {"memory_id": memory_id}
    if bounds:
        first[field] = bounds
    stages: list[Mapping[str, Any]] = [*_staged(first, conditions), {"$sort": {field: way, "_id": way}}]
    if newest is not None:
        stages.append({"$limit": newest})
    return stages


def steps_back(
    now: datetime, *, since: datetime | None, until: datetime | None
) -> list[tuple[datetime | None, datetime | None]]:
    """Cut the time between `since` and `until` into stretches, newest first, each longer than the last.

    None stands for no bound. The stretches touch, do not overlap, and are all of it, wherever `now` is.
    """
    start = now if until is None else min(now, until)
    stretches: list[tuple[datetime | None, datetime | None]] = []
    high = until
    for step in _STEPS:
        low = start - step
        if since is not None and low <= since:
            break
        stretches.append((low, high))
        high = low
    stretches.append((since, high))
    return stretches


def due(now: datetime) -> Pipeline:
    """Return the pipeline over the sessions of anyone that somebody must look at."""
    return _staged({"live": True, "memory_id": {"$gt": ""}}, {"due_at": {"$lte": whole_ms(now)}})


def live() -> Pipeline:
    """Return the pipeline over the open sessions of anyone."""
    return _staged({"live": True, "memory_id": {"$gt": ""}}, {"state": _OPEN})


def opened(memory_id: MemoryId, audience: Audience) -> Filter:
    """Return the filter for the open session of a conversation."""
    return {"memory_id": memory_id, "audience": audience, "state": _OPEN}


def turns_by_session(memory_id: MemoryId) -> Pipeline:
    """Return the pipeline that counts a person's turns by session."""
    return [*of_person(memory_id), {"$group": {"_id": "$session_id", "turns": {"$sum": 1}}}]


def summarised(memory_id: MemoryId) -> Pipeline:
    """Return the pipeline over a person's sessions that have a summary."""
    return of_person(memory_id, summary={"$exists": True})


def counted(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline that counts what another one finds."""
    return [*pipeline, {"$group": {"_id": None, "count": {"$sum": 1}}}]


def only_ids(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline that gives the ids of what another one finds."""
    return [*pipeline, {"$project": {"_id": 1}}]


def known(prefix: str, *, limit: int) -> Pipeline:
    """Return the pipeline over memory ids that begin with a prefix."""
    bounds = {"$gte": prefix} if prefix else {"$gt": ""}
    if (end := after_prefix(prefix)) is not None:
        bounds["$lt"] = end
    return [
        {"$match": {"memory_id": bounds}},
        {"$group": {"_id": "$memory_id"}},
        {"$sort": {"_id": 1}},
        {"$limit": limit},
    ]


def after_prefix(prefix: str) -> str | None:
    """Return the least text that is above every text with this prefix; None when there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    last = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if last == 0xD800 else last)  # surrogates are no characters


# Updates of a session. Each is (conditions, update): checked and changed at once.

Change = tuple[dict[str, Any], Update]


def touched(session: Session, *, due_at: datetime) -> Change:
    """Move the deadline of an open session, never back."""
    conditions = {"state": _OPEN, "revision": session.revision}
    return conditions, {"$max": {"due_at": whole_ms(due_at)}, "$set": {"live": True}}


def retimed(session: Session, *, timeout: float, due_at: datetime) -> Change:
    """Give an open session another timeout."""
    conditions = {"state": _OPEN, "revision": session.revision}
    return conditions, {"$set": {"timeout": timeout, "due_at": whole_ms(due_at), "live": True}}


def windowed(session: Session, *, window_from: TurnId | None, running: RunningSummary | None) -> Change:
    """Record what the window shows."""
    values = {"window_from": window_from, "running": running_document(running)}
    return {"revision": session.revision}, _set_or_unset(values)


def claimed(
    session: Session, *, owner: str, now: datetime, until: datetime, ended_at: datetime, early: bool
) -> list[Change]:
    """Take the lease: the ways to do it, of which at most one comes true."""
    now, lease = whole_ms(now), {"owner": owner, "due_at": whole_ms(until), "live": True}
    ways: list[Change] = []
    read_due = session.due_at and whole_ms(session.due_at)
    over = read_due is not None and read_due <= now
    if session.state is SessionState.OPEN and (early or over):
        conditions = {"state": _OPEN} if early else {"state": _OPEN, "due_at": read_due}
        ways.append(
            (conditions, {"$set": {**lease, "state": _CLOSING, "ended_at": whole_ms(ended_at)}}),
        )
    ways.append(({"state": _CLOSING, "due_at": {"$lte": now}}, {"$set": lease}))
    return ways


def finished(session: Session, *, summary: str | None, summary_model: str) -> Change:
    """Land the result of the owner's work."""
    values = {
        "state": _CLOSED,
        "summary": summary and clean(summary),
        "summary_model": clean(summary_model),
        "due_at": None,
        "live": None,
        "owner": None,
        "fault": None,
    }
    return _leased(session), _set_or_unset(values)


def postponed(session: Session, *, due_at: datetime, fault: str | None) -> Change:
    """Give the lease back; with a fault, count it."""
    values: dict[str, Any] = {"due_at": whole_ms(due_at), "owner": None}
    if fault is None:
        return _leased(session), _set_or_unset(values)
    return _leased(session), {**_set_or_unset({**values, "fault": fault}), "$inc": {"attempts": 1}}


def revised(*, due_at: datetime) -> list[Change]:
    """Drop what was derived: for an open session, and for one that is not."""
    fresh: dict[str, Any] = dict.fromkeys(("window_from", "running", "summary", "owner", "fault"))
    fresh |= {"summary_model": "", "attempts": 0}
    again = {**fresh, "state": _CLOSING, "due_at": whole_ms(due_at), "live": True}
    raised = {"$inc": {"revision": 1}}
    return [
        ({"state": _OPEN}, {**_set_or_unset(fresh), **raised}),
        ({"state": {"$in": [_CLOSING, _CLOSED]}}, {**_set_or_unset(again), **raised}),
    ]


def _leased(session: Session) -> dict[str, Any]:
    # An owner of None must meet nothing: an absent field would equal it.
    return {"state": _CLOSING, "owner": session.owner or "", "revision": session.revision}


def _set_or_unset(values: Mapping[str, Any]) -> dict[str, Any]:
    set_ = {name: value for name, value in values.items() if value is not None}
    unset = {name: "" for name, value in values.items() if value is None}
    return {operator: part for operator, part in (("$set", set_), ("$unset", unset)) if part}


def _staged(first: Filter, conditions: Mapping[str, Any]) -> Pipeline:
    stages: list[Mapping[str, Any]] = [{"$match": dict(first)}]
    if conditions:
        stages.append({"$match": dict(conditions)})
    return stages
