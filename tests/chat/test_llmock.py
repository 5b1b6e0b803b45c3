"""The model against a mock server that others wrote: what they think a broken server does, we survive."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from bot.chat.model import Finished, TextPiece
from bot.chat.openai import OpenAIModel
from bot.errors import (
    ModelBroken,
    ModelError,
    ModelInterrupted,
    ModelSilent,
    ModelTooSlow,
    ModelUnauthorized,
    RateLimited,
)
from memory import PromptMessage

pytestmark = pytest.mark.wire

ASKED = (PromptMessage("user", "Tell me about the sea."),)
START = "from llmock.cli import app; app()"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start the server once, on a port of its own choice, and wait until it says that it listens."""
    command = [sys.executable, "-c", START, "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout is not None
        try:
            for line in child.stdout:
                if found := re.search(rb"running on (http://127\.0\.0\.1:[1-9]\d*)", line):
                    yield found[1].decode()
                    break
            else:
                pytest.fail("the mock server did not start")
        finally:
            child.terminate()


async def ask(
    address: str, *behaviors: dict[str, object], patience: float = 20.0
) -> tuple[str, Finished | None, ModelError | None]:
    await asyncio.to_thread(_script, address, behaviors)
    texts: list[str] = []
    finished = None
    async with OpenAIModel(
        base_url=f"{address}/v1", api_key="any", model="gpt-4o", timeout=patience
    ) as model:
        try:
            async with aclosing(model.stream(ASKED, max_tokens=200)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, TextPiece):
                        texts.append(piece.text)
                    else:
                        finished = piece
        except ModelError as error:
            return "".join(texts), None, error
    return "".join(texts), finished, None


def _script(address: str, behaviors: tuple[dict[str, object], ...]) -> None:
    url = f"{address}/_llmock/scenario"
    urllib.request.urlopen(urllib.request.Request(url, method="DELETE")).close()
    if behaviors:
        body = json.dumps({"behaviors": behaviors}).encode()
        head = {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(url, body, head)).close()


async def test_a_good_reply_comes_whole_with_its_counts(address: str) -> None:
    text, finished, error = await ask(address, {"type": "reply", "text": "The sea is wide."})
    assert (text, error) == ("The sea is wide.", None)
    assert finished is not None
    assert finished.usage is not None
    assert finished.usage.prompt > 0


async def test_reasoning_in_the_text_is_not_shown(address: str) -> None:
    text, _, _ = await ask(address, {"type": "reply", "text": "<think>how wide?</think>The sea is wide."})
    assert text == "The sea is wide."


async def test_an_empty_reply_is_silence(address: str) -> None:
    _, _, error = await ask(address, {"type": "reply", "text": ""})
    assert type(error) is ModelSilent


@pytest.mark.parametrize(
    ("status", "kind"), [(401, ModelUnauthorized), (429, RateLimited), (500, ModelBroken)]
)
async def test_an_error_status_has_its_type(address: str, status: int, kind: type[ModelError]) -> None:
    _, _, error = await ask(address, {"type": "fail", "status": status, "retry_after": 3})
    assert type(error) is kind
    if isinstance(error, RateLimited):
        assert error.retry_after == 3


@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed"])
async def test_a_stream_that_breaks_is_an_interruption_after_the_text_so_far(address: str, kind: str) -> None:
    text, _, error = await ask(
        address,
        {"type": "reply", "text": "The sea is wide and deep and blue."},
        {"type": "stream_fault", "kind": kind, "after_chunks": 4},
    )
    assert "The sea is wide and deep and blue.".startswith(text)
    assert text
    assert type(error) is ModelInterrupted


async def test_a_first_token_that_is_late_is_too_slow(address: str) -> None:
    text, _, error = await ask(address, {"type": "slow_first_token", "seconds": 60}, patience=0.3)
    assert (text, type(error)) == ("", ModelTooSlow)
