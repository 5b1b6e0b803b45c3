"""Memory: the one object that a companion talks to.

A turn is `begin` (what the model is to be shown), then `finish` (what came of it). Everything else happens
by itself: sessions end when their time has come, their summaries are made, the window keeps its limit, and
a store that is away holds nobody up.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import Self
from zoneinfo import ZoneInfo

from memory.archive import Archive
from memory.blocks import BlockPolicy, MemoryBlock
from memory.closing import Closer, ClosingPolicy, Zones
from memory.conversation import Conversation, size_of
from memory.errors import StoreFault, StoreUnavailable
from memory.eviction import Evictor
from memory.folding import Folder
from memory.forgetting import Erased, Plan, Scope
from memory.ports import Clock, Completer, PromptMessage, Store
from memory.schedule import Schedule
from memory.sessions import Key, Sessions
from memory.summarise import Summariser
from memory.tasks import TaskSet
from memory.tokens import Measure, TokenEstimator, measure
from memory.types import Audience, MemoryId, Outcome, SessionId, Turn, TurnId, Usage, time_ordered_id
from memory.window import WindowPolicy

log = logging.getLogger(__name__)

_LEAST_ROOM = 64  # tokens: below this there is no conversation


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """How memory behaves; times in seconds, sizes in tokens."""

    zone: ZoneInfo
    session_timeout: float = 1800.0
    context_tokens: int = 8192
    summary_tokens: int = 250
    window: WindowPolicy = field(default_factory=WindowPolicy)
    block: BlockPolicy = field(default_factory=BlockPolicy)
    closing: ClosingPolicy = field(default_factory=ClosingPolicy)
    grace: float = 5.0  # for summaries that are under way at the end


@dataclass(frozen=True, slots=True)
class Opening:
    """A turn that has begun: the message, and what the model is to be shown of the past."""

    turn_id: TurnId
    memory_id: MemoryId
    audience: Audience
    session_id: SessionId
    at: datetime
    human: str
    zone: ZoneInfo
    block: MemoryBlock
    running: str
    turns: tuple[Turn, ...]
    overhead: int  # tokens that prompt and reply take beside all this


class Memory:
    """Everything a companion keeps about the people it talks to; an async context manager."""

    def __init__(
        self,
        store: Store,
        completer: Completer,
        clock: Clock,
        *,
        settings: MemorySettings,
        owner: str,
    ) -> None:
        """Take a store, a model for summaries, and a name that no other process has (for leases)."""
        self.window = settings.window  # may be changed at any time; holds from the next turn on
        self._settings = settings
        self._store = store
        self._clock = clock
        self._context_tokens = settings.context_tokens
        self._estimator = TokenEstimator()
        summariser = Summariser(
            completer,
            self._estimator,
            context_tokens=settings.context_tokens,
            summary_tokens=settings.summary_tokens,
        )
        zones = Zones(store, settings.zone)
        self._closer = Closer(store, summariser, clock, zones=zones, policy=settings.closing, owner=owner)
        self._folder = Folder(store, summariser)
        self._evictor = Evictor(store, self._folder, self._estimator)
        self._sessions = Sessions(
            store,
            self._closer,
            clock,
            zones=zones,
            estimator=self._estimator,
            timeout=settings.session_timeout,
            block=settings.block,
        )
        self._archive = Archive(store, clock, erased=self._sessions.invalidate)
        self._schedule = Schedule({"sweep": ("* * * * *", self._sessions.sweep)}, zone=settings.zone)
        self._starting = TaskSet()
        self._under_way: dict[TurnId, Conversation] = {}

    # Lifetime

    async def __aenter__(self) -> Self:
        """Prepare the store and take up what earlier processes left; a store that is away is waited for.

        Raises StoreFault for trouble that waiting does not mend.
        """
        self._closer.start()
        try:
            await self._come_up()
        except StoreUnavailable as fault:
            log.warning("memory starts without its store, which is away: %s", fault)
            self._starting.spawn(self._come_up_later(), name="memory-start")
        except BaseException:
            await self.aclose(grace=0)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose(grace=self._settings.grace)

    async def _come_up(self) -> None:
        await self._store.prepare()
        await self._sessions.sweep()
        await self._sessions.wake()
        self._schedule.start()

    async def _come_up_later(self) -> None:
        wait = 1.0
        while True:
            await self._clock.sleep(wait)
            try:
                await self._come_up()
            except StoreUnavailable:
                wait = min(wait * 2, 30.0)
            else:
                log.warning("memory's store is there now")
                return

    async def aclose(self, *, grace: float) -> None:
        """Stop; summaries that are under way get `grace` seconds. Open sessions stay open."""
        async with AsyncExitStack() as stack:  # each step is taken, whatever becomes of the others
            stack.push_async_callback(self._closer.aclose)
            stack.push_async_callback(self._closer.drain, grace=grace)
            stack.push_async_callback(self._folder.aclose)
            stack.push_async_callback(self._sessions.aclose)
            stack.push_async_callback(self._schedule.aclose)
            stack.push_async_callback(self._starting.aclose)

    # A turn

    async def begin(
        self, memory_id: MemoryId, audience: Audience, *, human: str, at: datetime, overhead: int
    ) -> Opening:
        """Begin a turn: find or open its session, make room in its window, and say what to show.

        `overhead` is what the prompt and the reply take beside memory, in tokens. One turn at a time per
        memory id and audience. Follow up with `finish` or `abandon`.
        """
        conversation = await self._sessions.begin((memory_id, audience))
        at = conversation.next_at(at)
        turn_id = TurnId(time_ordered_id(at))
        opening = Opening(
            turn_id=turn_id,
            memory_id=memory_id,
            audience=audience,
            session_id=conversation.session.session_id,
            at=at,
            human=human,
            zone=conversation.zone or self._settings.zone,
            block=conversation.block,
            running="",
            turns=(),
            overhead=overhead,
        )
        self._under_way[turn_id] = conversation
        try:
            return await self._fitted(opening, conversation)
        except BaseException:
            self.abandon(opening)  # nobody else can: they have not got it yet
            raise

    async def _fitted(self, opening: Opening, conversation: Conversation) -> Opening:
        await self._evictor.make_room(
            conversation,
            coming=size_of(opening.human),
            coming_id=opening.turn_id,
            policy=self.window,
            room=self._room(conversation, opening.overhead),
            zone=opening.zone,
        )
        return self._shown(opening, conversation)

    def _shown(self, opening: Opening, conversation: Conversation) -> Opening:
        running = conversation.session.running
        return replace(opening, turns=conversation.turns, running=running.text if running else "")

    def _room(self, conversation: Conversation, overhead: int) -> int:
        """Return what the model can take of window and message, in tokens."""
        fixed = Measure()
        for item in conversation.block.items:
            fixed += measure(item.text, messages=1)
        if (running := conversation.ready or conversation.session.running) is not None:
            fixed += measure(running.text, messages=1)
        return max(self._context_tokens - overhead - self._estimator.tokens(fixed), _LEAST_ROOM)

    async def shrink(self, opening: Opening, *, limit: int | None) -> Opening | None:
        """Show less, after the model said that the prompt was too long; None when nothing can go.

        `limit` is the model's context in tokens where it said so; it holds from now on. At least half of
        what is shown goes.
        """
        conversation = self._under_way[opening.turn_id]
        if limit is not None and limit < self._context_tokens:
            log.warning("the model takes %d tokens, not %d", limit, self._context_tokens)
            self._context_tokens = limit
        if not conversation.entries:
            return None
        before = len(conversation.entries)
        fitted = await self._fitted(opening, conversation)
        least = (before + 1) // 2
        gone = before - len(conversation.entries)
        if gone < least:
            await self._evictor.evict(conversation, least - gone, coming_id=opening.turn_id)
        return self._shown(fitted, conversation)

    async def finish(
        self,
        opening: Opening,
        *,
        reply: str,
        outcome: Outcome = Outcome.ANSWERED,
        model: str = "",
        usage: Usage | None = None,
    ) -> Turn:
        """Store the turn and move its session's deadline; returns the turn as stored."""
        conversation = self._under_way.pop(opening.turn_id)
        turn = Turn(
            turn_id=opening.turn_id,
            memory_id=opening.memory_id,
            session_id=conversation.session.session_id,
            audience=opening.audience,
            at=opening.at,
            human=opening.human,
            reply=reply,
            replied_at=max(self._clock.now(), opening.at),
            outcome=outcome,
            model=model,
            usage=usage,
        )
        stored = await self._sessions.finish(conversation, turn)
        room = self._room(conversation, opening.overhead)
        self._evictor.look_ahead(conversation, policy=self.window, room=room, zone=opening.zone)
        return stored

    def abandon(self, opening: Opening) -> None:
        """End a turn of which nothing is to be kept."""
        self._sessions.abandon(self._under_way.pop(opening.turn_id))

    def learn(self, prompt: Sequence[PromptMessage], *, counted: int) -> None:
        """Take in how many tokens the server counted for a prompt."""
        size = Measure()
        for message in prompt:
            size += measure(message.content, messages=1)
        self._estimator.learn(size, counted)

    def count(self, text: str) -> int:
        """Estimate the tokens of a text, for the model in use."""
        return self._estimator.count(text)

    # At a person's wish

    @property
    def archive(self) -> Archive:
        """What is stored: overview, search, export, time zone."""
        return self._archive

    def waiting(self, memory_id: MemoryId) -> int:
        """Count a person's turns that wait for a store that is away."""
        return self._sessions.backlog.count(memory_id)

    async def end_session(self, memory_id: MemoryId, audience: Audience) -> bool:
        """End the session of this conversation now; False if none is open. Raises StoreFault."""
        key: Key = (memory_id, audience)
        return await self._sessions.end(key)

    async def plan_forgetting(self, memory_id: MemoryId, audience: Audience, scope: Scope) -> Plan | None:
        """Say in numbers what erasing would take; None when there is nothing. Raises StoreFault."""
        await self._sessions.backlog.flush()
        return await self._archive.plan_forgetting(memory_id, audience, scope)

    async def forget(self, plan: Plan) -> Erased:
        """Erase, check that nothing is left, and have summaries made anew. Raises StoreFault."""
        await self._sessions.backlog.flush()
        erased = await self._archive.forget(plan)
        try:
            await self._sessions.sweep()
        except StoreFault as fault:
            # What was to go is gone; the schedule sweeps again.
            log.warning("summaries are made anew later, the store failed: %s", fault)
        return erased

    async def sweep(self) -> None:
        """End what is due, of anyone; the schedule does so every minute. Raises StoreFault."""
        await self._sessions.sweep()
