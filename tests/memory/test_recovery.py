"""The process dies at any of its writes, before or after it lands: the next one puts everything in order."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine
from dataclasses import replace

import pytest

from memory.errors import CompletionFault, StoreUnavailable
from memory.stores.inmemory import InMemoryStore
from memory.types import SessionState
from tests.clock import FakeClock
from tests.memory.flaky import FlakyStore
from tests.memory.process import KEY, TIMEOUT, UTC_ZONE, Process, check_laws, everything, heal, texts
from tests.memory.scripted import ScriptedCompleter

MOST_WRITES = 40


class Life:
    """A process whose life meets every kind of write, on a store that may die in the middle of it."""

    def __init__(self) -> None:
        self.base = InMemoryStore()
        self.store = FlakyStore(self.base)
        self.clock = FakeClock()
        self.model = ScriptedCompleter()
        self.said: list[str] = []
        self.acknowledged: list[str] = []
        self.process = Process(self.store, self.clock, self.model)

    async def live(self) -> None:
        """Talk, let a session run out, fail at a summary, fold, end one by hand, leave one open."""
        self.process.closer.start()
        await self._say(3)
        await self.clock.advance(TIMEOUT * 0.6)
        await self._say(1)
        self.model.enqueue(CompletionFault("the model is down"))
        await self.clock.advance(TIMEOUT)
        await self._say(2)
        await self._fold()
        await self._say(1)
        await self._store_may_die(self.process.sessions.sweep())
        await self._store_may_die(self.process.sessions.end(KEY))
        await self._say(2)
        await self.clock.advance(10)

    @staticmethod
    async def _store_may_die(work: Coroutine[None, None, object]) -> None:
        with contextlib.suppress(StoreUnavailable):
            await work

    async def _say(self, times: int) -> None:
        for _ in range(times):
            text = f"turn {len(self.said)};"
            self.said.append(text)
            await self.process.say(text)
            if not len(self.process.sessions.backlog):
                self.acknowledged.append(text)
            await self.clock.advance(2)

    async def _fold(self) -> None:
        conversation = await self.process.sessions.begin(KEY)
        going, staying = conversation.turns[:1], conversation.turns[1:]
        self.process.folder.fold(conversation, through=going[-1].turn_id, zone=UTC_ZONE)
        await self.clock.advance(1)
        window_from = conversation.evict(len(going), coming=staying[-1].turn_id)
        await self._store_may_die(
            self.store.set_window(conversation.session, window_from=window_from, running=conversation.ready)
        )
        conversation.session = replace(conversation.session, window_from=window_from)
        self.process.sessions.abandon(conversation)


async def check_order(life: Life, expected: list[str]) -> None:
    stored = await texts(life.base)
    assert [text for text in stored if text in expected] == expected, "acknowledged, and there in order"
    assert len(stored) == len(set(stored)), "nothing is there twice"
    await check_laws(life.base)
    turns, sessions = await everything(life.base)
    with_turns = {turn.session_id for turn in turns}
    for session in sessions:
        assert session.state is SessionState.CLOSED
        assert (session.summary is not None) == (session.session_id in with_turns)
        assert (session.due_at, session.owner) == (None, None)
    assert all(turn.human in life.model.read for turn in turns)


async def test_the_life_meets_every_write_that_a_talk_makes() -> None:
    life = Life()
    await life.live()
    await life.process.stop()
    kinds = {"open_session", "add_turn", "touch", "set_window", "claim", "finish", "postpone"}
    assert set(life.store.writes) == kinds
    assert len(life.store.writes) < MOST_WRITES
    assert life.acknowledged == life.said
    await heal(life.base, life.clock, life.model)
    await check_order(life, life.said)


@pytest.mark.parametrize("lands", [False, True], ids=["before it lands", "after it has landed"])
@pytest.mark.parametrize("write", range(1, MOST_WRITES))
async def test_dead_at_any_write_and_begun_anew(write: int, lands: bool) -> None:
    life = Life()
    life.store.die(at_write=write, lands=lands)
    await life.live()
    await life.process.stop()
    life.clock.step(7)
    await heal(life.base, life.clock, life.model)
    await check_order(life, life.acknowledged)


@pytest.mark.parametrize("lands", [False, True], ids=["before it lands", "after it has landed"])
@pytest.mark.parametrize("write", range(1, MOST_WRITES))
async def test_any_single_write_fails_and_the_process_lives_on(write: int, lands: bool) -> None:
    life = Life()
    life.store.die(at_write=write, lands=lands, for_good=False)
    await life.live()
    await life.clock.advance(60)
    assert await texts(life.base) == life.said
    await life.process.stop()
    await heal(life.base, life.clock, life.model)
    await check_order(life, life.said)


@pytest.mark.parametrize("write", range(1, MOST_WRITES, 3))
async def test_dead_twice_in_a_row(write: int) -> None:
    life = Life()
    life.store.die(at_write=write, lands=True)
    await life.live()
    await life.process.stop()
    second = FlakyStore(life.base)
    second.die(at_write=write % 5 + 1, lands=write % 2 == 0)
    process = Process(second, life.clock, life.model)
    process.closer.start()
    with contextlib.suppress(StoreUnavailable):
        await process.sessions.sweep()
        await process.sessions.wake()
    await life.clock.advance(3 * TIMEOUT)
    await process.stop()
    await heal(life.base, life.clock, life.model)
    await check_order(life, life.acknowledged)
