"""The composition root: what it asks of the outside before a talk can begin."""

from __future__ import annotations

import asyncio

from bot.app import context_of
from bot.chat.openai import OpenAIModel
from bot.config import load


async def test_a_server_that_tells_nothing_keeps_nobody_waiting_for_the_first_prompt() -> None:
    asked, over = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/v1"
        async with OpenAIModel(base_url=url, api_key=None, model="m") as model:
            config = load(path=None, env={"OMOIDE_LLM__BASE_URL": url, "OMOIDE_LLM__MODEL": "m"})
            assert await asyncio.wait_for(context_of(config, model, within=0.2), 20) == 8192
        assert asked.is_set()
        over.set()
