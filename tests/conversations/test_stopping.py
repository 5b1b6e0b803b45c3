"""A reply is stopped, by its person or by a shutdown, at every moment: nothing that was said is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bot.errors import ModelUnreachable, PromptTooLong
from bot.platforms.base import Choice
from memory import MemoryId, Outcome, StoreFault
from memory.stores.inmemory import InMemoryStore
from tests.clock import settle
from tests.conversations.companion import Shown, companion, whole
from tests.fakes import Held
from tests.memory.flaky import FlakyStore

MEI = MemoryId("terminal:mei")


async def test_stop_is_heard_before_the_model_has_been_asked() -> None:
    store = FlakyStore(InMemoryStore())
    async with companion("Too late.", store=store) as it:
        mei, gate = it.someone(), store.hold("open_session")
        shown = mei.sends("Tell me everything.")
        await asyncio.wait_for(gate.reached.wait(), 5)
        assert (await mei.says("/stop")).said == ["(stopped)"]
        gate.passed.set()
        await settle()
        assert (shown.reply, shown.ended, it.model.prompts) == ("", True, [])
        (turn,) = await it.store.turns(MEI)
        assert (turn.human, turn.outcome) == ("Tell me everything.", Outcome.STOPPED)


async def test_stop_is_heard_between_two_tries() -> None:
    store = FlakyStore(InMemoryStore())
    async with companion("One.", PromptTooLong("x"), "Too late.", store=store) as it:
        mei = it.someone()
        await mei.says("a")
        gate = store.hold("set_window")
        shown = mei.sends("b")
        await asyncio.wait_for(gate.reached.wait(), 5)
        assert (await mei.says("/stop")).said == ["(stopped)"]
        gate.passed.set()
        await settle()
        assert (shown.reply, shown.said, it.model.left) == ("", [], 1)


async def test_stop_is_heard_while_the_model_is_waited_for() -> None:
    async with companion(*[ModelUnreachable("x")] * 3, "Too late.") as it:
        mei = it.someone()
        shown = mei.sends("Hello?")
        await settle()
        assert mei.sends("/stop").done is not None
        await settle()
        await it.clock.advance(60)
        assert (shown.ended, shown.said) == (True, [])
        assert len(it.model.prompts) == 1
        assert (await mei.says("/stop")).said == ["I wasn't saying anything."]


async def test_a_shutdown_keeps_the_messages_that_nobody_has_answered_yet() -> None:
    store = InMemoryStore()
    async with companion(Held(before="I was"), store=store) as it:
        mei = it.someone()
        mei.sends("Go on.")
        await settle()
        waiting = [mei.sends("By the way"), mei.sends("/new"), mei.sends("I have a cat.")]
    assert all(shown.done is not None and shown.done.done() for shown in waiting)
    assert [turn.human for turn in await store.turns(MEI)] == ["Go on.", "By the way", "I have a cat."]
    async with companion("A cat!", store=store) as it:
        await it.someone().says("Hello?")
        assert "I have a cat." in whole(it.prompt)


async def test_a_shutdown_before_the_model_is_asked_keeps_the_message() -> None:
    store = FlakyStore(InMemoryStore())
    async with companion("Never asked for.", store=store) as it:
        gate = store.hold("open_session")
        it.someone().sends("Hello?")
        await asyncio.wait_for(gate.reached.wait(), 5)
    (turn,) = await store.turns(MEI)
    assert (turn.human, turn.reply, turn.outcome) == ("Hello?", "", Outcome.FAILED)


async def test_a_shutdown_that_is_hurried_still_stores_what_was_said() -> None:
    store = InMemoryStore()
    async with companion(Held(before="I was"), store=store) as it:
        it.someone().sends("Go on.")
        await settle()
        closing = asyncio.ensure_future(it.dispatcher.aclose(grace=600))
        await settle()
        closing.cancel()
        await asyncio.wait({closing})
        (turn,) = await store.turns(MEI)
        assert (turn.human, turn.reply, turn.outcome) == ("Go on.", "I was", Outcome.INTERRUPTED)


async def test_a_message_that_nobody_waits_for_any_more_is_answered_all_the_same() -> None:
    held = Held(before="One")
    async with companion(held, "Two.") as it:
        mei = it.someone()
        mei.sends("a")
        await settle()
        second, third = mei.sends("b"), mei.sends("c")
        assert second.done is not None
        second.done.cancel()
        held.release()
        await settle()
        assert third.reply == "Two."
        assert third.done is not None
        assert third.done.done()


class _Mute(Shown):
    """A sink that can show nothing at all, against its contract."""

    async def typing(self) -> None:
        raise RuntimeError("the person is gone")

    async def say(self, text: str, *, choices: Sequence[Choice] = (), private: bool = False) -> None:
        raise RuntimeError("the person is gone")


async def test_a_sink_that_can_show_nothing_keeps_nobody_waiting() -> None:
    held = Held(before="One")
    async with companion(held, "Three.") as it:
        mei = it.someone()
        mei.sends("a")
        await settle()
        lost = it.dispatcher.receive(mei.message("/memory"), _Mute())
        also = it.dispatcher.receive(mei.message("b"), _Mute())
        await settle()
        mei.sends("/timezone")
        third = mei.sends("c")
        held.release()
        await settle()
        assert lost.done()
        assert also.done()
        assert third.reply == "Three."
        assert [turn.human for turn in await it.store.turns(MEI)] == ["a", "b", "c"]


async def test_a_shutdown_while_the_turn_is_being_stored_loses_nothing() -> None:
    store = FlakyStore(InMemoryStore())
    async with companion("Said.", store=store) as it:
        gate = store.hold("add_turn")
        it.someone().sends("Keep this.")
        await settle()
        assert gate.reached.is_set()
    (turn,) = await store.turns(MEI)
    assert (turn.human, turn.reply) == ("Keep this.", "Said.")


async def test_memory_that_cannot_start_leaves_nothing_running() -> None:
    store = FlakyStore(InMemoryStore())
    store.fail("prepare", StoreFault("the password is wrong"))
    before = asyncio.all_tasks()
    with pytest.raises(StoreFault, match="password"):
        async with companion(store=store):
            raise AssertionError("it has started")
    await settle()
    assert asyncio.all_tasks() == before
