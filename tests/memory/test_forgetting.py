"""What is forgotten is gone from everywhere, whatever happens meanwhile: a crash, a reply, a summary, a peer.

The model of these tests repeats all that it was shown, so that whatever was made of an erased turn can be
told by its words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from memory.errors import StoreUnavailable
from memory.forgetting import Erased, Forgetting, Plan, Scope
from memory.ports import Completion, PromptMessage
from memory.sessions import Key
from memory.stores.inmemory import InMemoryStore
from memory.types import DIRECT, Audience, Holdings, MemoryId, Person, RunningSummary, SessionState
from tests.clock import FakeClock, settle
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN, KEY, TIMEOUT, UTC_ZONE, Process, check_laws, everything, heal, texts
from tests.memory.scripted import Held

BOB = MemoryId("terminal:bob")
BOBS: Key = (BOB, DIRECT)
CLUB: Key = (ANN, Audience("club"))
SECRET = "seventeen"
SCOPES: tuple[Scope, ...] = ("last", "session", "everything")


class Parrot:
    """A model whose every summary is what it was shown; `held` holds the next one back."""

    def __init__(self) -> None:
        self.held: Held | None = None

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        said = prompt[-1].content
        if self.held is not None:
            held, self.held = self.held, None
            await held.wait()
        return Completion(said, "parrot")

    def hold(self) -> Held:
        self.held = Held()
        return self.held


class World:
    """A database with two people in it, and the process in which one of them wants something forgotten."""

    def __init__(self) -> None:
        self.base = InMemoryStore()
        self.store = FlakyStore(self.base)
        self.clock = FakeClock()
        self.model = Parrot()
        self.process = Process(self.store, self.clock, self.model)
        self.forgetting = Forgetting(self.store, self.clock, erased=self.process.sessions.invalidate)

    async def start(self) -> World:
        """Let a session end, then say the secret in the next; Bob talks too."""
        await self.process.start()
        await self.base.put_person(Person(ANN, "Asia/Tokyo"))
        await self.process.say("long ago;")
        await self.clock.advance(2 * TIMEOUT)
        for text in ("one;", "two;", f"{SECRET};"):
            await self.process.say(text)
            await self.clock.advance(2)
        await self.process.say("bob one;", key=BOBS)
        await self.process.say("in the club;", key=CLUB)
        await self.clock.advance(2)
        return self

    async def plan(self, scope: Scope, key: Key = KEY) -> Plan:
        plan = await self.forgetting.plan(*key, scope)
        assert plan is not None
        return plan

    async def forget(self, scope: Scope, key: Key = KEY) -> Erased:
        plan = await self.plan(scope, key)
        erased = await self.forgetting.carry_out(plan)
        assert erased.gone == plan.holdings, "what was said to go is what went"
        assert not erased.left
        return erased

    async def shown(self, key: Key = KEY, *, process: Process | None = None) -> str:
        """Return all of the past that the next prompt would show."""
        process = process or self.process
        conversation = await process.sessions.begin(key)
        process.sessions.abandon(conversation)
        return f"{conversation.turns} {conversation.block} {conversation.session.running}"

    async def of_bob(self) -> object:
        return await everything(self.base, BOB), await self.base.person(BOB)

    async def check_gone(self) -> None:
        """Nothing stored knows the secret, nor is it shown, now or after everybody has done their work."""
        for _ in range(2):
            assert SECRET not in str(await everything(self.base))
            await check_laws(self.base)
            assert SECRET not in await self.shown()
            assert SECRET not in await self.shown(CLUB)
            await self.clock.advance(3 * TIMEOUT)
            await self.process.sessions.sweep()
            await settle()
        assert SECRET not in str(await everything(self.base))
        await check_laws(self.base)


@pytest.fixture
async def world() -> World:
    return await World().start()


async def kept(world: World) -> list[str]:
    return [turn.human for turn in await world.base.turns(ANN) if turn.audience == DIRECT]


LEFT = {"last": ["long ago;", "one;", "two;"], "session": ["long ago;"], "everything": []}


# The counts, and what is left


@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended"])
@pytest.mark.parametrize("scope", SCOPES)
async def test_what_was_counted_goes_and_nothing_else(world: World, scope: Scope, ended: bool) -> None:
    if ended:
        await world.clock.advance(2 * TIMEOUT)
        assert SECRET in str(await everything(world.base)), "in the summary too"
    before = await world.of_bob()
    await world.forget(scope)
    assert await kept(world) == LEFT[scope]
    assert await world.of_bob() == before
    await world.check_gone()


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_running_summary_is_counted_and_goes(world: World, scope: Scope) -> None:
    conversation = await world.process.sessions.begin(KEY)
    running = RunningSummary(f"They said {SECRET}.", conversation.turns[-1].turn_id)
    await world.base.set_window(conversation.session, window_from=None, running=running)
    conversation.session = replace(conversation.session, running=running)
    world.process.sessions.abandon(conversation)
    await world.forget(scope)
    await world.check_gone()


async def test_the_only_turn_of_a_session_goes_and_one_that_had_ended_goes_with_it(world: World) -> None:
    await world.process.sessions.end(KEY)
    await settle()
    await world.process.say(f"{SECRET} again;")
    await world.process.sessions.end(KEY)
    await settle()
    sessions = len((await everything(world.base))[1])
    await world.forget("last")
    assert len((await everything(world.base))[1]) == sessions - 1
    await world.forget("last")
    assert await kept(world) == LEFT["last"]
    await world.check_gone()


async def test_everything_leaves_nothing_in_the_store_the_backlog_or_at_hand(world: World) -> None:
    world.store.fail("add_turn", StoreUnavailable("away"))
    await world.process.say(f"{SECRET} late;")
    await world.process.say("bob two;", key=BOBS)
    world.store.fail("add_turn", None)
    held = len(world.process.sessions)
    await world.forget("everything")
    assert await world.base.holdings(ANN) == Holdings()
    assert [session async for session in world.base.live() if session.memory_id == ANN] == []
    assert len(world.process.sessions.backlog) == 1, "Bob's"
    assert len(world.process.sessions) == held - 2, "hers in both audiences"
    await world.clock.advance(60)
    assert await world.base.holdings(ANN) == Holdings()
    assert await texts(world.base, BOB) == ["bob one;", "bob two;"]


async def test_nothing_can_be_forgotten_of_a_stranger(world: World) -> None:
    for scope in SCOPES:
        assert await world.forgetting.plan(MemoryId("terminal:nobody"), DIRECT, scope) is None


async def test_forgetting_in_one_audience_leaves_the_other(world: World) -> None:
    await world.forget("session", CLUB)
    assert await texts(world.base) == ["long ago;", "one;", "two;", f"{SECRET};"]


# Dead in the middle


@pytest.mark.parametrize("lands", [False, True], ids=["before it lands", "after it has landed"])
@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended"])
@pytest.mark.parametrize("write", range(1, 7))
@pytest.mark.parametrize("scope", SCOPES)
async def test_dead_at_any_write_and_carried_out_again(
    scope: Scope, write: int, ended: bool, lands: bool
) -> None:
    world = await World().start()
    if ended:
        await world.clock.advance(2 * TIMEOUT)
    plan, others = await world.plan(scope), await world.of_bob()
    world.store.die(at_write=len(world.store.writes) + write, lands=lands)
    try:
        await world.forgetting.carry_out(plan)
    except StoreUnavailable:
        await check_laws(world.base)
        await heal(world.base, world.clock, world.model)  # another process does what it finds to do
        await check_laws(world.base)
        if SECRET not in str(await world.base.turns(ANN)):
            assert SECRET not in str(await world.base.sessions(ANN))
    else:
        assert write > 1, "there was nothing to die at"
    world.store.die(at_write=-1, lands=False)
    world.store.away = False
    erased = await Forgetting(world.base, world.clock, erased=world.process.sessions.invalidate).carry_out(
        plan
    )
    assert not erased.left
    assert await kept(world) == LEFT[scope]
    if ended or scope == "everything":
        assert (await everything(world.base, BOB))[0] == others[0][0]  # type: ignore[index] # its turns
    await world.check_gone()


# While something is under way


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_summary_under_way_does_not_land(world: World, scope: Scope) -> None:
    held = world.model.hold()
    await world.process.sessions.end(KEY)
    await held.reached.wait()
    await world.forget(scope)
    held.release()
    await settle()
    await world.check_gone()
    if scope == "last":
        summary = [session.summary for session in (await everything(world.base))[1]][1]
        assert summary is not None
        assert "two;" in summary


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_running_summary_under_way_does_not_land(world: World, scope: Scope) -> None:
    conversation = await world.process.sessions.begin(KEY)
    held = world.model.hold()
    through = conversation.turns[-1].turn_id
    world.process.folder.fold(conversation, through=through, zone=UTC_ZONE)
    await held.reached.wait()
    world.process.sessions.abandon(conversation)
    await world.forget(scope)
    held.release()
    await settle()
    assert conversation.ready is None
    await world.check_gone()


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_running_summary_that_was_ready_is_not_used(world: World, scope: Scope) -> None:
    conversation = await world.process.sessions.begin(KEY)
    world.process.folder.fold(conversation, through=conversation.turns[-1].turn_id, zone=UTC_ZONE)
    await settle()
    assert conversation.ready is not None
    world.process.sessions.abandon(conversation)
    await world.forget(scope)
    again = await world.process.sessions.begin(KEY)
    assert again.ready is None
    world.process.sessions.abandon(again)
    await world.check_gone()


@pytest.mark.parametrize("key", [KEY, CLUB], ids=["same audience", "another audience"])
@pytest.mark.parametrize("scope", SCOPES)
async def test_a_turn_under_way_is_stored_unless_its_session_was_erased(
    world: World, scope: Scope, key: Key
) -> None:
    conversation = await world.process.sessions.begin(key)
    turn = world.process.turn(conversation, "under way;")
    await world.forget(scope)
    await world.process.sessions.finish(conversation, turn)
    await check_laws(world.base)
    stored = "under way;" in await texts(world.base)
    assert stored == (scope == "last" or (scope == "session" and key == CLUB))
    shown = await world.shown(key)
    assert ("under way;" in shown) == stored
    assert SECRET not in shown
    if scope == "everything":
        assert not (await world.base.holdings(ANN)).turns
    await world.check_gone()


async def test_a_turn_under_way_in_a_session_that_loses_its_only_turn_is_stored(world: World) -> None:
    conversation = await world.process.sessions.begin(CLUB)
    turn = world.process.turn(conversation, "under way;")
    await world.forget("last", CLUB)
    await world.process.sessions.finish(conversation, turn)
    assert "under way;" in await texts(world.base)
    assert "in the club;" not in await texts(world.base)
    await check_laws(world.base)


async def test_after_a_turn_under_way_the_running_summary_of_what_was_erased_is_not_shown(
    world: World,
) -> None:
    conversation = await world.process.sessions.begin(KEY)
    running = RunningSummary(f"They said {SECRET}.", conversation.turns[-1].turn_id)
    await world.base.set_window(conversation.session, window_from=None, running=running)
    conversation.session = replace(conversation.session, running=running)
    turn = world.process.turn(conversation, "under way;")
    await world.forget("last")
    await world.process.sessions.finish(conversation, turn)
    assert SECRET not in await world.shown()


@pytest.mark.parametrize("call", ["add_turn", "session", "touch", "open_session"])
@pytest.mark.parametrize("scope", SCOPES)
async def test_a_turn_that_is_being_stored_leaves_nothing_without_a_session(
    world: World, scope: Scope, call: str
) -> None:
    await world.clock.advance(10)
    conversation = await world.process.sessions.begin(KEY)
    turn = world.process.turn(conversation, f"{SECRET} under way;")
    if call == "open_session":
        await Process(world.base, world.clock, world.model).sessions.end(KEY)  # so another is opened
    await world.clock.advance(10)
    gate = world.store.hold(call)
    plan = await world.plan(scope)
    finishing = asyncio.ensure_future(world.process.sessions.finish(conversation, turn))
    await gate.reached.wait()
    erased = await world.forgetting.carry_out(plan)
    assert not erased.left
    gate.passed.set()
    await finishing
    await check_laws(world.base)
    if scope == "everything":
        assert await world.base.holdings(ANN) == Holdings()
    elif call != "open_session":
        assert await kept(world) == [
            *LEFT[scope],
            *([f"{SECRET} under way;"] if scope == "last" else []),
        ]
    await settle()


@pytest.mark.parametrize("call", ["turns", "sessions"])
async def test_a_conversation_that_is_being_read_does_not_show_what_goes_meanwhile(
    world: World, call: str
) -> None:
    process = await Process(world.store, world.clock, world.model).start()
    forgetting = Forgetting(world.base, world.clock, erased=process.sessions.invalidate)
    plan = await world.plan("last")
    gate = world.store.hold(call, when="after")
    beginning = asyncio.ensure_future(process.sessions.begin(KEY))
    await gate.reached.wait()
    await forgetting.carry_out(plan)
    gate.passed.set()
    conversation = await beginning
    assert [turn.human for turn in conversation.turns] == ["one;", "two;"]
    process.sessions.abandon(conversation)
    await process.stop()


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_turn_that_waits_for_the_store_stays_unless_its_session_was_erased(
    world: World, scope: Scope
) -> None:
    plan = await world.plan(scope)
    world.store.fail("add_turn", StoreUnavailable("away"))
    await world.process.say(f"late {SECRET};")
    await world.process.say("club late;", key=CLUB)
    world.store.fail("add_turn", None)
    gate = world.store.hold("add_turn")
    flushing = asyncio.ensure_future(world.process.sessions.backlog.flush())
    await gate.reached.wait()
    erased = await world.forgetting.carry_out(plan)
    assert not erased.left
    gate.passed.set()
    await flushing
    await world.clock.advance(60)
    await check_laws(world.base)
    there = await texts(world.base)
    assert (f"late {SECRET};" in there) == (scope == "last")
    assert ("club late;" in there) == (scope != "everything")
    assert f"{SECRET};" not in there


# In two processes


@pytest.fixture
async def other(world: World) -> Process:
    """Another process, with the same conversations warm."""
    process = await Process(FlakyStore(world.base), world.clock, world.model).start()
    for key in (KEY, CLUB):
        process.sessions.abandon(await process.sessions.begin(key))
    await world.clock.advance(1.1)
    return process


@pytest.mark.parametrize("scope", SCOPES)
async def test_the_other_process_shows_and_writes_nothing_of_it(
    world: World, other: Process, scope: Scope
) -> None:
    await world.forget(scope)
    for key in (KEY, CLUB):
        assert SECRET not in await world.shown(key, process=other)
    await other.say("here again;")
    await world.check_gone()
    assert "here again;" in await texts(world.base)
    await other.stop()


@pytest.mark.parametrize("scope", SCOPES)
async def test_the_other_process_does_not_show_the_summary_of_it(world: World, scope: Scope) -> None:
    await world.forget("last")
    await world.process.say(f"{SECRET} in the club;", key=CLUB)
    await world.process.sessions.end(CLUB)
    await world.process.sessions.end(KEY)
    await settle()
    other = await Process(FlakyStore(world.base), world.clock, world.model).start()
    await other.say("and now?")
    assert SECRET in await world.shown(process=other)
    await world.clock.advance(1.1)
    await world.forget(scope, CLUB)
    assert SECRET not in await world.shown(process=other)
    await world.check_gone()
    await other.stop()


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_turn_under_way_in_the_other_process(world: World, other: Process, scope: Scope) -> None:
    conversation = await other.sessions.begin(KEY)
    turn = other.turn(conversation, "under way;")
    await world.clock.advance(2)
    await world.forget(scope)
    await other.sessions.finish(conversation, turn)
    await check_laws(world.base)
    assert ("under way;" in await texts(world.base)) == (scope == "last")
    assert SECRET not in await world.shown(process=other)
    await world.check_gone()
    await other.stop()


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_running_summary_under_way_in_the_other_process(
    world: World, other: Process, scope: Scope
) -> None:
    conversation = await other.sessions.begin(KEY)
    held = world.model.hold()
    other.folder.fold(conversation, through=conversation.turns[-1].turn_id, zone=UTC_ZONE)
    await held.reached.wait()
    other.sessions.abandon(conversation)
    await world.forget(scope)
    held.release()
    await settle()
    assert conversation.ready is None
    await world.clock.advance(1.1)
    await other.say("here again;")
    await world.check_gone()
    await other.stop()


async def test_a_turn_that_waits_in_the_other_process_does_not_bring_an_erased_session_back(
    world: World, other: Process
) -> None:
    store = other.store
    assert isinstance(store, FlakyStore)
    store.fail("add_turn", StoreUnavailable("away"))
    await other.say(f"{SECRET} late;")
    await world.forget("everything")
    store.fail("add_turn", None)
    await other.sessions.backlog.flush()
    assert await world.base.holdings(ANN) == Holdings()
    await other.stop()


async def test_a_session_that_is_revised_again_and_again_is_summarised_in_the_end(world: World) -> None:
    await world.process.sessions.end(KEY)
    await settle()
    await world.forget("last")
    await world.forget("last")
    await world.clock.advance(200)
    await world.process.sessions.sweep()
    await settle()
    session = (await everything(world.base))[1][1]
    assert session.state is SessionState.CLOSED
    assert session.summary is not None
    assert "one;" in session.summary
    assert "two;" not in session.summary
