"""What the model is told of earlier sessions: read when a session starts, then frozen until it ends.

Frozen, because it stands in front of the window: one changed character would make the server read the
whole prompt anew. It can be rebuilt after a restart from the store alone, as of the session's start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from memory.days import yesterday
from memory.ports import Store
from memory.tokens import TokenEstimator
from memory.types import DIRECT, Session, SessionState, Turn

_EXCERPT_TURNS = 4


@dataclass(frozen=True, slots=True)
class BlockItem:
    """One earlier session: its summary, or its last words where there is no summary yet."""

    kind: Literal["summary", "excerpt"]
    started_at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """What is shown of earlier sessions, oldest first; `pinned` are facts that always hold."""

    items: tuple[BlockItem, ...] = ()
    pinned: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.items or self.pinned)


@dataclass(frozen=True, slots=True)
class BlockPolicy:
    """How many sessions back the block reaches beside yesterday, and how many tokens it may take."""

    recent_sessions: int = 3
    block_tokens: int = 1000


async def load_block(
    store: Store, session: Session, *, zone: ZoneInfo, policy: BlockPolicy, estimator: TokenEstimator
) -> MemoryBlock:
    """Read the block for a session: the last sessions before it and all of the person's yesterday.

    Only what this session's audience may see. Raises StoreFault.
    """
    earlier = await _earlier_sessions(store, session, zone=zone, policy=policy)
    items: list[BlockItem] = []
    room = policy.block_tokens
    for past in reversed(earlier):
        item = await _item(store, past)
        if item is None:
            continue
        item = _shortened(item, tokens=room, estimator=estimator)
        if item is None:
            break
        room -= estimator.count(item.text)
        items.append(item)
    return MemoryBlock(items=tuple(reversed(items)))


async def _earlier_sessions(
    store: Store, session: Session, *, zone: ZoneInfo, policy: BlockPolicy
) -> list[Session]:
    audience = None if session.audience == DIRECT else session.audience
    memory_id, start = session.memory_id, session.started_at
    recent = await store.sessions(memory_id, audience=audience, until=start, newest=policy.recent_sessions)
    day_start, day_end = yesterday(start, zone)
    # A session of yesterday may have begun the evening before.
    around = await store.sessions(
        memory_id, audience=audience, since=day_start - timedelta(days=1), until=min(day_end, start)
    )
    of_yesterday = [past for past in around if (past.ended_at or past.started_at) >= day_start]
    found = {past.session_id: past for past in (*recent, *of_yesterday)}
    found.pop(session.session_id, None)
    return sorted(found.values(), key=lambda past: (past.started_at, past.session_id))


async def _item(store: Store, past: Session) -> BlockItem | None:
    if past.summary:
        return BlockItem("summary", past.started_at, past.summary)
    if past.state is SessionState.CLOSED:
        return None
    # Ended, and the summary is not there yet (or the model is down): better its last words than nothing.
    turns = await store.turns(past.memory_id, session=past, newest=_EXCERPT_TURNS)
    return BlockItem("excerpt", past.started_at, excerpt(turns)) if turns else None


def excerpt(turns: tuple[Turn, ...]) -> str:
    """Write turns down as a short transcript."""
    lines: list[str] = []
    for turn in turns:
        lines.append(f"They: {turn.human}")
        if turn.reply:
            lines.append(f"You: {turn.reply}")
    return "\n".join(lines)


def _shortened(item: BlockItem, *, tokens: int, estimator: TokenEstimator) -> BlockItem | None:
    """Cut the item's text to this many tokens; None when too little would be left to mean something."""
    needed = estimator.count(item.text)
    if needed <= tokens:
        return item
    if tokens < 40:
        return None
    text = item.text
    while needed > tokens:
        # More than once where the beginning weighs more than the rest: scripts differ.
        text = text[: len(text) * tokens // needed - 1]
        needed = estimator.count(text + "…")
    return replace(item, text=text.rstrip() + "…")
