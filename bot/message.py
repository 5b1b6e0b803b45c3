"""The one form of an incoming message, whichever platform it came from, and whose memory it belongs to.

Adapters make this from what their library gives them; nothing behind them knows a platform any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory import DIRECT, Audience, MemoryId


class Platform(StrEnum):
    """Where messages come from; the value is the first part of memory ids."""

    TERMINAL = "terminal"
    DISCORD = "discord"
    TELEGRAM = "telegram"


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote: known by `account`, which never changes; `name` is only what is shown."""

    account: str
    name: str
    locale: str = ""  # as the platform reports it ("de", "zh-hans"); "" if it does not
    bot: bool = False


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that this one answers."""

    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that came with a message and is no text."""

    kind: str
    name: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """One message of a person."""

    platform: Platform
    message_id: str
    chat: str  # the platform's id of the direct chat, group, channel, thread or topic
    author: Author
    text: str
    at: datetime
    direct: bool = True
    addressed: bool = True  # meant for the bot: always in a direct chat, by mention or reply elsewhere
    quoted: Quoted | None = None
    attachments: tuple[Attachment, ...] = ()


def memory_id_of(platform: Platform, account: str) -> MemoryId:
    """Return whose memory an account's words go to; the only place where memory ids are made."""
    return MemoryId(f"{platform.value}:{account}")


def audience_of(message: IncomingMessage) -> Audience:
    """Return who was there: the direct chats of a person are one audience, each group is one of its own."""
    return DIRECT if message.direct else Audience(f"{message.platform.value}:{message.chat}")
