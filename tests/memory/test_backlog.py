"""Turns wait for a store that is away, in order, and reach it once it is back."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest

from memory.backlog import Backlog
from memory.errors import CorruptRecord, StoreUnavailable
from memory.tasks import TaskSet
from memory.types import DIRECT, Audience, MemoryId, Session, SessionId, Turn, TurnId
from tests.clock import NOON, FakeClock

ANN, BOB = MemoryId("terminal:ann"), MemoryId("terminal:bob")
MARKER = "a secret that was said"
GROUP = Audience("group:1")


def turn(number: int, memory_id: MemoryId = ANN, audience: Audience = DIRECT) -> Turn:
    at = NOON + timedelta(seconds=number)
    return Turn(
        TurnId(f"{number:04}"), memory_id, SessionId("s"), audience, at, f"{MARKER} {number}", "yes", at
    )


def session(memory_id: MemoryId = ANN) -> Session:
    return Session(SessionId("s"), memory_id, DIRECT, started_at=NOON, due_at=NOON)


class Shelf:
    """Where the backlog writes to: away, broken, or there."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.tries = 0
        self.away = True
        self.refuses: set[TurnId] = set()

    async def __call__(self, turn: Turn, session: Session) -> None:
        self.tries += 1
        if self.away:
            raise StoreUnavailable("away")
        if turn.turn_id in self.refuses:
            raise CorruptRecord(turn.human)
        self.turns.append(turn)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def backlog(clock: FakeClock, shelf: Shelf) -> Backlog:
    return Backlog(clock, shelf)


async def test_turns_reach_the_store_in_order_once_it_is_back(
    clock: FakeClock, shelf: Shelf, backlog: Backlog
) -> None:
    for number in range(5):
        backlog.hold(turn(number), session())
    await clock.advance(100)
    assert len(backlog) == 5
    shelf.away = False
    await clock.advance(31)
    assert len(backlog) == 0
    assert shelf.turns == [turn(number) for number in range(5)]
    await backlog.aclose()


async def test_the_store_is_asked_ever_less_often_but_at_least_every_half_minute(
    clock: FakeClock, shelf: Shelf, backlog: Backlog
) -> None:
    backlog.hold(turn(0), session())
    await clock.advance(31)
    assert shelf.tries == 5  # after 1, 3, 7, 15 and 31 seconds
    await clock.advance(300)
    assert shelf.tries == 15
    shelf.away = False
    await backlog.aclose()


async def test_after_the_store_was_back_it_is_asked_soon_again(
    clock: FakeClock, shelf: Shelf, backlog: Backlog
) -> None:
    backlog.hold(turn(0), session())
    await clock.advance(100)
    shelf.away = False
    await clock.advance(31)
    backlog.hold(turn(1), session())
    await clock.advance(1)
    assert shelf.turns == [turn(0), turn(1)]
    await backlog.aclose()


async def test_it_knows_whose_turns_wait(backlog: Backlog, shelf: Shelf) -> None:
    backlog.hold(turn(0, ANN, GROUP), session())
    assert backlog.holds(ANN, GROUP)
    assert not backlog.holds(ANN, DIRECT)
    assert not backlog.holds(BOB, GROUP)
    shelf.away = False
    await backlog.aclose()


async def test_a_turn_that_can_never_be_stored_does_not_hold_up_the_others(
    clock: FakeClock, shelf: Shelf, backlog: Backlog, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.away, shelf.refuses = False, {turn(0).turn_id}
    backlog.hold(turn(0), session())
    backlog.hold(turn(1), session())
    await clock.advance(1)
    assert shelf.turns == [turn(1)]
    assert len(backlog) == 0
    assert "CorruptRecord" in caplog.text
    assert MARKER not in caplog.text
    await backlog.aclose()


async def test_what_is_forgotten_is_never_stored(clock: FakeClock, shelf: Shelf, backlog: Backlog) -> None:
    for number, memory_id in enumerate((ANN, BOB, ANN)):
        backlog.hold(turn(number, memory_id), session(memory_id))
    assert backlog.forget(ANN) == 2
    shelf.away = False
    await clock.advance(31)
    assert shelf.turns == [turn(1, BOB)]
    await backlog.aclose()


async def test_a_turn_that_comes_just_as_the_last_one_is_stored_does_not_stay_behind(
    clock: FakeClock,
) -> None:
    stored: list[Turn] = []
    written = asyncio.Event()

    async def write(turn: Turn, session: Session) -> None:
        stored.append(turn)
        written.set()

    backlog = Backlog(clock, write)

    async def hold_another() -> None:
        # Runs in the very round of the event loop in which the bringing task ends.
        await written.wait()
        backlog.hold(turn(1), session())

    tasks = TaskSet()
    tasks.spawn(hold_another(), name="other")
    backlog.hold(turn(0), session())
    await clock.advance(60)
    assert stored == [turn(0), turn(1)]
    await backlog.aclose()


async def test_flushing_by_hand_beside_the_task_stores_each_turn_and_keeps_the_order(
    clock: FakeClock, shelf: Shelf, backlog: Backlog
) -> None:
    for number in range(3):
        backlog.hold(turn(number), session())
    with pytest.raises(StoreUnavailable):
        await backlog.flush()
    assert len(backlog) == 3
    shelf.away = False
    await backlog.flush()
    await clock.advance(60)
    assert shelf.turns == [turn(0), turn(1), turn(2)]
    await backlog.aclose()


async def test_the_end_makes_one_last_try(shelf: Shelf, backlog: Backlog) -> None:
    backlog.hold(turn(0), session())
    shelf.away = False
    await backlog.aclose()
    assert shelf.turns == [turn(0)]


async def test_what_is_lost_at_the_end_is_said_in_numbers(
    shelf: Shelf, backlog: Backlog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    backlog.hold(turn(0), session())
    backlog.hold(turn(1), session())
    await backlog.aclose()
    assert "2 turns could not be stored" in caplog.text
    assert MARKER not in caplog.text
