"""The terminal: what is shown of a text, what a line picks, a pipe, and a screen with its prompt."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from bot.message import Platform, memory_id_of
from bot.platforms.base import Choice
from bot.platforms.terminal import from_line, numbered, picked, valid_name, visible
from bot.platforms.terminal_pipe import PipeTerminal
from bot.platforms.terminal_screen import LiveLine, Screen, wrapped
from memory import DIRECT
from tests.clock import NOON
from tests.conversations.companion import Companion, companion
from tests.fakes import Held

_MEI = memory_id_of(Platform.TERMINAL, "mei")
YES_NO = (Choice("yes, forget it", "t-yes"), Choice("no, keep it", "t-no"))


@given(st.text())
def test_nothing_that_is_shown_can_command_a_terminal(text: str) -> None:
    shown = visible(text)
    assert all(char in "\n\t" or (ord(char) >= 32 and not 127 <= ord(char) < 160) for char in shown)
    assert not set(shown) & set("\u202e\u2066\u2028")


def test_ordinary_text_is_shown_as_it_is() -> None:
    text = "Grüße, 你好 👩‍👩‍👧 – “ok”\n\tindented"
    assert visible(text) == text
    assert visible("a\x1b[31mred\x1b]0;title\x07\r\nb\rc") == "a[31mred]0;title\nbc"


def test_a_line_picks_by_number_or_by_the_beginning_of_a_label() -> None:
    assert picked("1", YES_NO) == "t-yes"
    assert picked(" NO ", YES_NO) == "t-no"
    assert picked("y", YES_NO) == "t-yes"
    assert picked("3", YES_NO) is None
    assert picked("0", YES_NO) is None
    assert picked("", YES_NO) is None
    assert picked("nothing of the sort", YES_NO) is None
    assert picked("1", ()) is None
    assert picked("²", YES_NO) is None


def test_what_fits_two_labels_picks_neither() -> None:
    assert picked("the", (Choice("the one", "a"), Choice("the other", "b"))) is None


def test_choices_are_numbered() -> None:
    assert numbered("Sure?", YES_NO) == "Sure?\n1) yes, forget it\n2) no, keep it"


def test_a_name_is_one_visible_line() -> None:
    assert valid_name("Mei")
    assert valid_name("梅 Müller")
    assert not any(valid_name(name) for name in ("", " a", "a ", "a\nb", "a\x1b", "x" * 65))


def test_a_typed_line_is_a_direct_message() -> None:
    message = from_line(" hi\x1b \n", user="mei", at=NOON, locale="en")
    assert (message.text, message.direct, message.author.account) == ("hi", True, "mei")


WIDTH = 24
TEXTS = st.text(alphabet="ab  \n你好，，world", max_size=200)


@given(TEXTS, st.lists(st.integers(1, 9), max_size=60))
def test_a_streamed_reply_is_wrapped_without_losing_a_character(text: str, cuts: list[int]) -> None:
    live, lines, start = LiveLine(), list[str](), 0
    for size in [*cuts, len(text) or 1]:
        lines += live.add(text[start : start + size], width=WIDTH)
        start += size
    lines += live.add(text[start:], width=WIDTH)
    lines.append(live.text)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(get_cwidth(line) <= WIDTH for line in lines)


def test_lines_break_between_words_and_between_wide_characters() -> None:
    live = LiveLine()
    assert live.add("one two three four five six", width=10) == ["one two", "three four"]
    assert live.text == "five six"
    assert LiveLine().add("你好世界，今天好", width=9) == [
        "你好世",
        "界，今天",
    ]  # no line begins with a comma


def test_a_whole_text_is_wrapped_between_words() -> None:
    assert wrapped("one two three four\nfive", width=10) == "one two\nthree four\nfive"


# A pipe


async def _piped(it: Companion, text: str, *, user: str = "mei") -> list[str]:
    writer = io.StringIO()
    pipe = PipeTerminal(io.StringIO(text), writer, it.clock, user=user, locale="en")
    await pipe.run(it.dispatcher.receive)
    return writer.getvalue().splitlines()


async def test_each_line_of_a_pipe_gets_exactly_one_line() -> None:
    async with companion("Hello!\n\nHow are you?", "Good.\r\n") as it:
        assert await _piped(it, "hi\n\n   \nfine\n/new\nlast without a newline") == [
            "Hello! How are you?",
            "Good.",
            "A fresh page. What was said before stays with me.",
            "I am listening.",
        ]


async def test_a_pipe_can_answer_a_question() -> None:
    async with companion("Hello.") as it:
        lines = await _piped(it, "hi\n/forget everything\nyes\n/memory\n")
    assert lines[1:] == [
        "This will be erased for good: 1 turn, 1 session. Are you sure? 1) yes, forget it 2) no, keep it",
        "Forgotten: 1 turn, 1 session. Nothing of it is left.",
        "I don't remember anything of you yet.",
    ]


async def test_a_question_is_open_for_the_next_line_only() -> None:
    async with companion("Hello.", "Anyway.", "What yes?") as it:
        lines = await _piped(it, "hi\n/forget everything\nlet us talk\nyes\n")
        assert lines[2:] == ["Anyway.", "What yes?"]


class _Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


async def test_a_reader_that_has_gone_ends_the_conversation_quietly() -> None:
    async with companion() as it:
        pipe = PipeTerminal(io.StringIO("a\nb\n"), _Closed(), it.clock, user="mei", locale="en")
        await pipe.run(it.dispatcher.receive)
        assert len(it.model.prompts) == 1


class _Broken(io.StringIO):
    """Input that fails after its first line, as a terminal does that is gone."""

    def __next__(self) -> str:  # type: ignore[override] # typeshed knows it for bytes only
        if self.tell():
            raise OSError(5, "Input/output error")
        return super().__next__()


async def test_input_that_fails_is_input_that_has_ended() -> None:
    async with companion("Hello.") as it:
        writer = io.StringIO()
        pipe = PipeTerminal(_Broken("hi\nlost\n"), writer, it.clock, user="mei", locale="en")
        await asyncio.wait_for(pipe.run(it.dispatcher.receive), 10)
        assert writer.getvalue() == "Hello.\n"


# A screen


class _Written(io.StringIO):
    """What has been written to a terminal, with an event for more."""

    def __init__(self) -> None:
        super().__init__()
        self.more = asyncio.Event()

    def write(self, text: str) -> int:
        self.more.set()
        return super().write(text)


class _Terminal:
    """A terminal of 40 columns: keys go in by `press`, `written` is what it has been sent."""

    def __init__(self, press: Callable[[str], None]) -> None:
        self.press = press
        self.written = _Written()
        self.output = Vt100_Output(self.written, lambda: Size(rows=20, columns=40), enable_cpr=False)

    async def until(self, text: str) -> None:
        """Wait until this has been written."""
        async with asyncio.timeout(20):
            while text not in self.written.getvalue():
                self.written.more.clear()
                await self.written.more.wait()


async def test_at_a_screen_one_can_type_and_stop_while_a_reply_comes_in() -> None:
    held = Held(before="Once upon a time there was ", after="a dragon.")
    with create_pipe_input() as keys:
        terminal = _Terminal(keys.send_text)
        async with companion(held, "A frog it was.") as it:
            screen = Screen(
                it.clock, user="mei", companion="Omoide", locale="en", source=keys, output=terminal.output
            )
            running = asyncio.ensure_future(screen.run(it.dispatcher.receive, greeting="Hello, mei.\x1b[2J"))
            await terminal.until("Hello, mei.[2J")
            terminal.press("a story\r")
            await terminal.until("there was")
            terminal.press("/stop\r")
            await terminal.until("(stopped)")
            terminal.press("go on\r")
            await terminal.until("A frog it was.")
            terminal.press("\x04")
            await asyncio.wait_for(running, 10)
            assert [turn.human for turn in await it.store.turns(_MEI)] == ["a story", "go on"]


async def test_at_a_screen_only_a_reply_is_in_the_companions_name() -> None:
    held = Held(before="Once upon a time", after=" there was a frog.")
    with create_pipe_input() as keys:
        terminal = _Terminal(keys.send_text)
        async with companion(held) as it:
            screen = Screen(
                it.clock, user="mei", companion="Omoide", locale="en", source=keys, output=terminal.output
            )
            running = asyncio.ensure_future(screen.run(it.dispatcher.receive))
            terminal.press("a story\r")
            await terminal.until("Once upon a time")
            terminal.press("/help\r")
            await terminal.until("this list")
            held.release()
            await terminal.until("frog.")
            terminal.press("\x04")
            await asyncio.wait_for(running, 10)
            printed = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.written.getvalue())
            assert "Omoide › Just talk" not in printed
            assert "Omoide › Once upon a time there was a" in printed


async def test_ctrl_c_leaves_and_the_session_stays_open() -> None:
    with create_pipe_input() as keys:
        terminal = _Terminal(keys.send_text)
        async with companion("Hello.") as it:
            screen = Screen(
                it.clock, user="mei", companion="Omoide", locale="en", source=keys, output=terminal.output
            )
            running = asyncio.ensure_future(screen.run(it.dispatcher.receive))
            terminal.press("hi\r")
            await terminal.until("Hello.")
            terminal.press("\x03")
            await asyncio.wait_for(running, 10)
            assert await it.store.opened(_MEI, DIRECT) is not None


async def test_a_screen_shows_choices_and_takes_a_number() -> None:
    with create_pipe_input() as keys:
        terminal = _Terminal(keys.send_text)
        async with companion("Hello.") as it:
            screen = Screen(
                it.clock, user="mei", companion="Omoide", locale="en", source=keys, output=terminal.output
            )
            running = asyncio.ensure_future(screen.run(it.dispatcher.receive))
            terminal.press("hi\r")
            await terminal.until("Hello.")
            terminal.press("/forget last\r")
            await terminal.until("2) no, keep it")
            terminal.press("1\r")
            await terminal.until("Nothing of it")
            terminal.press("\x04")
            await asyncio.wait_for(running, 10)
            assert await it.store.turns(_MEI) == ()
