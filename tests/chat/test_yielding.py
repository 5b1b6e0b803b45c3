"""Replies go first, and what gives way to them is done in the end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from bot.chat.yielding import Yielding
from bot.errors import ModelBroken
from memory import Completion, CompletionFault, PromptMessage
from tests.clock import settle
from tests.fakes import Held, ScriptedModel

PROMPT = (PromptMessage("user", "hi"),)


async def _reply(model: Yielding) -> str:
    text = ""
    async with aclosing(model.stream(PROMPT, max_tokens=9)) as pieces:
        async for piece in pieces:
            text += getattr(piece, "text", "")
    return text


async def _done(work: asyncio.Future[Completion]) -> str:
    return (await asyncio.wait_for(work, 5)).text


async def test_background_work_stops_when_a_reply_begins_and_is_asked_again_after_it() -> None:
    held, reply = Held(), Held(before="Hello")
    background = ScriptedModel(held, "A summary.")
    model = Yielding(ScriptedModel(reply), background)
    work = asyncio.ensure_future(model.complete(PROMPT, max_tokens=9))
    await settle()
    assert held.reached.is_set()
    talk = asyncio.ensure_future(_reply(model))
    await settle()
    assert held.closed.is_set()
    assert len(background.prompts) == 1  # not asked again while the reply is running
    reply.release()
    assert (await talk).startswith("Hello")
    assert await _done(work) == "A summary."
    assert len(background.prompts) == 2


async def test_background_work_waits_for_a_reply_that_is_running_and_goes_on_when_it_is_given_up() -> None:
    reply = Held()
    background = ScriptedModel("A summary.")
    model = Yielding(ScriptedModel(reply), background)
    talk = asyncio.ensure_future(_reply(model))
    await settle()
    work = asyncio.ensure_future(model.complete(PROMPT, max_tokens=9))
    await settle()
    assert background.prompts == []
    talk.cancel()
    assert await _done(work) == "A summary."


async def test_a_reply_that_fails_lets_background_work_go_on() -> None:
    model = Yielding(ScriptedModel(ModelBroken("x")), ScriptedModel("A summary."))
    with pytest.raises(ModelBroken):
        await _reply(model)
    assert (await model.complete(PROMPT, max_tokens=9)).text == "A summary."


async def test_work_that_gave_way_often_enough_is_let_through() -> None:
    helds = [Held() for _ in range(6)]
    model = Yielding(ScriptedModel(), ScriptedModel(*helds))
    work = asyncio.ensure_future(model.complete(PROMPT, max_tokens=9))
    for held in helds[:5]:
        await settle()
        assert held.reached.is_set()
        await _reply(model)
        assert held.closed.is_set()
    await settle()
    await _reply(model)
    assert not helds[5].closed.is_set()
    helds[5].release()
    assert await _done(work) == helds[5].after


async def test_a_cancelled_completion_is_cancelled_and_a_fault_is_a_fault() -> None:
    model = Yielding(ScriptedModel(), ScriptedModel(Held(), ModelBroken("x")))
    work = asyncio.ensure_future(model.complete(PROMPT, max_tokens=9))
    await settle()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    with pytest.raises(CompletionFault):
        await model.complete(PROMPT, max_tokens=9)
