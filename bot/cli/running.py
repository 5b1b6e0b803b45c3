"""What every command has around it: settings, an event loop, signals, and errors told to a person."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import getpass
import json
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TextIO

from bot import log
from bot.config import Config, load
from bot.errors import BotError, ConfigError, UserError
from bot.message import Platform, memory_id_of
from bot.platforms.terminal import valid_name, visible
from bot.texts import Texts
from memory import MemoryFault, MemoryId

Work = Callable[[argparse.Namespace, Config, Texts], Coroutine[Any, Any, int]]


def guarded(work: Work) -> Callable[[argparse.Namespace, Mapping[str, str]], int]:
    """Make a command of a coroutine: with settings read, and every error of ours as one line."""

    def command(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
        try:
            config = load(path=None, env=env)
            return asyncio.run(_until_signal(work(arguments, config, texts_of(config, env))))
        except (ConfigError, UserError) as error:
            tell(f"omoide: {error}")
            return 2
        except (BotError, MemoryFault) as error:
            tell(f"omoide: {error}")
            return 1
        except asyncio.CancelledError:
            return 143  # ended by SIGTERM or SIGHUP, in order

    return command


async def _until_signal(work: Coroutine[Any, Any, int]) -> int:
    """Run the work; SIGTERM and a closed terminal end it as Ctrl-C does, with everything left in order."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine always runs in a task
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # no signals on this platform's loop
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, task.cancel)
    return await work


def log_to_file(config: Config, name: str) -> None:
    """Send the log to a file of this name in the data folder. Raises ConfigError if it cannot be."""
    file = config.data_dir / "log" / name
    try:
        log.set_up(level=config.log.level, form=config.log.format, file=file)
    except OSError as error:
        why = f"{file} cannot be written ({error.strerror or error})"
        raise ConfigError(f"data_dir: {why}; give it to this user, or set OMOIDE_DATA_DIR") from error


def show(text: str, *, end: str = "\n") -> None:
    """Print what was asked for; it may come from models, servers and files, and commands no terminal."""
    print(_writable(visible(text), sys.stdout), end=end, flush=True)


def as_text(value: object, *, indent: int) -> str:
    """Write a value as JSON, escaped where standard output cannot write every character."""
    whole = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    return json.dumps(value, ensure_ascii=not whole, indent=indent)


def _writable(text: str, stream: TextIO | None) -> str:
    """Replace what this stream, which may be closed, has no bytes for."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def tell(text: str) -> None:
    """Say something beside the output: progress, errors."""
    print(_writable(visible(text), sys.stderr), file=sys.stderr, flush=True)


def quiet(text: str) -> None:
    """Say nothing: a script wants only what it asked for."""


def texts_of(config: Config, env: Mapping[str, str]) -> Texts:
    """Return our sentences in the configured language, or the machine's."""
    if config.persona.language != "auto":
        return Texts(config.persona.language)
    return Texts(env.get("LC_ALL") or env.get("LC_MESSAGES") or env.get("LANG") or "en")


def user_name(wanted: str | None) -> str:
    """Return who talks in the terminal. Raises UserError."""
    name = wanted if wanted is not None else _login_name()
    if not valid_name(name):
        raise UserError(f"{name!r} is no name for --user: 1 to 64 visible characters, no blank at an end")
    return name


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise UserError("this system does not know your login name; give one with --user") from error


def person(who: str) -> MemoryId:
    """Return the memory id that NAME|ID on the command line means. Raises UserError."""
    platform, colon, account = who.partition(":")
    if colon and platform in {one.value for one in Platform} and account:
        return memory_id_of(Platform(platform), account)
    if not valid_name(who):
        raise UserError(f"{who!r} is neither a name nor a memory id such as discord:1234")
    return memory_id_of(Platform.TERMINAL, who)
