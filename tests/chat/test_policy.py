"""The table of what to do about each error: complete, and looked up by the most specific type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.chat.policy import POLICY, Excuse, Wait, row_for
from bot.errors import (
    ModelBroken,
    ModelError,
    ModelMissing,
    ModelRefused,
    ModelTooSlow,
    ModelUnauthorized,
    PromptTooLong,
    RateLimited,
)
from memory import Outcome


def kinds(root: type[ModelError] = ModelError) -> Iterator[type[ModelError]]:
    """Walk the tree of model errors that the bot defines."""
    yield root
    for child in root.__subclasses__():
        if child.__module__ == "bot.errors":
            yield from kinds(child)


def test_every_model_error_has_a_row_of_its_own() -> None:
    assert set(kinds()) == set(POLICY)
    assert len(POLICY) == 12


def test_every_excuse_is_somebodys_and_its_value_is_a_key_of_the_catalogue() -> None:
    assert {row.excuse for row in POLICY.values()} == set(Excuse)
    assert all(excuse.value.startswith("model-") for excuse in Excuse)


def test_a_type_without_a_row_gets_that_of_its_nearest_ancestor() -> None:
    class OutOfMemory(ModelBroken):
        pass

    assert row_for(OutOfMemory("")) is POLICY[ModelBroken]
    assert row_for(ModelError("")) is POLICY[ModelError]


def test_text_that_was_shown_is_always_kept() -> None:
    for row in POLICY.values():
        assert (row.shown, row.unshown) == (Outcome.INTERRUPTED, Outcome.FAILED)


@pytest.mark.parametrize("kind", [ModelUnauthorized, ModelMissing, ModelRefused, ModelTooSlow, PromptTooLong])
def test_what_the_same_question_cannot_mend_is_not_asked_again(kind: type[ModelError]) -> None:
    assert POLICY[kind].tries == 0


def test_only_a_prompt_that_is_too_long_shrinks_the_window() -> None:
    assert {kind for kind, row in POLICY.items() if row.shrinks} == {PromptTooLong}


def test_a_wait_grows_by_its_factor_up_to_its_most_and_jitter_only_shortens_it() -> None:
    wait = Wait(first=1.0, factor=3.0, most=20.0)
    assert [wait.seconds(tried, told=None, jitter=0.0) for tried in range(5)] == [1.0, 3.0, 9.0, 20.0, 20.0]
    assert wait.seconds(1, told=None, jitter=0.5) == 2.25


def test_what_the_server_asks_for_is_waited_in_full_but_not_above_the_most() -> None:
    wait = POLICY[RateLimited].wait
    assert wait.seconds(0, told=7.0, jitter=0.25) == 7.25
    assert wait.seconds(0, told=0.0, jitter=0.0) == 0.0
    assert wait.seconds(0, told=wait.most, jitter=0.0) == wait.most
    assert wait.seconds(0, told=wait.most + 0.1, jitter=0.0) is None
