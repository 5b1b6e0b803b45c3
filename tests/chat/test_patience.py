"""Asking again: when the table says so, never after text, and never for long."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from bot.chat.model import Finished, TextPiece
from bot.chat.patience import Patience
from bot.chat.policy import POLICY
from bot.errors import (
    ModelBroken,
    ModelError,
    ModelInterrupted,
    ModelMalformed,
    ModelSilent,
    ModelUnauthorized,
    ModelUnreachable,
    PromptTooLong,
    RateLimited,
)
from memory import CompletionFault, CompletionTooLong, PromptMessage
from tests.clock import NOON, FakeClock, settle
from tests.fakes import Cut, Held, Scripted, ScriptedModel

ASKED = (PromptMessage("user", "Hello there."),)
LONG_ENOUGH = 600.0  # seconds of the fake clock


class Asking:
    """One question through Patience on a clock that the test moves."""

    def __init__(self, *replies: Scripted, longest: float = 30.0) -> None:
        self.clock = FakeClock()
        self.model = ScriptedModel(*replies)
        self.patience = Patience(self.model, self.clock, jitter=lambda: 0.0, longest=longest)
        self.texts: list[str] = []
        self.finished: Finished | None = None
        self.answered_after = -1.0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(self.ask())
            await self.clock.advance(LONG_ENOUGH)
            assert asking.done()

    async def ask(self) -> None:
        try:
            async with aclosing(self.patience.stream(ASKED, max_tokens=9)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, TextPiece):
                        self.texts.append(piece.text)
                    else:
                        self.finished = piece
        finally:
            self.answered_after = (self.clock.now() - NOON).total_seconds()

    async def failure(self) -> ModelError:
        with pytest.raises(ExceptionGroup) as caught:
            await self.run()
        (error,) = caught.value.exceptions
        assert isinstance(error, ModelError)
        return error


async def test_a_good_reply_passes_as_it_is_and_is_asked_for_once() -> None:
    asking = Asking("I am here.")
    await asking.run()
    assert "".join(asking.texts) == "I am here."
    assert len(asking.texts) > 1
    assert asking.finished is not None
    assert len(asking.model.prompts) == 1
    assert asking.answered_after == 0


@pytest.mark.parametrize("kind", [kind for kind in POLICY if kind is not ModelError])
async def test_each_error_is_tried_again_as_often_as_its_row_says_and_the_last_one_is_raised(
    kind: type[ModelError],
) -> None:
    errors = [kind(str(number)) for number in range(9)]
    asking = Asking(*errors)
    error = await asking.failure()
    tries = POLICY[kind].tries
    assert error is errors[tries]
    assert len(asking.model.prompts) == 1 + tries


async def test_a_second_try_that_succeeds_is_all_that_is_seen_of_it() -> None:
    asking = Asking(ModelBroken("a"), ModelUnreachable("b"), "I am here.")
    await asking.run()
    assert "".join(asking.texts) == "I am here."


async def test_the_waits_are_those_of_the_table() -> None:
    asking = Asking(ModelUnreachable("a"), ModelUnreachable("b"), "I am here.")
    await asking.run()
    assert asking.answered_after == 0.5 + 1.0


async def test_after_a_piece_of_text_nothing_is_asked_again() -> None:
    for error in (ModelInterrupted("a"), ModelBroken("b"), RateLimited("c", retry_after=0)):
        asking = Asking((["Once upon"], error), "a second reply")
        assert await asking.failure() is error
        assert asking.texts == ["Once upon"]
        assert len(asking.model.prompts) == 1


async def test_the_server_says_how_long_to_wait() -> None:
    asking = Asking(RateLimited("a", retry_after=7.0), "I am here.")
    await asking.run()
    assert asking.answered_after == 7.0


async def test_a_wait_that_is_too_long_for_a_person_is_not_begun() -> None:
    asking = Asking(RateLimited("a", retry_after=21.0), "I am here.")
    assert isinstance(await asking.failure(), RateLimited)
    assert asking.answered_after == 0
    assert len(asking.model.prompts) == 1


async def test_all_waits_together_are_bounded() -> None:
    asking = Asking(*[RateLimited("a", retry_after=15.0)] * 4, longest=30.0)
    await asking.failure()
    assert asking.answered_after == 30.0
    assert len(asking.model.prompts) == 3


async def test_tries_are_counted_over_different_errors() -> None:
    asking = Asking(ModelMalformed("a"), ModelSilent("b"), "never asked for")
    assert isinstance(await asking.failure(), ModelSilent)


async def test_what_is_no_model_error_passes_untouched() -> None:
    asking = Asking(Held())
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(asking.ask())
        await settle()
        task.cancel()
    assert task.cancelled()
    assert len(asking.model.prompts) == 1


async def test_leaving_early_closes_the_model_underneath() -> None:
    held = Held(before="Once upon")
    asking = Asking(held)
    async with aclosing(asking.patience.stream(ASKED, max_tokens=9)) as pieces:
        await anext(pieces)
    assert held.closed.is_set()


async def test_a_held_reply_goes_on_when_it_is_released() -> None:
    held = Held(before="Once upon", after=" a time.")
    asking = Asking(held)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(asking.ask())
        await held.reached.wait()
        assert "".join(asking.texts) == "Once upon"
        held.release()
    assert "".join(asking.texts) == "Once upon a time."
    assert not held.closed.is_set()


async def test_a_cut_reply_says_so_and_is_none_to_ask_again_for() -> None:
    asking = Asking(Cut("Once upon"))
    await asking.run()
    assert asking.finished is not None
    assert asking.finished.cut
    assert len(asking.model.prompts) == 1


async def test_a_whole_answer_is_as_patient_and_fails_as_memory_knows_it() -> None:
    asking = Asking(ModelSilent("a"), "A note.", ModelUnauthorized("b"), PromptTooLong("c"), " \n", " \n")
    completion = await asking.patience.complete(ASKED, max_tokens=9)
    assert (completion.text, completion.model) == ("A note.", "scripted")
    for kind, cause in (
        (CompletionFault, ModelUnauthorized),
        (CompletionTooLong, PromptTooLong),
        (CompletionFault, ModelSilent),
    ):
        with pytest.raises(CompletionFault) as caught:
            await asking.patience.complete(ASKED, max_tokens=9)
        assert type(caught.value) is kind
        assert isinstance(caught.value.__cause__, cause)
