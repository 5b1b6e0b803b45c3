"""`omoide memory | forget | export | import`: what is stored, without a model and without a talk."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from bot.app import open_archive, zone_of
from bot.cli.running import as_text, log_to_file, person, quiet, show, tell
from bot.commands.forgetting import counts_text
from bot.commands.remembering import overview_lines
from bot.config import Config
from bot.errors import UserError
from bot.platforms.terminal_pipe import lines
from bot.texts import Texts
from memory import DIRECT, Archive, MemoryId, Overview, from_json, moment, to_json, turn_to_json


async def memory(arguments: argparse.Namespace, config: Config, texts: Texts) -> int:
    """Show what is remembered of a person."""
    memory_id = person(arguments.who)
    async with _archive(config) as archive:
        overview = await archive.overview(memory_id, in_front_of=DIRECT)
        if arguments.json:
            print(as_text(as_json(overview), indent=2))
        else:
            show("\n".join(overview_lines(overview, texts, zone_of(config))))
            if not overview.sessions:
                await _say_who_is_known(archive, memory_id)
    return 0


def as_json(overview: Overview) -> dict[str, Any]:
    """Write an overview in the form that scripts rely on."""
    return {
        "memory_id": overview.memory_id,
        "turns": overview.turns,
        "window": [turn_to_json(turn) for turn in overview.window],
        "sessions": [
            {
                "id": view.session.session_id,
                "state": view.session.state.value,
                "audience": view.session.audience,
                "started_at": moment(view.session.started_at),
                "ended_at": moment(view.session.ended_at),
                "turns": view.turns,
                "summary": view.session.summary,
            }
            for view in overview.sessions
        ],
        "episodes": [],
        "facts": [],
    }


async def _say_who_is_known(archive: Archive, memory_id: MemoryId) -> None:
    platform = memory_id.partition(":")[0]
    known = await archive.known(f"{platform}:", limit=5)
    if known:
        tell(f"There is something of: {', '.join(known)}.")


async def forget(arguments: argparse.Namespace, config: Config, texts: Texts) -> int:
    """Erase everything of a person; 1 if something is left."""
    memory_id = person(arguments.who)
    async with _archive(config) as archive:
        plan = await archive.plan_forgetting(memory_id, DIRECT, "everything")
        if plan is None:
            show(texts("forget.nothing"))
            return 0
        counts = counts_text(plan.holdings, texts)
        if not arguments.yes and not await _sure(texts("forget.sure", counts=counts)):
            return 1
        erased = await archive.forget(plan)
    gone = counts_text(erased.gone, texts)
    if erased.left:
        show(texts("forget.left", counts=gone, left=counts_text(erased.left, texts)))
        return 1
    show(texts("forget.done", counts=gone))
    return 0


async def _sure(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UserError(f"{question} Say so with --yes.")
    show(f"{question} [y/N] ", end="")
    # Not read here: while it waited, no Ctrl-C would be heard, and no lease be kept.
    async with contextlib.aclosing(lines(sys.stdin)) as answers:
        async for answer in answers:
            return answer.strip().casefold() in {"y", "yes", "是"}
    return False


async def export(arguments: argparse.Namespace, config: Config, texts: Texts) -> int:
    """Write everything of a person as JSON."""
    memory_id = person(arguments.who)
    async with _archive(config) as archive:
        portrait = await archive.export(memory_id)
    if portrait is None:
        tell(f"There is nothing of {memory_id}.")
        return 1
    if arguments.output is None:
        print(as_text(to_json(portrait), indent=1))
    else:
        _write(Path(arguments.output), json.dumps(to_json(portrait), ensure_ascii=False, indent=1))
        tell(f"{len(portrait.turns)} turns in {len(portrait.sessions)} sessions are in {arguments.output}.")
    return 0


def _write(path: Path, text: str) -> None:
    """Put a file in place whole, or not at all, and readable for its owner only; write into all else."""
    try:
        if path.exists() and not path.is_file():
            path.write_text(f"{text}\n", encoding="utf-8")  # a device or a pipe is not to be replaced
        else:
            _replace(path.resolve(), text)  # nor is a link
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _replace(path: Path, text: str) -> None:
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


async def take_in(arguments: argparse.Namespace, config: Config, texts: Texts) -> int:
    """Take in an export; what is there already stays as it is."""
    portrait = from_json(_read(arguments.file))
    async with _archive(config) as archive:
        added = await archive.take_in(portrait)
    tell(
        f"{portrait.person.memory_id}: {added.turns} turns and {added.sessions} sessions added; "
        f"{added.known} were there already."
    )
    return 0


def _read(name: str) -> object:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        value: object = json.loads(text)
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror or error}") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"{name} is no JSON: {error}") from error
    return value


def _archive(config: Config) -> contextlib.AbstractAsyncContextManager[Archive]:
    log_to_file(config, "commands.log")
    return open_archive(config, tell=tell if sys.stderr.isatty() else quiet)
