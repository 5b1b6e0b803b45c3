"""The running summary: made in the background from what leaves the window, and harmless when it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from memory.conversation import Conversation
from memory.errors import CompletionFault, StoreUnavailable
from memory.stores.inmemory import InMemoryStore
from memory.types import RunningSummary, TurnId
from tests.clock import FakeClock, settle
from tests.memory.flaky import FlakyStore
from tests.memory.process import ANN, KEY, UTC_ZONE, Process, texts
from tests.memory.scripted import Held, ScriptedCompleter


@pytest.fixture
def base() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def store(base: InMemoryStore) -> FlakyStore:
    return FlakyStore(base)


@pytest.fixture
def model() -> ScriptedCompleter:
    return ScriptedCompleter()


@pytest.fixture
async def process(store: FlakyStore, model: ScriptedCompleter) -> AsyncIterator[Process]:
    process = Process(store, FakeClock(), model)
    yield process
    await process.stop()


@pytest.fixture
async def conversation(process: Process) -> Conversation:
    """A conversation of the turns 0 to 5."""
    for number in range(6):
        await process.say(f"turn {number};")
    return await process.sessions.begin(KEY)


def fold(process: Process, conversation: Conversation, number: int) -> TurnId:
    through = conversation.turns[number].turn_id
    process.folder.fold(conversation, through=through, zone=UTC_ZONE)
    return through


def holds(prompt: str, *numbers: int) -> bool:
    return [number for number in range(6) if f"Person: turn {number};" in prompt] == list(numbers)


async def test_the_turns_up_to_the_one_asked_for_are_folded_and_nothing_is_evicted(
    process: Process, conversation: Conversation, model: ScriptedCompleter, base: InMemoryStore
) -> None:
    before = conversation.turns
    through = fold(process, conversation, 2)
    assert conversation.ready is None, "no one waits for it"
    await settle()
    assert conversation.ready == RunningSummary("A short note.", through)
    assert holds(model.prompts[0], 0, 1, 2)
    assert conversation.turns == before
    assert len(await texts(base)) == 6


async def test_the_next_folding_goes_on_from_the_note_before(
    process: Process, conversation: Conversation, model: ScriptedCompleter
) -> None:
    model.enqueue("They were born in Porto.", "Porto, and a dog.")
    fold(process, conversation, 1)
    await settle()
    through = fold(process, conversation, 4)
    await settle()
    assert conversation.ready == RunningSummary("Porto, and a dog.", through)
    assert holds(model.prompts[1], 2, 3, 4)
    assert "They were born in Porto." in model.prompts[1]


async def test_a_conversation_loaded_anew_goes_on_from_the_note_that_is_stored(
    process: Process, conversation: Conversation, model: ScriptedCompleter, store: FlakyStore
) -> None:
    through = fold(process, conversation, 1)
    await settle()
    await store.set_window(conversation.session, window_from=None, running=conversation.ready)
    process.sessions.abandon(conversation)
    other = Process(store, process.clock, model)
    again = await other.sessions.begin(KEY)
    assert again.session.running == RunningSummary("A short note.", through)
    other.folder.fold(again, through=again.turns[3].turn_id, zone=UTC_ZONE)
    await settle()
    assert holds(model.prompts[1], 2, 3)
    await other.stop()


async def test_what_is_folded_already_is_not_folded_again(
    process: Process, conversation: Conversation, model: ScriptedCompleter
) -> None:
    fold(process, conversation, 3)
    await settle()
    fold(process, conversation, 3)
    fold(process, conversation, 1)
    await settle()
    assert len(model.prompts) == 1


async def test_one_at_a_time_for_a_conversation(
    process: Process, conversation: Conversation, model: ScriptedCompleter
) -> None:
    held = Held()
    model.enqueue(held)
    first = fold(process, conversation, 1)
    await settle()
    fold(process, conversation, 4)
    await settle()
    assert len(model.prompts) == 1
    held.release()
    await settle()
    assert conversation.ready is not None
    assert conversation.ready.through == first


async def test_a_failure_is_harmless_and_the_next_try_works(
    process: Process, conversation: Conversation, model: ScriptedCompleter, store: FlakyStore
) -> None:
    before = conversation.turns
    model.enqueue(CompletionFault("down"))
    fold(process, conversation, 2)
    await settle()
    assert (conversation.ready, conversation.turns, conversation.folding) == (None, before, False)
    store.fail("turns", StoreUnavailable("away"))
    fold(process, conversation, 2)
    await settle()
    assert (conversation.ready, conversation.folding) == (None, False)
    store.fail("turns", None)
    fold(process, conversation, 2)
    await settle()
    assert conversation.ready is not None


async def test_a_failure_nobody_expected_leaves_the_conversation_free_for_the_next_try(
    process: Process, conversation: Conversation, model: ScriptedCompleter, caplog: pytest.LogCaptureFixture
) -> None:
    model.enqueue(ZeroDivisionError("a secret"))
    fold(process, conversation, 2)
    await settle()
    assert not conversation.folding
    assert "ZeroDivisionError" in caplog.text
    assert "a secret" not in caplog.text


@pytest.mark.parametrize("told", [True, False], ids=["here", "in another process"])
async def test_what_was_erased_while_the_model_ran_is_discarded(
    process: Process, conversation: Conversation, model: ScriptedCompleter, base: InMemoryStore, told: bool
) -> None:
    held = Held("It quotes the secret.")
    model.enqueue(held)
    fold(process, conversation, 2)
    await settle()
    await base.revise(ANN, conversation.session.session_id, due_at=process.clock.now())
    await base.delete_turns(ANN, [conversation.turns[0].turn_id])
    if told:
        process.sessions.invalidate(ANN, erased=False)
    held.release()
    await settle()
    assert conversation.ready is None


async def test_a_conversation_that_is_gone_gets_nothing(
    process: Process, conversation: Conversation, model: ScriptedCompleter, base: InMemoryStore
) -> None:
    held = Held()
    model.enqueue(held)
    fold(process, conversation, 2)
    await settle()
    process.sessions.invalidate(ANN, erased=True)
    await base.erase(ANN)
    held.release()
    await settle()
    assert conversation.ready is None
    assert not await base.holdings(ANN)


async def test_stopping_in_the_middle_loses_nothing(
    process: Process, conversation: Conversation, model: ScriptedCompleter, base: InMemoryStore
) -> None:
    model.enqueue(Held())
    fold(process, conversation, 2)
    await settle()
    assert not await process.folder.drain(grace=0.01)
    await process.folder.aclose()
    assert (conversation.ready, conversation.folding) == (None, False)
    assert len(await texts(base)) == 6
