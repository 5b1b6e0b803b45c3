"""Every way in which a model goes wrong, over HTTP, as the person sees it: a reply, or one kind sentence.

The message is stored whatever happens, and the conversation goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from email.utils import format_datetime

import pytest

from bot.chat.openai import OpenAIModel
from bot.chat.policy import POLICY, Excuse
from bot.texts import Texts
from memory import MemoryId, Outcome
from tests.chat.fault_server import (
    Answers,
    Breaks,
    Ends,
    Fails,
    Fault,
    FaultServer,
    HangsUp,
    Says,
    Sends,
    Stalls,
)
from tests.clock import NOON
from tests.conversations.companion import companion

MEI = MemoryId("terminal:mei")
TOO_LONG = Fails(400, {"type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096})


@dataclass(frozen=True)
class Case:
    """What the server does, and what becomes of the turn."""

    name: str
    faults: Sequence[Fault]
    excuse: Excuse | None = None
    reply: str = ""

    @property
    def outcome(self) -> Outcome:
        if self.excuse is None:
            return Outcome.ANSWERED
        return Outcome.INTERRUPTED if self.reply else Outcome.FAILED


CASES = (
    Case("key refused", [Fails(401, {"message": "bad key sk-123"})], Excuse.MISCONFIGURED),
    Case("no such model", [Fails(404, {"code": "model_not_found"})], Excuse.MISCONFIGURED),
    Case(
        "too many requests, then well", [Fails(429, headers={"Retry-After": "2"}), Says("Hi.")], reply="Hi."
    ),
    Case(
        "too many requests until a date",
        [Fails(429, headers={"Retry-After": format_datetime(NOON)}), Says("Hi.")],
        reply="Hi.",
    ),
    Case("too many requests for an hour", [Fails(429, headers={"Retry-After": "3600"})], Excuse.BUSY),
    Case("one server error", [Fails(500), Says("Hi.")], reply="Hi."),
    Case("server errors without end", [Fails(500)] * 9, Excuse.BROKEN),
    Case("hung up, then well", [HangsUp(), Says("Hi.")], reply="Hi."),
    Case("broken in mid-sentence", [Breaks("I was about to")], Excuse.INTERRUPTED, "I was about to"),
    Case("ended without an end", [Ends("I was about to")], Excuse.INTERRUPTED, "I was about to"),
    Case("broken JSON in mid-sentence", [Sends("I was", ['{"choi'])], Excuse.INTERRUPTED, "I was"),
    Case(
        "an error in mid-sentence",
        [Sends("I was", [{"error": {"message": "x"}}])],
        Excuse.INTERRUPTED,
        "I was",
    ),
    Case("empty, then well", [Says(""), Says("Hi.")], reply="Hi."),
    Case("empty without end", [Says(""), Says("  \n ")], Excuse.SILENT),
    Case("a page instead of JSON", [Answers("<html>Bad gateway</html>", "text/html")] * 9, Excuse.BROKEN),
    Case("reasoning", [Says("<think>They said hi.</think>Hi.")], reply="Hi."),
    Case("reasoning apart", [Says("Hi.", reasoning="They said hi.")], reply="Hi."),
    Case("reasoning that never ends", [Says("<think>Hmm, well"), Says("<think>Hmm")], Excuse.SILENT),
    Case("refused by a filter", [Says("", finish="content_filter")], Excuse.REFUSED),
    Case("too long without end", [TOO_LONG] * 9, Excuse.TOO_LONG),
    Case("nothing comes in time", [Stalls()], Excuse.TOO_SLOW),
    Case("nothing more comes in time", [Stalls("I was")], Excuse.INTERRUPTED, "I was"),
)


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with FaultServer() as server:
        yield server


def _model(server: FaultServer) -> OpenAIModel:
    return OpenAIModel(base_url=server.base_url, api_key="sk-123", model="fault", timeout=0.5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_person_gets_a_reply_or_one_kind_sentence_and_the_turn_is_kept(
    case: Case, server: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.script(*case.faults)
    async with _model(server) as model, companion(model=model) as it:
        mei = it.someone()
        shown = await mei.waits_for("Hello XYZZY")
        assert shown.reply == case.reply
        assert shown.said == ([Texts("en")(case.excuse.value)] if case.excuse else [])
        (turn,) = await it.store.turns(MEI)
        assert (turn.human, turn.reply, turn.outcome) == ("Hello XYZZY", case.reply, case.outcome)
        server.script(*[Says("Well again.")] * 3)
        while (await mei.waits_for("And now?")).reply != "Well again.":
            pass  # what the script of the fault had left over
    assert "sk-123" not in shown.text + caplog.text
    assert "XYZZY" not in caplog.text


async def test_a_server_that_refuses_connections_gets_one_kind_sentence(server: FaultServer) -> None:
    async with _model(server) as model, companion(model=model) as it:
        await server.stop()
        shown = await it.someone().waits_for("Hello")
        assert shown.said == [Texts("en")(Excuse.UNREACHABLE.value)]
        assert len(await it.store.turns(MEI)) == 1


async def test_a_context_length_error_shrinks_the_window_and_is_answered(server: FaultServer) -> None:
    async with _model(server) as model, companion(model=model) as it:
        mei = it.someone()
        for number in range(8):
            await mei.waits_for(f"Message {number}")
        server.script(TOO_LONG, Says("It fits."))
        shown = await mei.waits_for("The last straw")
    assert (shown.reply, shown.said) == ("It fits.", [])
    refused, taken = server.chats[-2:]
    assert len(taken.prompt) < len(refused.prompt)
    assert taken.prompt[0] == refused.prompt[0]
    assert taken.prompt[-1][1].endswith("The last straw")


def test_every_excuse_of_the_policy_is_seen_above() -> None:
    seen = {case.excuse for case in CASES} | {Excuse.UNREACHABLE}
    assert {row.excuse for row in POLICY.values()} <= seen
