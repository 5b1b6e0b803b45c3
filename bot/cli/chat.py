"""`omoide chat`: a conversation in the terminal, at a screen or through a pipe."""

from __future__ import annotations

import argparse
import io
import sys
from dataclasses import replace

from bot.app import App, open_app
from bot.chat.prompt import placed
from bot.cli.running import log_to_file, quiet, tell, user_name
from bot.config import Config
from bot.errors import UserError
from bot.message import Platform, memory_id_of
from bot.platforms.terminal_pipe import PipeTerminal
from bot.texts import Texts
from memory import DIRECT, StoreFault


async def chat(arguments: argparse.Namespace, config: Config, texts: Texts) -> int:
    """Talk until the input ends; the session stays open and ends when its time has come."""
    if sys.stdin is None or sys.stdout is None:
        raise UserError("standard input or output is closed: there is nobody to talk to")
    user = user_name(arguments.user)
    if arguments.session_timeout is not None:
        config = replace(config, session=replace(config.session, timeout=arguments.session_timeout))
    log_to_file(config, "chat.log")
    at_screen = sys.stdin.isatty() and sys.stdout.isatty()
    async with open_app(config, tell=tell if at_screen else quiet) as app:
        if at_screen:
            await _at_screen(app, config, texts, user)
        else:
            await _through_pipe(app, texts, user)
    return 0


async def _through_pipe(app: App, texts: Texts, user: str) -> None:
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    pipe = PipeTerminal(sys.stdin, sys.stdout, app.clock, user=user, locale=texts.language)
    await pipe.run(app.dispatcher.receive)


async def _at_screen(app: App, config: Config, texts: Texts, user: str) -> None:
    from bot.platforms.terminal_screen import Screen

    companion = config.persona.name
    tell(texts("chat.head", companion=companion))
    if app.local_model:
        tell(texts("chat.small-model"))
    screen = Screen(app.clock, user=user, companion=companion, locale=texts.language)
    greeting = placed(config.persona.greeting, user=user, char=companion) if await _new(app, user) else ""
    await screen.run(app.dispatcher.receive, greeting=greeting)


async def _new(app: App, user: str) -> bool:
    """Tell whether this person comes for the first time; while nobody can say, they are not greeted."""
    try:
        overview = await app.memory.archive.overview(
            memory_id_of(Platform.TERMINAL, user), in_front_of=DIRECT
        )
    except StoreFault:
        return False
    return not overview.turns
