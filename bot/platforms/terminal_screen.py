"""The terminal with a person before it: a prompt that stays while replies stream in above it.

Whole lines of a reply are printed for good; the line that is still growing is shown as part of the prompt.
So one can type, and /stop, at any time. The only files that know prompt_toolkit are the terminal's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import default_ui_style
from prompt_toolkit.utils import get_cwidth

from bot.platforms.base import Choice
from bot.platforms.terminal import Receive, from_line, numbered, picked, visible
from memory import Clock

_NEVER_FIRST = frozenset("，。！？；：、）」』】》…")  # nor does a Chinese line begin with these
_NAME, _YOU, _QUIET = "bold ansimagenta", "bold ansicyan", "ansibrightblack"


class LiveLine:
    """The text of a reply that is not printed yet; pure."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, text: str, *, width: int) -> list[str]:
        """Take more text; returns the lines that are full and can be printed, wrapped between words."""
        self.text += text
        lines: list[str] = []
        while (end := _line_end(self.text, width)) is not None:
            lines.append(self.text[:end].rstrip())
            rest = self.text[end:]
            self.text = rest[1:] if rest.startswith("\n") else rest.lstrip(" ")
        return lines


def wrapped(text: str, *, width: int) -> str:
    """Wrap a whole text as a streamed reply is wrapped."""
    live = LiveLine()
    return "\n".join([*live.add(text, width=width), live.text])


def _line_end(text: str, width: int) -> int | None:
    """Return where the first line of the text ends, None if it may still grow.

    A full line ends at its last blank, or between two wide characters: Chinese has no blanks.
    """
    used, chance = 0, 0
    for index, char in enumerate(text):
        if char == "\n":
            return index
        wide = get_cwidth(char)
        if char == " " or (wide > 1 and char not in _NEVER_FIRST):
            chance = index
        used += wide
        if used > width:
            return chance or index
    return None


class ScreenSink:
    """Shows the answer to one message."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._begun = False

    async def typing(self) -> None:
        """Show that an answer is on its way."""
        self._screen.set_status("…")

    async def add(self, text: str) -> None:
        """Show some more of the reply."""
        if not self._begun:
            text, self._begun = text.lstrip(), True
            self._screen.name_next()
        await self._screen.stream(visible(text))

    async def end(self) -> None:
        """Print what is left of the reply."""
        await self._screen.finish_stream()

    async def say(self, text: str, *, choices: Sequence[Choice] = (), private: bool = False) -> None:
        """Print a message of its own."""
        await self._screen.say(visible(numbered(text, choices)), choices=choices)


class Screen:
    """A conversation at a screen."""

    def __init__(
        self,
        clock: Clock,
        *,
        user: str,
        companion: str,
        locale: str,
        source: Input | None = None,
        output: Output | None = None,
    ) -> None:
        """Take who talks; `source` and `output` stand in for the real terminal."""
        self._clock = clock
        self._user = user
        self._companion = companion
        self._locale = locale
        self._live = LiveLine()
        self._status = ""
        self._named = False  # the companion's name is due in front of the next line
        self._choices: tuple[Choice, ...] = ()
        # What was typed is erased and printed anew, so that no half line of a reply stays behind with it.
        self._session: PromptSession[str] = PromptSession(input=source, output=output, erase_when_done=True)

    async def run(self, receive: Receive, *, greeting: str = "") -> None:
        """Converse until the person leaves (end of input, or Ctrl-C)."""
        if greeting:
            self.name_next()
            await self._print(visible(greeting))
        while True:
            try:
                line = await self._session.prompt_async(self._prompt, handle_sigint=False)
            except (EOFError, KeyboardInterrupt):
                return
            message = from_line(line, user=self._user, at=self._clock.now(), locale=self._locale)
            if not message.text:
                continue
            await self._above(self._line((_YOU, f"{self._user} › "), ("", message.text)))
            choices, self._choices = self._choices, ()
            receive(message, ScreenSink(self), picked=picked(message.text, choices))

    def _prompt(self) -> FormattedText:
        parts: list[tuple[str, str]] = []
        growing = self._live.text
        if growing or self._status:
            if self._named:
                parts.append((_NAME, f"{self._companion} › "))
            parts.append(("", growing) if growing else (_QUIET, self._status))
            parts.append(("", "\n"))
        parts.append((_YOU, f"{self._user} › "))
        return FormattedText(parts)

    # What sinks do

    def set_status(self, text: str) -> None:
        """Show that something is going on."""
        self._status = text
        self._session.app.invalidate()

    def name_next(self) -> None:
        """Put the companion's name in front of the next line."""
        self._named = True

    async def stream(self, text: str) -> None:
        """Show more of a reply."""
        self._status = ""
        width = self._session.app.output.get_size().columns - 1
        room = width - get_cwidth(f"{self._companion} › ") if self._named else width
        for line in self._live.add(text, width=max(room, 20)):
            await self._print(line)
        self._session.app.invalidate()

    async def finish_stream(self) -> None:
        """Print the line that was still growing."""
        self._status = ""
        line, self._live.text = self._live.text.rstrip(), ""
        if line:
            await self._print(line)
        self._named = False
        self._session.app.invalidate()

    async def say(self, text: str, *, choices: Sequence[Choice] = ()) -> None:
        """Print whole lines, above a reply that is still coming in."""
        self._status = ""
        width = self._session.app.output.get_size().columns - 1
        await self._above(self._line(("", wrapped(text, width=width))))
        self._choices = tuple(choices)
        self._session.app.invalidate()

    async def _print(self, text: str) -> None:
        name = (_NAME, f"{self._companion} › ") if self._named else ("", "")
        self._named = False
        await self._above(self._line(name, ("", text)))

    def _line(self, *parts: tuple[str, str]) -> Callable[[], None]:
        """Return what prints these parts, each a style and a text, as lines of their own."""
        text = FormattedText([*parts, ("", "\n")])
        return lambda: print_formatted_text(self._session.app.output, text, default_ui_style())

    async def _above(self, show: Callable[[], None]) -> None:
        """Print above the prompt if it is there, else just print."""
        if self._session.app.is_running:
            await run_in_terminal(show)
        else:
            show()
