"""The commands, one table; platforms show it natively, or as lines that begin with a slash."""

from __future__ import annotations

import difflib

from bot.commands.command import Answer, Call, Command
from bot.commands.conversation import begin_anew, stop_reply, tell_or_set_zone
from bot.commands.forgetting import ask_what_to_forget
from bot.commands.offers import Offers
from bot.commands.remembering import show_memory

__all__ = ["COMMANDS", "Answer", "Call", "Command", "Offers", "named", "parse", "unknown"]


async def _help(call: Call) -> Answer:
    lines = [call.texts("help.head")]
    for command in COMMANDS:
        usage, about = call.texts(f"usage.{command.name}"), call.texts(f"help.{command.name}")
        lines.append(call.texts("help.line", usage=usage, about=about))
    return Answer("\n".join(lines))


COMMANDS: tuple[Command, ...] = (
    Command("memory", show_memory),
    Command("forget", ask_what_to_forget),
    Command("new", begin_anew),
    Command("stop", stop_reply, at_once=True),
    Command("timezone", tell_or_set_zone),
    Command("help", _help, at_once=True),
)


def parse(text: str) -> tuple[str, str] | None:
    """Split "/name arguments" into both; None when the text is no command but talk."""
    text = text.strip()
    head = "".join(text.split(maxsplit=1)[:1])
    name, rest = head[1:], text[len(head) :]
    if not head.startswith("/") or not name.isalpha() or rest.startswith("\n"):
        return None  # a path, a fraction, a lone slash
    return name.casefold(), rest.strip()


def named(name: str) -> Command | None:
    """Return the command of this name."""
    return next((command for command in COMMANDS if command.name == name), None)


def unknown(call: Call, name: str) -> Answer:
    """Say that there is no such command, and which one may be meant."""
    nearest = difflib.get_close_matches(name, [command.name for command in COMMANDS], n=1)
    if nearest:
        return Answer(call.texts("nearest-command", command=f"/{name}", nearest=f"/{nearest[0]}"))
    return Answer(call.texts("unknown-command", command=f"/{name}"))
