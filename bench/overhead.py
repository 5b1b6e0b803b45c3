"""Overhead: what a turn costs beyond the model, against the floor of one insert on the same connection.

A turn here is everything from the message to the stored reply, with a model that answers at once. Every
round takes one turn of each side and one insert, in an order that changes each time, and each side is
compared with the insert of its round.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import AsyncMongoClient

from bench import peers, seedway
from bench.figures import Spread, ratios
from bench.history import fill
from bench.instant import REPLY, InstantModel, NoSink, SteppingClock
from bench.script import MESSAGES
from bench.table import Table
from bot.chat.engine import Engine
from bot.chat.prompt import Persona
from bot.config import Config
from bot.local.database import EmbeddedDatabase
from memory import DIRECT, Memory, MemoryId, MemorySettings, Turn, TurnId, time_ordered_id
from memory.stores.documents import turn_document
from memory.stores.mongo import MongoBackend, MongoStore
from memory.stores.queries import TURNS
from memory.types import SessionId

ROUNDS = 100
WARM_UP = 10
HISTORIES = (10, 100, 1_000, 10_000)
SEED_HISTORIES = (10, 100, 1_000)
PEER_HISTORIES = (10, 200, 600)
_PAUSES = {"back to back": 0.01, "over a second apart": 1.1}  # seconds between two turns

_DATABASE = "omoide"
_DEFAULTS = Config(data_dir=Path())

Side = Callable[[str], Awaitable[None]]
"""Takes a message and does everything that belongs to a turn."""


@dataclass(slots=True)
class Timed:
    """A side and the seconds of each of its turns."""

    name: str
    side: Side
    seconds: list[float] = field(default_factory=list)


def floor(collection: Any) -> Side:
    """Return the floor: one insert of a document as large as a stored turn, into a bare collection."""

    async def insert(text: str) -> None:
        now = datetime.now(UTC)
        turn = Turn(
            turn_id=TurnId(time_ordered_id(now)),
            memory_id=MemoryId("terminal:floor"),
            session_id=SessionId(time_ordered_id(now)),
            audience=DIRECT,
            at=now,
            human=text,
            reply=REPLY,
            replied_at=now,
            model="instant",
        )
        await collection.insert_one(turn_document(turn))

    return insert


def omoide(engine: Engine, memory_id: MemoryId, clock: SteppingClock, *, pause: float) -> Side:
    """Return a person who talks with Omoide; `pause` seconds go by before each message."""
    sink = NoSink()

    async def turn(text: str) -> None:
        clock.step(pause)
        await engine.answer((memory_id, DIRECT), text, name="Alex", at=clock.now(), sink=sink)

    return turn


@asynccontextmanager
async def talking(
    client: Any, clock: SteppingClock, *, owner: str
) -> AsyncIterator[tuple[Engine, MongoStore]]:
    """Wire an engine to memory over this connection, as the composition root does."""
    store = MongoStore(MongoBackend(client, _DATABASE), clock=clock)
    model = InstantModel()
    settings = MemorySettings(zone=ZoneInfo("UTC"), session_timeout=_DEFAULTS.session.timeout)
    async with Memory(store, model, clock, settings=settings, owner=owner) as memory:
        persona = Persona(_DEFAULTS.persona.name, _DEFAULTS.persona.prompt)
        tokens, role = _DEFAULTS.llm.max_tokens, _DEFAULTS.memory.role
        yield Engine(memory, model, persona, max_tokens=tokens, memory_role=role), store


async def omoide_sides(stack: AsyncExitStack, client: Any, driver: str) -> list[Timed]:
    """Return Omoide at every length of history, in quick succession and with a pause before each turn."""
    sides: list[Timed] = []
    for name, pause in _PAUSES.items():
        clock = SteppingClock()
        engine, store = await stack.enter_async_context(talking(client, clock, owner=f"{driver}-{pause}"))
        for turns in HISTORIES if driver == "motor" else HISTORIES[-1:]:
            memory_id = MemoryId(f"terminal:{driver}-{turns}-{pause}")
            await fill(store, client[_DATABASE][TURNS], memory_id, turns)
            title = f"Omoide ({driver}), {turns:,} turns before, {name}"
            sides.append(Timed(title, omoide(engine, memory_id, clock, pause=pause)))
    return sides


async def play(sides: Sequence[Timed], *, rounds: int) -> None:
    """Let all sides take their turns, round by round, in an order that changes each time."""
    for number in range(WARM_UP + rounds):
        text = MESSAGES[number % len(MESSAGES)]
        for timed in random.sample(sides, len(sides)):
            began = time.perf_counter()
            await timed.side(text)
            if number >= WARM_UP:
                timed.seconds.append(time.perf_counter() - began)


async def measure() -> list[Table]:
    """Measure all sides that can be had here, against the embedded database."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omoide-bench-")))
        uri = await stack.enter_async_context(EmbeddedDatabase(folder, progress=lambda _: None))
        motor: Any = AsyncIOMotorClient(uri, tz_aware=True)
        stack.callback(motor.close)
        pymongo: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(uri, tz_aware=True)
        stack.push_async_callback(pymongo.close)
        base = Timed("floor: one insert_one (motor)", floor(motor["floor"]["turns"]))
        sides = await omoide_sides(stack, motor, "motor")
        sides += await omoide_sides(stack, pymongo, "pymongo")
        for turns in SEED_HISTORIES:
            side = stack.enter_context(seedway.talking(uri, turns))
            sides.append(Timed(f"the seeds' way, {turns:,} turns before", side))
        found, missing = peers.sides(stack, uri, PEER_HISTORIES)
        sides += [Timed(name, side) for name, side in found]
        await play([base, *sides], rounds=ROUNDS)
    return [tabulate(base, sides, missing)]


def tabulate(base: Timed, sides: Sequence[Timed], missing: Sequence[str]) -> Table:
    """Make the table: the time of a turn, and how many inserts of the same round that is."""
    rows = [
        (
            timed.name,
            Spread.of(timed.seconds).text(1000),
            Spread.of(ratios(timed.seconds, base.seconds)).text(digits=1) + " x",
        )
        for timed in (base, *sides)
    ]
    rows += [(name, "not installed", "") for name in missing]
    notes = (
        f"{len(base.seconds)} rounds, each with one turn of every side in random order; median (quartiles). "
        "`x floor` compares with the insert of the same round.",
        "All sides write with journal=true to one embedded database. Omoide's sessions are warm.",
        "Over a second apart is how people talk: Omoide then looks at what other processes did.",
    )
    return Table("What a turn costs beyond the model", ("side", "ms a turn", "x floor"), tuple(rows), notes)


if __name__ == "__main__":
    print(asyncio.run(measure())[0].markdown())
