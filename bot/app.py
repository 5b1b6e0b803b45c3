"""The composition root: the only place where things are built and put together.

Everything that has a lifetime is entered on one stack, in the order of need, and left in reverse.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import tzlocal

from bot.chat.engine import Engine
from bot.chat.model import ChatModel
from bot.chat.patience import Patience
from bot.chat.prompt import Persona
from bot.chat.yielding import Yielding
from bot.config import Config
from bot.dispatch import Dispatcher
from bot.local.database import EmbeddedDatabase
from bot.local.model import MODEL_CONTEXT, MODEL_REPLY, LocalModel
from memory import (
    Archive,
    BlockPolicy,
    Completer,
    Memory,
    MemorySettings,
    Store,
    SystemClock,
    WindowPolicy,
    find_zone,
    time_ordered_id,
)
from memory.stores.mongo import MongoStore

if TYPE_CHECKING:
    from bot.chat.openai import OpenAIModel

Tell = Callable[[str], None]

_DEFAULT_CONTEXT = 8192
_TOLD_WITHIN = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class App:
    """What a conversation needs, running."""

    memory: Memory
    dispatcher: Dispatcher
    clock: SystemClock
    local_model: bool


def zone_of(config: Config) -> ZoneInfo:
    """Return the zone of people who have set none: configured, or this machine's."""
    name = config.memory.timezone or tzlocal.get_localzone_name()
    return find_zone(name) or ZoneInfo("UTC")


@asynccontextmanager
async def open_store(config: Config, *, tell: Tell) -> AsyncIterator[Store]:
    """Connect to the database, starting the embedded one if none is configured.

    Raises LocalServerError, StoreFault.
    """
    async with AsyncExitStack() as stack:
        if config.mongo.uri is None:
            uri = await stack.enter_async_context(EmbeddedDatabase(config.data_dir, progress=tell))
        else:
            uri = config.mongo.uri.reveal()
        store = MongoStore.connect(
            uri, database=config.mongo.database, driver=config.mongo.driver, timeout=config.mongo.timeout
        )
        stack.push_async_callback(store.aclose)
        yield store


@asynccontextmanager
async def open_archive(config: Config, *, tell: Tell) -> AsyncIterator[Archive]:
    """Open what is stored, without a model. Raises LocalServerError, StoreFault."""
    async with open_store(config, tell=tell) as store:
        await store.prepare()
        yield Archive(store, SystemClock())


@asynccontextmanager
async def open_model(config: Config, *, tell: Tell) -> AsyncIterator[OpenAIModel]:
    """Reach the model, starting the bundled one if none is configured. Raises LocalServerError."""
    # Here, because this library takes a second to import, and what only looks at memory can do without.
    from bot.chat.openai import OpenAIModel

    llm = config.llm
    async with AsyncExitStack() as stack:
        base_url = llm.endpoint
        if llm.local:
            base_url = await stack.enter_async_context(LocalModel(config.data_dir, progress=tell))
        model = OpenAIModel(
            base_url=base_url,
            api_key=llm.api_key.reveal() if llm.api_key else None,
            model=llm.model_name,
            timeout=llm.timeout,
            temperature=llm.temperature,
        )
        yield await stack.enter_async_context(model)


async def context_of(config: Config, model: OpenAIModel, *, within: float = _TOLD_WITHIN) -> int:
    """Return how many tokens the model takes: configured, known, or asked from its server.

    A server that does not say so `within` seconds is not waited for; one that finds a prompt too long says
    so then.
    """
    if config.llm.context_tokens is not None:
        return config.llm.context_tokens
    if config.llm.local:
        return MODEL_CONTEXT
    try:
        async with asyncio.timeout(within):
            return await model.context_limit() or _DEFAULT_CONTEXT
    except TimeoutError:
        return _DEFAULT_CONTEXT


@asynccontextmanager
async def open_app(config: Config, *, tell: Tell) -> AsyncIterator[App]:
    """Start everything that a conversation needs. Raises LocalServerError, StoreFault."""
    clock = SystemClock()
    zone = zone_of(config)
    async with AsyncExitStack() as stack:
        # The slowest library is loaded while the database starts.
        loading = asyncio.get_running_loop().run_in_executor(None, import_module, "bot.chat.openai")
        store = await stack.enter_async_context(open_store(config, tell=tell))
        await loading
        model = await stack.enter_async_context(open_model(config, tell=tell))
        patient: ChatModel = Patience(model, clock, jitter=random.random)
        background: Completer = model  # it is asked again by its own, slower, plan
        if config.llm.local:
            patient = background = Yielding(patient, model)
        settings = MemorySettings(
            zone=zone,
            session_timeout=config.session.timeout,
            context_tokens=await context_of(config, model),
            summary_tokens=config.memory.summary_tokens,
            window=WindowPolicy(
                mode=config.window.mode,
                max_tokens=config.window.max_tokens,
                max_messages=config.window.max_messages,
                evict_to=config.window.evict_to,
            ),
            block=BlockPolicy(
                recent_sessions=config.session.recent_sessions, block_tokens=config.memory.block_tokens
            ),
            grace=config.shutdown.grace,
        )
        owner = f"{socket.gethostname()}-{os.getpid()}-{time_ordered_id(clock.now())}"
        memory = await stack.enter_async_context(
            Memory(store, background, clock, settings=settings, owner=owner)
        )
        persona = Persona(config.persona.name, config.persona.prompt, config.persona.language)
        engine = Engine(
            memory,
            patient,
            persona,
            max_tokens=min(config.llm.max_tokens, MODEL_REPLY) if config.llm.local else config.llm.max_tokens,
            memory_role=config.memory.role,
        )
        dispatcher = Dispatcher(engine, memory, clock, zone=zone, language=config.persona.language)
        stack.push_async_callback(dispatcher.aclose, grace=config.shutdown.grace)
        yield App(memory, dispatcher, clock, config.llm.local)
