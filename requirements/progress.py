"""Shows how far a long step is: one line that is redrawn on a terminal, else a plain line now and then."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

_REDRAW = 0.2
_LINE = 10.0
_WHEEL = "|/-\\"


class Progress:
    """The display of one step; call `show` as often as you like, it draws only when it is time to."""

    def __init__(self, out: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._tty = out.isatty()
        self._began = clock()
        self._drawn = -_LINE
        self._stage = ""

    def show(self, stage: str, detail: Callable[[], str] | None = None) -> None:
        """Show the stage, what is known of it (asked for only when drawn), and the time since the start."""
        now = self._clock()
        fresh = stage != self._stage
        if not fresh and now - self._drawn < (_REDRAW if self._tty else _LINE):
            return
        self._stage, self._drawn = stage, now
        passed = int(now - self._began)
        known = f": {detail()}" if detail else ""
        text = f"{stage}{known}  {passed // 60}:{passed % 60:02d}"
        if self._tty:
            width = shutil.get_terminal_size().columns - 3
            self._out.write(f"\r{_WHEEL[int(now / _REDRAW) % 4]} {text[:width]}\x1b[K")
        else:
            self._out.write(f"{text}\n")
        self._out.flush()

    def done(self, text: str) -> None:
        """Take the redrawn line away and leave one that stays."""
        start = "\r\x1b[K" if self._tty else ""
        passed = int(self._clock() - self._began)
        self._out.write(f"{start}{text}  {passed // 60}:{passed % 60:02d}\n")
        self._out.flush()

    def clear(self) -> None:
        """Take the redrawn line away."""
        if self._tty:
            self._out.write("\r\x1b[K")
            self._out.flush()
