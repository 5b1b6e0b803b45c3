"""The time of each message, written in front of it: a model then knows when things were said.

Every message keeps its own stamp for good, so a prompt only grows at its end; a clock at the end of the
prompt would have to be taken out of the message again on the next turn. Models tend to imitate the form, so
a stamp at the beginning of a reply is taken off.
"""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from memory import day_of

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_STAMP = re.compile(r"\s*\[(?:[A-Z][a-z]{2} )?(?:\d{4}-\d\d-\d\d )?\d\d?:\d\d\]\s*")
_BEGUN = re.compile(r"\s*(?:\[[\w :\-]{0,22}(?:\]\s*)?)?")


def date_text(at: datetime, zone: ZoneInfo) -> str:
    """Write a moment in the person's zone: "Wed 2026-03-04 14:03"."""
    local = at.astimezone(zone)
    return f"{_DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M}"


def stamp(at: datetime, before: datetime | None, zone: ZoneInfo) -> str:
    """Write the time of a message; with the date when it is the first one or the day has changed."""
    if before is not None and day_of(before, zone) == day_of(at, zone):
        return f"[{at.astimezone(zone):%H:%M}]"
    return f"[{date_text(at, zone)}]"


class StampFilter:
    """Takes a stamp off the beginning of a streamed reply; the rest passes as it comes."""

    def __init__(self) -> None:
        self._held: str | None = ""

    def feed(self, text: str) -> str:
        """Return what of the text so far may be shown now."""
        if self._held is None:
            return text
        self._held += text
        if _BEGUN.fullmatch(self._held):
            return ""  # may still become a stamp, or a blank behind one
        return self.flush()

    def flush(self) -> str:
        """Return what was held back, at the end of the reply."""
        held, self._held = self._held or "", None
        return _STAMP.sub("", held, count=1) if _STAMP.match(held) else held.lstrip()
