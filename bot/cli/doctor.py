"""`omoide doctor`: looks at everything that has to work, and says how to mend what does not."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass

from bot import log
from bot.app import context_of, open_model, open_store, zone_of
from bot.cli.running import quiet, show
from bot.config import Config, hosts_of
from bot.errors import (
    LocalServerError,
    ModelError,
    ModelMissing,
    ModelUnauthorized,
    ModelUnreachable,
    RateLimited,
)
from bot.texts import Texts
from memory import Archive, StoreFault, StoreUnavailable, SystemClock

_MENDS: dict[type[ModelError], str] = {
    ModelUnreachable: "start the server, or set OMOIDE_LLM__BASE_URL to where it is",
    ModelUnauthorized: "set OMOIDE_LLM__API_KEY to a key that this server knows and that has credit",
    ModelMissing: "set OMOIDE_LLM__MODEL to a model that this server has",
    RateLimited: "wait, or look at the limits of the account",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and how to mend it if it is not well."""

    subject: str
    found: str
    mend: str = ""

    def __str__(self) -> str:
        mark = "!!" if self.mend else "ok"
        return f"{mark}  {self.subject}: {self.found}" + (f"\n      mend: {self.mend}" if self.mend else "")


async def doctor(arguments: argparse.Namespace, config: Config, texts: Texts) -> int:
    """Check everything; 1 if something has to be mended."""
    log.set_up(level="error", form=config.log.format)
    ill = False
    async for finding in _examine(config, quick=arguments.quick):
        show(str(finding))
        ill = ill or bool(finding.mend)
    return int(ill)


async def _examine(config: Config, *, quick: bool) -> AsyncIterator[Finding]:
    yield Finding("settings", f"read, all sound; time zone {zone_of(config).key}")
    yield _data_dir(config)
    async for finding in _database(config):
        yield finding
    if not quick:
        yield await _model(config)


def _data_dir(config: Config) -> Finding:
    folder = config.data_dir
    try:
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        sound = os.access(nearest, os.W_OK | os.X_OK) and nearest.is_dir()
    except OSError:  # not even to be looked at
        sound = False
    if sound:
        return Finding("data folder", str(folder))
    return Finding(
        "data folder", f"{folder} cannot be written to", "give it to this user, or set OMOIDE_DATA_DIR"
    )


async def _database(config: Config) -> AsyncIterator[Finding]:
    uri = config.mongo.uri
    where = f"at {hosts_of(uri)}" if uri else "embedded, in the data folder"
    try:
        async with open_store(config, tell=quiet) as store:
            name = await store.ping()
            await store.prepare()
            yield Finding("database", f"{name}, {where}, driver {config.mongo.driver}")
            unfinished = await Archive(store, SystemClock()).unfinished()
    except LocalServerError as error:
        yield Finding("database", f"{where}: not running", str(error))
        return
    except StoreUnavailable as error:
        yield Finding("database", f"{where}: {error}", "start it, or set OMOIDE_MONGO__URI to where it is")
        return
    except StoreFault as error:
        yield Finding("database", f"{where}: {error}", "see the message; the URI is OMOIDE_MONGO__URI")
        return
    failed = ", ".join(f"{count} x {kind}" for kind, count in unfinished.faults.items())
    if failed:
        mend = "mend the model; they are tried again by themselves, and their turns are kept"
        yield Finding("summaries", f"{unfinished.waiting} sessions wait for theirs ({failed})", mend)
    else:
        yield Finding("summaries", f"{unfinished.waiting} sessions wait for theirs")


async def _model(config: Config) -> Finding:
    llm = config.llm
    where = "bundled" if llm.local else f"at {llm.endpoint}"
    subject = f"model {llm.model_name}"
    try:
        async with open_model(config, tell=quiet) as model:
            await model.check()
            return Finding(subject, f"{where}, answers; takes {await context_of(config, model)} tokens")
    except LocalServerError as error:
        return Finding(subject, f"{where}: not running", str(error))
    except ModelError as error:
        mend = next(
            (text for kind, text in _MENDS.items() if isinstance(error, kind)), "look at its server's log"
        )
        return Finding(subject, f"{where}: {error}", mend)
