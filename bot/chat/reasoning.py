"""A streaming filter that lets through what a model says and drops what it only thinks.

It exists because many servers send the reasoning inside the text: `<think>…</think>` and its relatives,
`[THINK]…[/THINK]`, or channels (`<|channel|>analysis<|message|>…<|end|>`). The rule it keeps: the visible
text depends on the whole text alone, never on how it was cut into pieces, and text without such marks passes
unchanged and at once (a "<" waits only until it can no longer become a mark).

What is shown cannot be unsent, which decides the doubtful cases:
- A mark in a code fence, or after a backtick that is open on the same line, is talk about the mark: text.
- Inside reasoning a mark directly between backticks is a mention; any other closes or opens.
- A closing mark without an opening one (the server's template opened it in the prompt) is dropped; what
  stood before it has been shown. `unopened` reports it, and a filter made with Opening.BY_TEMPLATE for the
  next reply holds all text until that mark and drops it, or gives it out at the end if the mark never comes.
- Nested reasoning ends at the outer mark. Text after an inner one is held until it is clear which it is.
- Reasoning that is never closed is dropped to the end.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_NAME = r"(?:think|thinking|thought|reasoning|reflection)"
_NAMES = ("thinking", "thought", "reasoning", "reflection")  # "think" is a prefix of the first
_HEAD = r"<[ \t]{0,4}/?[ \t]{0,4}"
_ATTRIBUTE = r"""[ \t]+[\w:.-]+[ \t]*=[ \t]*(?:"[^"<>\n]*"|'[^'<>\n]*'|[^\s"'<>/]+)"""
_PART_OF_ATTRIBUTE = r"""[ \t]+(?:[\w:.-]+[ \t]*(?:=[ \t]*(?:"[^"<>\n]*|'[^'<>\n]*|[^\s"'<>/]*))?)?"""
_TAG = re.compile(rf"{_HEAD}{_NAME}(?:{_ATTRIBUTE})*[ \t]*/?>", re.IGNORECASE)
_TAG_NAME_SO_FAR = re.compile(rf"{_HEAD}([a-z]*)", re.IGNORECASE)
_TAG_SO_FAR = re.compile(rf"{_HEAD}{_NAME}(?:{_ATTRIBUTE})*(?:{_PART_OF_ATTRIBUTE})?/?", re.IGNORECASE)
_LONGEST = 200  # characters of a mark, attributes included

_BRACKETS = ("[THINK]", "[/THINK]")
_CHANNEL, _MESSAGE, _START = "<|channel|>", "<|message|>", "<|start|>"
_CHANNEL_ENDS = ("<|end|>", "<|return|>", "<|call|>")
_TOKENS = (*_BRACKETS, _CHANNEL, _MESSAGE, _START, *_CHANNEL_ENDS)

_FENCE = re.compile(r"[\s>]*(`{3,}|~{3,})(.*)")
_BACKTICKS = re.compile(r"`+")
_MARK_BEGINS = re.compile(r"[<\[]")


def _is_mark(text: str) -> bool:
    return text in _TOKENS or _TAG.fullmatch(text) is not None


def _may_become_mark(text: str) -> bool:
    if len(text) > _LONGEST or text[0] not in "<[":
        return False
    if any(token.startswith(text) for token in _TOKENS):
        return True
    name = _TAG_NAME_SO_FAR.fullmatch(text)
    if name is not None and any(known.startswith(name[1].lower()) for known in _NAMES):
        return True
    return _TAG_SO_FAR.fullmatch(text) is not None


class _Markdown:
    """Tells whether the end of what was shown so far is inside code."""

    def __init__(self) -> None:
        self._fence = ""
        self._line = ""

    def add(self, text: str) -> None:
        head, *rest = text.split("\n")
        self._line += head
        for line in rest:
            self._end_line()
            self._line = line

    def in_code(self) -> bool:
        if self._fence:
            return True
        opened = ""
        for run in _BACKTICKS.findall(self._line):
            opened = "" if run == opened else opened or run
        return bool(opened) or self._fence_here() is not None

    def _fence_here(self) -> re.Match[str] | None:
        found = _FENCE.fullmatch(self._line)
        return None if found is None or ("`" in found[1] and "`" in found[2]) else found

    def _end_line(self) -> None:
        found = self._fence_here()
        if found is None:
            return
        if not self._fence:
            self._fence = found[1]
        elif found[1].startswith(self._fence) and not found[2].strip():
            self._fence = ""


class _Channel(Enum):
    """Where in a reply made of channels the text is."""

    NONE = auto()  # not such a reply, or in a channel that is shown
    HEADER = auto()
    HIDDEN = auto()


class Opening(Enum):
    """How reasoning begins in a reply, as far as is known before it comes."""

    BY_MARK = auto()  # what comes is shown at once until a mark says otherwise
    BY_TEMPLATE = auto()  # the reply begins inside reasoning: so it was the last time
    UNKNOWN = auto()  # either; nobody watches it come, so all of it may wait until that is known


