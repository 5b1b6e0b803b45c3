"""The terminal as a platform: lines in, text out; what a person at a screen and a pipe have in common.

Pure: the two ways of reading and showing are in terminal_pipe.py and terminal_screen.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bot.message import Author, IncomingMessage, Platform
from bot.platforms.base import Choice, Sink

_KEPT = frozenset("\n\t")
# Not control characters, and yet they change how what follows is shown: directions and line breaks.
_DIRECTIONS = frozenset("\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_LONGEST_NAME = 64


class Receive(Protocol):
    """Takes a message, or a picked choice; the future is set when it has been answered."""

    def __call__(
        self, message: IncomingMessage, sink: Sink, *, picked: str | None = None
    ) -> asyncio.Future[None]: ...


def valid_name(name: str) -> bool:
    """Tell whether somebody in the terminal can be called this."""
    return bool(name) and name == name.strip() and len(name) <= _LONGEST_NAME and name.isprintable()


def from_line(line: str, *, user: str, at: datetime, locale: str) -> IncomingMessage:
    """Make a message of a typed line."""
    return IncomingMessage(
        platform=Platform.TERMINAL,
        message_id="",
        chat=user,
        author=Author(account=user, name=user, locale=locale),
        text=visible(line).strip(),
        at=at,
    )


def visible(text: str) -> str:
    """Leave out what would command the terminal instead of being shown."""
    return "".join(
        char
        for char in text.replace("\r\n", "\n")
        if char in _KEPT or not (ord(char) < 32 or 127 <= ord(char) < 160 or char in _DIRECTIONS)
    )


def numbered(text: str, choices: Sequence[Choice]) -> str:
    """Write a message with its choices, each with the number that picks it."""
    return "\n".join([text, *(f"{number}) {choice.label}" for number, choice in enumerate(choices, 1))])


def picked(line: str, choices: Sequence[Choice]) -> str | None:
    """Return the token of the choice that a line picks: by its number, or by how its label begins."""
    said = line.strip().casefold()
    if not said:
        return None
    if said.isdecimal() and 1 <= int(said) <= len(choices):
        return choices[int(said) - 1].token
    begun = [choice for choice in choices if choice.label.casefold().startswith(said)]
    return begun[0].token if len(begun) == 1 else None
