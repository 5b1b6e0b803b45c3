"""What a command is: a row of the one table that every platform shows in its own way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.commands.offers import Offers
from bot.platforms.base import Choice
from bot.texts import Texts
from memory import Audience, Memory, MemoryId


@dataclass(frozen=True, slots=True)
class Call:
    """A command as somebody gave it, and what it may work with."""

    memory_id: MemoryId
    audience: Audience
    arguments: str
    at: datetime
    texts: Texts
    memory: Memory
    offers: Offers
    zone: ZoneInfo  # of people who have set none
    stop: Callable[[], bool]  # ends the reply that is running in this conversation


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says; private ones are for their person alone, also in a group."""

    text: str
    choices: tuple[Choice, ...] = field(default=())
    private: bool = True


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table; its texts are `help.NAME` and `usage.NAME` in the catalogues."""

    name: str
    run: Callable[[Call], Awaitable[Answer]]
    at_once: bool = False  # not queued behind the reply that is running