class ReasoningFilter:
    """Feed it the pieces of one reply in order, then `end` it; each call returns what may be shown."""

    def __init__(self, opening: Opening = Opening.BY_MARK) -> None:
        """Begin a reply."""
        self.unopened = False
        """True once a closing mark came that no opening one belongs to."""
        self._by_template = opening is Opening.BY_TEMPLATE
        self._waiting = opening is not Opening.BY_MARK  # what is out may turn out to be reasoning
        self._depth = 0
        self._held: list[str] | None = None  # what followed an inner closing mark
        self._channel = _Channel.NONE
        self._channel_name: str | None = None
        self._has_channels = False
        self._pending = ""  # may become a mark
        self._mention = ""  # a mark after a backtick inside reasoning, until the next character is known
        self._before = ""  # the last character, shown or not
        self._last = ""  # the last character shown
        self._trim = False
        self._code = _Markdown()
        self._out: list[str] = []

    def feed(self, text: str) -> str:
        """Take the next piece; returns what of it, and of what was waiting, is visible now."""
        at = 0
        while at < len(text):
            if self._pending or text[at] in "<[":
                self._step(text[at])
                at += 1
            else:
                mark = _MARK_BEGINS.search(text, at)
                end = mark.start() if mark else len(text)
                self._text(text[at:end])
                at = end
        return self._take()

    def end(self, *, cut: bool = False) -> str:
        """End the reply; returns what was still waiting.

        `cut` says that it did not come to its own end: what may be reasoning is then taken for it.
        """
        pending, self._pending = self._pending, ""
        if pending:
            self._text(pending)
        self._settle_mention("")
        if self._depth == 1 and self._held is not None and not cut:
            self._trim = not self._last
            self._show("".join(self._held))
        if self._waiting and self._by_template and cut:
            self._out.clear()
        self._waiting = False
        return self._take()

    def _take(self) -> str:
        if self._waiting:
            return ""
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _step(self, character: str) -> None:
        self._pending += character
        if _is_mark(self._pending):
            mark, self._pending = self._pending, ""
            self._mark(mark)
            return
        while self._pending and not _may_become_mark(self._pending):
            first, self._pending = self._pending[0], self._pending[1:]
            self._text(first)

    def _hidden(self) -> bool:
        return self._depth > 0 or self._channel is not _Channel.NONE

    def _text(self, text: str) -> None:
        self._settle_mention(text[0])
        self._before = text[-1]
        if self._channel is _Channel.HEADER and self._channel_name is not None:
            self._channel_name += text
        elif self._held is not None:
            self._held.append(text)
        elif not self._hidden():
            self._show(text)

    def _show(self, text: str) -> None:
        if self._trim:
            text = text.lstrip()
        if not text:
            return
        self._trim = False
        self._last = text[-1]
        self._out.append(text)
        self._code.add(text)

    def _mark(self, mark: str) -> None:
        self._settle_mention("")
        inside = self._hidden() or (self._waiting and self._by_template)
        if inside and self._before == "`":
            self._mention = mark
        elif not inside and self._code.in_code():
            self._text(mark)
        else:
            self._apply(mark)

    def _settle_mention(self, following: str) -> None:
        mark, self._mention = self._mention, ""
        if mark and following == "`":
            self._text(mark)
        elif mark:
            self._apply(mark)

    def _apply(self, mark: str) -> None:
        self._before = mark[-1]
        if mark.startswith("<|"):
            self._apply_channel(mark)
        elif mark.endswith("/>"):
            self._start_trim()
        elif "/" in mark[:10]:
            self._close()
        else:
            self._open()

    def _open(self) -> None:
        if self._waiting and self._by_template and not "".join(self._out).strip():
            self._drop_waiting()  # this time it is opened by a mark
        self._depth += 1

    def _close(self) -> None:
        if self._depth > 1:
            self._depth -= 1
            self._held = []  # reasoning that goes on, or the reply after a mere mention of the mark
            return
        if self._depth == 0:
            self.unopened = True
            if self._waiting:
                self._drop_waiting()
        self._depth, self._held = 0, None
        self._start_trim()

    def _drop_waiting(self) -> None:
        self._waiting, self._last, self._code = False, "", _Markdown()
        self._out.clear()

    def _apply_channel(self, token: str) -> None:
        if self._depth > 0 or (not self._has_channels and token != _CHANNEL):
            self._text(token)
            return
        self._has_channels = True
        if token in (_CHANNEL, _START):
            self._channel = _Channel.HEADER
            self._channel_name = "" if token == _CHANNEL else None
            return
        named = self._channel_name if token == _MESSAGE else None
        hidden = named is not None and named.strip() != "final"
        self._channel = _Channel.HIDDEN if hidden else _Channel.NONE
        self._start_trim()

    def _start_trim(self) -> None:
        """Drop the blank that follows what was dropped, where that would leave two in a row."""
        self._trim = not self._last or self._last.isspace()


def without_reasoning(text: str) -> str:
    """Return what is visible of a whole reply, when nothing of it has been shown yet."""
    reasoning = ReasoningFilter(Opening.UNKNOWN)
    return reasoning.feed(text) + reasoning.end()
