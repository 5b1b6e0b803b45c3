"""The model over HTTP: what it says, and each way in which a server goes wrong."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from bot.chat.model import Finished, TextPiece
from bot.chat.openai import OpenAIModel
from bot.errors import (
    ModelBroken,
    ModelError,
    ModelInterrupted,
    ModelMalformed,
    ModelMissing,
    ModelRefused,
    ModelSilent,
    ModelTooSlow,
    ModelUnauthorized,
    ModelUnreachable,
    PromptTooLong,
    RateLimited,
)
from memory import CompletionFault, CompletionTooLong, PromptMessage, Usage
from tests.chat.fault_server import (
    MODELS,
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
    chunk,
    refused_url,
)

KEY = "sk-a-key-that-nobody-may-see"
ASKED = (PromptMessage("system", "Be kind."), PromptMessage("user", "Hello there."))
LONG = 20.0  # seconds that no test waits
SHORT = 0.2


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with FaultServer() as started:
        yield started


def model_at(url: str, *, timeout: float = LONG, key: str | None = KEY) -> OpenAIModel:
    return OpenAIModel(base_url=url, api_key=key, model="fault", timeout=timeout)


async def ask(model: OpenAIModel) -> tuple[str, Finished | None, ModelError | None]:
    """Ask once; returns the text that was passed on, the end, and the error instead of one."""
    texts: list[str] = []
    finished = None
    try:
        async with aclosing(model.stream(ASKED, max_tokens=50)) as pieces:
            async for piece in pieces:
                assert finished is None, "something came after the end"
                if isinstance(piece, TextPiece):
                    assert piece.text
                    texts.append(piece.text)
                else:
                    finished = piece
    except ModelError as error:
        return "".join(texts), None, error
    return "".join(texts), finished, None


async def failure(server: FaultServer, *faults: Fault, patience: float = LONG) -> tuple[str, ModelError]:
    server.script(*faults)
    async with model_at(server.base_url, timeout=patience) as model:
        text, _, error = await ask(model)
    assert error is not None
    return text, error


async def reply(server: FaultServer, *faults: Fault) -> tuple[str, Finished]:
    server.script(*faults)
    async with model_at(server.base_url) as model:
        text, finished, error = await ask(model)
    assert error is None
    assert finished is not None
    return text, finished


# What it says


async def test_a_reply_comes_in_pieces_and_ends_once_with_its_counts(server: FaultServer) -> None:
    text, finished = await reply(server, Says("Nice to see you."))
    assert text == "Nice to see you."
    assert finished == Finished("fault", Usage(prompt=4, completion=4), cut=False)


async def test_the_prompt_the_key_and_the_limits_reach_the_server(server: FaultServer) -> None:
    async with OpenAIModel(
        base_url=server.base_url, api_key=KEY, model="fault", temperature=0.5, extra={"top_k": 3}
    ) as model:
        await ask(model)
    (request,) = server.requests
    assert request.prompt == [("system", "Be kind."), ("user", "Hello there.")]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "fault"
    assert request.body["max_tokens"] == 50
    assert request.body["temperature"] == 0.5
    assert request.body["top_k"] == 3


async def test_a_server_of_ones_own_needs_no_key(server: FaultServer) -> None:
    async with model_at(server.base_url, key=None) as model:
        text, _, error = await ask(model)
    assert (text, error) == ("You said: Hello there.", None)


async def test_a_reply_that_ran_into_max_tokens_says_so(server: FaultServer) -> None:
    _, finished = await reply(server, Says("Nice to", finish="length"))
    assert finished.cut


@pytest.mark.parametrize(
    ("usage", "more"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 7}}, {}),
        ({"prompt_cache_hit_tokens": 7}, {}),
        ({}, {"timings": {"cache_n": 7, "prompt_n": 2}}),
    ],
)
async def test_cached_tokens_are_read_under_each_of_their_names(
    server: FaultServer, usage: dict[str, object], more: dict[str, object]
) -> None:
    counts = {"prompt_tokens": 9, "completion_tokens": 1, **usage}
    _, finished = await reply(server, Says("Hi.", usage=counts, more=more))
    assert finished.usage == Usage(prompt=9, completion=1, cached=7)


async def test_reasoning_is_not_shown_in_tags_nor_apart(server: FaultServer) -> None:
    text, _ = await reply(server, Says("<think>secret</think>\n\nHello.", reasoning="secret", pieces=9))
    assert text == "Hello."


async def test_reasoning_that_a_template_opened_is_held_back_from_the_second_reply_on(
    server: FaultServer,
) -> None:
    server.script(*[Says("secret\n</think>\n\nHello.", pieces=9)] * 2, Says("No thoughts now."))
    async with model_at(server.base_url) as model:
        texts = [(await ask(model))[0] for _ in range(3)]
    assert texts == ["secret\nHello.", "Hello.", "No thoughts now."]


async def test_a_whole_answer_holds_such_reasoning_back_at_once(server: FaultServer) -> None:
    server.script(Says("secret\n</think>\n\nHello."))
    async with model_at(server.base_url) as model:
        assert (await model.complete(ASKED, max_tokens=50)).text == "Hello."


async def test_a_whole_answer_that_ran_into_max_tokens_is_kept(server: FaultServer) -> None:
    server.script(Says("A note that is", finish="length"))
    async with model_at(server.base_url) as model:
        assert (await model.complete(ASKED, max_tokens=5)).text == "A note that is"


async def test_text_in_parts_is_put_together(server: FaultServer) -> None:
    parts = [{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "Hello."}]
    text, _ = await reply(server, Sends("", [chunk({"content": parts}), chunk({}, finish="stop")]))
    assert text == "Hello."


async def test_a_server_that_does_not_stream_is_understood(server: FaultServer) -> None:
    whole = {"model": "m", "choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}
    text, finished = await reply(server, Answers(json.dumps(whole)))
    assert (text, finished.model) == ("Hello.", "m")


async def test_a_proxy_of_the_environment_is_not_asked_for_a_server_on_this_machine(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", refused_url())
    monkeypatch.setenv("http_proxy", refused_url())
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    text, _ = await reply(server, Says("Hello."))
    assert text == "Hello."


async def test_closing_twice_is_harmless_and_nothing_is_sent_before_the_first_question() -> None:
    model = OpenAIModel(base_url=None, api_key=KEY, model="fault")
    await model.aclose()
    await model.aclose()


async def test_a_prompt_with_half_a_character_can_be_sent(server: FaultServer) -> None:
    prompt = [PromptMessage("user", "a\udce4b")]
    async with model_at(server.base_url) as model, aclosing(model.stream(prompt, max_tokens=5)) as pieces:
        text = "".join([piece.text async for piece in pieces if isinstance(piece, TextPiece)])
    assert text == "You said: a?b"


async def test_leaving_early_ends_the_request_at_the_server(server: FaultServer) -> None:
    stalls = Stalls("Once upon a time")
    server.script(stalls)
    async with model_at(server.base_url) as model:
        async with aclosing(model.stream(ASKED, max_tokens=50)) as pieces:
            assert isinstance(await anext(pieces), TextPiece)
        await asyncio.wait_for(stalls.left.wait(), LONG)


async def test_being_cancelled_while_waiting_ends_the_request_at_the_server(server: FaultServer) -> None:
    stalls = Stalls(head=False)
    server.script(stalls)
    async with model_at(server.base_url) as model, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ask(model))
        await asyncio.wait_for(stalls.reached.wait(), LONG)
        asking.cancel()
        await asyncio.wait_for(stalls.left.wait(), LONG)
    assert asking.cancelled()


# What a server refuses to be asked


async def test_a_model_that_wants_the_newer_limit_is_asked_again_and_it_is_remembered(
    server: FaultServer,
) -> None:
    server.script(Fails(400, {"param": "max_tokens", "code": "unsupported_parameter"}))
    async with model_at(server.base_url) as model:
        for _ in range(2):
            assert (await ask(model))[2] is None
    assert [request.body.get("max_tokens") for request in server.requests] == [50, None, None]
    assert [request.body.get("max_completion_tokens") for request in server.requests] == [None, 50, 50]


async def test_a_limit_that_is_only_too_high_is_not_renamed(server: FaultServer) -> None:
    _, error = await failure(server, Fails(400, {"param": "max_tokens", "code": "invalid_value"}))
    assert type(error) is ModelMalformed
    assert "param max_tokens" in str(error)
    assert len(server.requests) == 1


async def test_a_server_that_does_not_know_stream_options_is_asked_once_without_and_remembered(
    server: FaultServer,
) -> None:
    server.script(Fails(422, {"message": "extra inputs are not permitted"}))
    async with model_at(server.base_url) as model:
        for _ in range(2):
            _, finished, _ = await ask(model)
            assert finished is not None
            assert finished.usage is None
    assert ["stream_options" in request.body for request in server.requests] == [True, False, False]


async def test_several_objections_are_met_one_after_the_other(server: FaultServer) -> None:
    server.script(
        Fails(400, {"param": "max_tokens", "code": "unsupported_parameter"}),
        Fails(400, {"param": "temperature", "code": "unsupported_value"}),
        Fails(400, {"param": "stream_options.include_usage", "code": None}),
    )
    async with OpenAIModel(base_url=server.base_url, api_key=None, model="fault", temperature=0.5) as model:
        assert (await ask(model))[2] is None
    assert {"max_tokens", "temperature", "stream_options"}.isdisjoint(server.requests[-1].body)


async def test_a_request_that_is_refused_either_way_is_not_asked_a_third_time(server: FaultServer) -> None:
    bad = Fails(400, {"message": "no", "type": "invalid_request_error"})
    _, error = await failure(server, bad, bad)
    assert type(error) is ModelMalformed
    assert len(server.requests) == 2
    await reply(server)
    assert "stream_options" in server.requests[-1].body


async def test_a_proven_request_is_not_guessed_at_again(server: FaultServer) -> None:
    async with model_at(server.base_url) as model:
        await ask(model)
        server.script(Fails(400, {"message": "no"}))
        assert type((await ask(model))[2]) is ModelMalformed
    assert len(server.requests) == 2


# How it goes wrong before any text

TOO_LONG_BODIES = [
    (
        {"type": "exceed_context_size_error", "code": 400, "n_prompt_tokens": 9031, "n_ctx": 2048},
        (2048, 9031),
    ),
    (
        {
            "code": "context_length_exceeded",
            "message": "This model's maximum context length is 8192 tokens. However, your messages resulted "
            "in 8227 tokens.",
        },
        (8192, 8227),
    ),
    (
        {
            "code": 400,
            "type": "BadRequestError",
            "message": "This model's maximum context length is 6048 tokens. However, you requested 6616 "
            "tokens (568 in the messages, 6048 in the completion).",
        },
        (6048, 568),
    ),
    (
        {
            "code": 400,
            "message": "'max_tokens' is too large: 900. This model's maximum context length is 1000 tokens "
            "and your request has 200 input tokens (900 > 1000 - 200).",
            "param": "max_tokens",
        },
        (1000, 200),
    ),
    (
        {"type": "invalid_request_error", "message": "prompt is too long: 208656 tokens > 200000 maximum"},
        (200000, 208656),
    ),
    (
        {
            "code": 400,
            "status": "INVALID_ARGUMENT",
            "message": "The input token count (1500) exceeds the maximum number of tokens allowed (1000).",
        },
        (1000, 1500),
    ),
    ({"code": "context_length_exceeded", "message": "Please reduce the length."}, (None, None)),
    ({"message": "the input length exceeds the context length"}, (None, None)),
]


@pytest.mark.parametrize(("body", "numbers"), TOO_LONG_BODIES)
async def test_a_prompt_that_is_too_long_is_known_with_its_numbers(
    server: FaultServer, body: dict[str, object], numbers: tuple[int | None, int | None]
) -> None:
    _, error = await failure(server, Fails(400, body))
    assert isinstance(error, PromptTooLong)
    assert (error.limit, error.counted) == numbers
    assert len(server.requests) == 1


async def test_a_prompt_that_is_too_long_is_known_inside_a_stream_too(server: FaultServer) -> None:
    inside = {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 8}}
    for fault in (Sends("", [inside]), Answers(json.dumps(inside))):
        _, error = await failure(server, fault)
        assert isinstance(error, PromptTooLong)
        assert (error.limit, error.counted) == (8, 9)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fails(401, {"code": "invalid_api_key"}), ModelUnauthorized),
        (Fails(402, {"message": "Insufficient Balance"}), ModelUnauthorized),
        (Fails(403), ModelUnauthorized),
        (Fails(404, {"code": "model_not_found"}), ModelMissing),
        (Fails(400, {"code": "model_not_found"}), ModelMissing),
        (Fails(429), RateLimited),
        (Fails(500), ModelBroken),
        (Fails(503, {"code": 503, "type": "unavailable_error"}), ModelBroken),
        (Fails(503, headers={"Retry-After": "3"}), RateLimited),
        (Fails(504), ModelTooSlow),
        (Fails(413), PromptTooLong),
        (Fails(409), ModelMalformed),
        (Fails(400, {"code": "content_filter"}), ModelRefused),
        (Fails(400, {"message": "Content Exists Risk", "type": "invalid_request_error"}), ModelRefused),
        (Fails(500, body="just words"), ModelBroken),
        (Fails(500, body=[{"error": {"code": 500}}]), ModelBroken),
        (Says("Sorry", finish="error"), ModelInterrupted),
        (Says("", finish="content_filter"), ModelRefused),
        (Sends("", [chunk({"refusal": "I will not."}), chunk({}, finish="stop")]), ModelRefused),
        (Says(""), ModelSilent),
        (Says(" \n "), ModelSilent),
        (Says("<think>hm</think>\n"), ModelSilent),
        (Says("", reasoning="hm", finish="length"), ModelSilent),
        (Ends(""), ModelMalformed),
        (Sends("", [chunk({"role": "assistant"})]), ModelBroken),
        (Sends("", ['{"choices": [']), ModelMalformed),
        (Sends("", [{"error": {"message": "out of memory"}}]), ModelBroken),
        (Sends("", ["[]", "[DONE]"]), ModelBroken),
        (Breaks(""), ModelUnreachable),
        (HangsUp(), ModelUnreachable),
        (Answers("<html><body>Sign in</body></html>", kind="text/html"), ModelMalformed),
        (Answers("not json at all"), ModelMalformed),
        (Answers('{"error": {"message": "out of memory"}}'), ModelMalformed),
    ],
)
async def test_each_way_of_going_wrong_has_its_type(
    server: FaultServer, fault: Fault, kind: type[ModelError]
) -> None:
    _, error = await failure(server, fault, fault)
    assert type(error) is kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after-ms": "250", "Retry-After": "7"}, 0.25),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
async def test_the_wait_that_the_server_asks_for_is_kept(
    server: FaultServer, headers: dict[str, str], seconds: float | None
) -> None:
    _, error = await failure(server, Fails(429, headers=headers))
    assert isinstance(error, RateLimited)
    assert error.retry_after == seconds


async def test_an_empty_account_is_told_from_a_busy_server(server: FaultServer) -> None:
    _, error = await failure(server, Fails(429, {"code": "insufficient_quota"}))
    assert isinstance(error, ModelUnauthorized)  # waiting mends nothing
    assert "insufficient_quota" in str(error)


async def test_a_refused_connection_and_an_unknown_name_are_unreachable() -> None:
    for url in (refused_url(), "http://no-such-host.invalid/v1"):
        async with model_at(url) as model:
            assert type((await ask(model))[2]) is ModelUnreachable


@pytest.mark.parametrize("stalls", [Stalls(), Stalls(head=False), Stalls(alive=5)])
async def test_a_first_token_that_does_not_come_in_time_is_too_slow(
    server: FaultServer, stalls: Stalls
) -> None:
    text, error = await failure(server, stalls, patience=SHORT)
    assert (text, type(error)) == ("", ModelTooSlow)
    await asyncio.wait_for(stalls.left.wait(), LONG)


# How it goes wrong after some text


@pytest.mark.parametrize(
    "fault",
    [
        Breaks("Once upon a time"),
        Ends("Once upon a time"),
        Sends("Once upon a time", ['{"choices": [']),
        Sends("Once upon a time", [{"error": {"message": "out of memory"}}]),
        Says("Once upon a time", finish="content_filter"),
    ],
)
async def test_after_some_text_it_is_an_interruption_and_the_text_has_been_passed_on(
    server: FaultServer, fault: Fault
) -> None:
    text, error = await failure(server, fault)
    assert text == "Once upon a time"
    assert type(error) is ModelInterrupted


async def test_a_stall_in_mid_sentence_is_an_interruption_because_of_slowness(server: FaultServer) -> None:
    text, error = await failure(server, Stalls("Once upon a time"), patience=SHORT)
    assert text == "Once upon a time"
    assert type(error) is ModelInterrupted
    assert isinstance(error.__cause__, ModelTooSlow)


@pytest.mark.parametrize("after", ['{"choices": [', {"error": {"message": "no counts"}}])
async def test_what_breaks_after_the_end_of_the_reply_harms_nobody(
    server: FaultServer, after: object
) -> None:
    text, finished = await reply(server, Sends("Hello.", [chunk({}, finish="stop"), after]))
    assert text == "Hello."
    assert finished.usage is None


async def test_text_that_waited_for_a_tag_is_given_out_at_the_end(server: FaultServer) -> None:
    assert (await reply(server, Says("I <th")))[0] == "I <th"


# Whole answers, and looking around


async def test_a_whole_answer_carries_text_model_and_counts(server: FaultServer) -> None:
    server.script(Says("  A note.\n"))
    async with model_at(server.base_url) as model:
        completion = await model.complete(ASKED, max_tokens=50)
    assert (completion.text, completion.model) == ("A note.", "fault")
    assert completion.usage == Usage(prompt=4, completion=2)


@pytest.mark.parametrize(
    ("fault", "kind", "cause"),
    [
        (Fails(500), CompletionFault, ModelBroken),
        (Says("<think>hm"), CompletionFault, ModelSilent),
        (Breaks("Half a note"), CompletionFault, ModelUnreachable),
        (Fails(400, {"code": "context_length_exceeded"}), CompletionTooLong, PromptTooLong),
    ],
)
async def test_a_whole_answer_fails_as_memory_knows_it(
    server: FaultServer, fault: Fault, kind: type[CompletionFault], cause: type[ModelError]
) -> None:
    server.script(fault)
    async with model_at(server.base_url) as model:
        with pytest.raises(CompletionFault) as caught:
            await model.complete(ASKED, max_tokens=50)
    assert type(caught.value) is kind
    assert type(caught.value.__cause__) is cause


async def test_the_check_finds_a_model_that_answers_even_if_it_only_thinks(server: FaultServer) -> None:
    server.models = [{"id": "fault"}, {"id": "other"}]
    server.script(Says("Hi."), Says("", reasoning="hm", finish="length"))
    async with model_at(server.base_url) as model:
        for _ in range(2):
            found = await model.check()
            assert (found.model, found.listed) == ("fault", ("fault", "other"))


async def test_the_check_names_the_models_there_are_instead_of_a_missing_one(server: FaultServer) -> None:
    server.models = [{"id": "fault-2"}]
    server.script(Fails(404, {"code": "model_not_found"}))
    async with model_at(server.base_url) as model:
        with pytest.raises(ModelMissing, match=r"'fault'.*fault-2"):
            await model.check()


async def test_the_check_needs_no_list(server: FaultServer) -> None:
    server.script(Fails(404), path=MODELS)
    async with model_at(server.base_url) as model:
        assert (await model.check()).listed == ()


@pytest.mark.parametrize(
    ("models", "props", "limit"),
    [
        ([{"id": "fault", "meta": {"n_ctx": 2048, "n_ctx_train": 8192}}], None, 2048),
        ([{"id": "other", "max_model_len": 1}, {"id": "fault", "max_model_len": 4096}], None, 4096),
        ([{"id": "fault", "context_length": 128000}], None, 128000),
        ([{"id": "a-file-name", "meta": {"n_ctx": 2048}}], None, 2048),
        ([{"id": "other", "context_length": 1}, {"id": "third", "context_length": 2}], None, None),
        ([{"id": "fault"}], {"default_generation_settings": {"n_ctx": 512}}, 512),
        ([{"id": "fault"}], {"default_generation_settings": None}, None),
        ([{"id": "fault"}], None, None),
        ([], None, None),
    ],
)
async def test_the_context_limit_is_read_where_a_server_tells_it(
    server: FaultServer, models: list[dict[str, object]], props: dict[str, object] | None, limit: int | None
) -> None:
    server.models, server.props = [*models], props
    async with model_at(server.base_url) as model:
        assert await model.context_limit() == limit


async def test_the_context_limit_of_a_server_that_is_not_there_is_unknown() -> None:
    async with model_at(refused_url()) as model:
        assert await model.context_limit() is None


# Secrets


async def test_neither_the_key_nor_the_prompt_is_in_any_error_even_if_the_server_repeats_them(
    server: FaultServer,
) -> None:
    words = {"message": f"bad key {KEY} for 'Hello there.'", "type": "x", "code": KEY, "param": KEY}
    faults: list[Fault] = [Fails(status, words) for status in (400, 401, 404, 429, 500)]
    faults += [Sends("", [{"error": words}]), Answers(json.dumps({"error": words}))]
    for fault in faults:
        _, error = await failure(server, fault, fault)
        shown = "".join(traceback.format_exception(error)) + repr(error)
        assert KEY not in shown
        assert "Hello there." not in shown


async def test_a_key_that_cannot_be_sent_is_not_told(server: FaultServer) -> None:
    async with model_at(server.base_url, key=KEY + "’") as model:
        _, _, error = await ask(model)
        assert isinstance(error, ModelUnauthorized)
        assert KEY not in "".join(traceback.format_exception(error))
        assert KEY not in repr(model)
