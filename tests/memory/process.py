"""One process as the tests see it: sessions, workers and folding over a store that others may share.

Two of these over one store are two processes on one database; a second one after the first has stopped is
a restart. Nothing here is faked but the model and the time.
"""

from __future__ import annotations

import itertools
from datetime import timedelta
from zoneinfo import ZoneInfo

from memory.blocks import BlockPolicy
from memory.closing import Closer, ClosingPolicy, Zones
from memory.conversation import Conversation
from memory.folding import Folder
from memory.ports import Completer, Store
from memory.sessions import Key, Sessions
from memory.summarise import Summariser
from memory.tokens import TokenEstimator
from memory.types import DIRECT, MemoryId, Session, Turn, TurnId, time_ordered_id
from tests.clock import FakeClock, settle
from tests.memory.scripted import ScriptedCompleter

ANN = MemoryId("terminal:ann")
KEY: Key = (ANN, DIRECT)
TIMEOUT = 1800.0
UTC_ZONE = ZoneInfo("UTC")

_names = itertools.count()


class Process:
    """Sessions and a closer, as the composition root would build them."""

    def __init__(
        self,
        store: Store,
        clock: FakeClock,
        completer: Completer | None = None,
        *,
        policy: ClosingPolicy | None = None,
        most_loaded: int = 512,
        timeout: float = TIMEOUT,
    ) -> None:
        self.store = store
        self.clock = clock
        self.estimator = TokenEstimator()
        self.summariser = Summariser(
            completer or ScriptedCompleter(), self.estimator, context_tokens=8192, summary_tokens=100
        )
        self.zones = Zones(store, UTC_ZONE)
        self.closer = Closer(
            store,
            self.summariser,
            clock,
            zones=self.zones,
            policy=policy or ClosingPolicy(),
            owner=f"process-{next(_names)}",
        )
        self.folder = Folder(store, self.summariser)
        self.sessions = Sessions(
            store,
            self.closer,
            clock,
            zones=self.zones,
            estimator=self.estimator,
            timeout=timeout,
            block=BlockPolicy(),
            most_loaded=most_loaded,
        )

    async def start(self) -> Process:
        """Do what a start-up does: workers, the sweep, and waiting for the sessions that are open."""
        self.closer.start()
        await self.sessions.sweep()
        await self.sessions.wake()
        return self

    async def say(self, text: str, *, key: Key = KEY) -> Turn:
        """Make a whole turn."""
        return await self.finish(await self.sessions.begin(key), text)

    async def finish(self, conversation: Conversation, text: str) -> Turn:
        """End a turn that has begun."""
        return await self.sessions.finish(conversation, self.turn(conversation, text))

    def turn(self, conversation: Conversation, text: str) -> Turn:
        """Make the turn that a conversation would get now."""
        session = conversation.session
        at = max(self.clock.now(), session.started_at)
        if conversation.entries:
            at = max(at, conversation.entries[-1].turn.at + timedelta(milliseconds=1))
        return Turn(
            TurnId(time_ordered_id(at)),
            session.memory_id,
            session.session_id,
            session.audience,
            at=at,
            human=text,
            reply=f"You said: {text}",
            replied_at=at,
        )

    async def stop(self) -> None:
        """End in order."""
        await self.sessions.aclose()
        await self.folder.aclose()
        await self.closer.aclose()


async def heal(store: Store, clock: FakeClock, completer: Completer | None = None) -> None:
    """Start a fresh process and let it put in order what the ones before left."""
    process = await Process(store, clock, completer).start()
    for _ in range(4):
        await clock.advance(2 * TIMEOUT)
        await process.sessions.sweep()
        await settle()
    await process.stop()


async def everything(store: Store, memory_id: MemoryId = ANN) -> tuple[tuple[Turn, ...], tuple[Session, ...]]:
    """Return all turns and sessions of a person."""
    return await store.turns(memory_id), await store.sessions(memory_id)


async def texts(store: Store, memory_id: MemoryId = ANN) -> list[str]:
    """Return what the person said, in the order of the store."""
    return [turn.human for turn in await store.turns(memory_id)]


async def check_laws(store: Store, memory_id: MemoryId = ANN) -> None:
    """Check what must hold of everything stored, at any time.

    Each turn has a session that is not younger than it, and no two open sessions share an audience.
    """
    turns, sessions = await everything(store, memory_id)
    by_id = {session.session_id: session for session in sessions}
    for turn in turns:
        assert turn.session_id in by_id, f"{turn.human!r} has no session"
        assert by_id[turn.session_id].started_at <= turn.at, f"{turn.human!r} is older than its session"
        assert by_id[turn.session_id].audience == turn.audience
    opened = [session.audience for session in sessions if session.state == "open"]
    assert len(opened) == len(set(opened))
