"""What is written down in a server's folder: who serves it at which port, and what the server says.

A record is only a hint; the file may be old, cut off or written by another version. What cannot be read
counts as absent.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from bot.local.processes import Child

LOG_LIMIT = 1_000_000
TAIL_LINES = 4
TAIL_CHARS = 600


@dataclass(frozen=True, slots=True)
class Record:
    """The server of a folder; `version` says what it was built from."""

    child: Child
    port: int
    version: str


def read_record(path: Path) -> Record | None:
    """Read the record, or None if there is none that makes sense."""
    try:
        found = json.loads(path.read_text("utf-8"))
        child = Child(int(found["pid"]), str(found["token"]))
        record = Record(child, int(found["port"]), str(found["version"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if record.child.pid > 0 and 0 < record.port < 65_536 else None


def write_record(path: Path, record: Record) -> None:
    """Write the record so that a reader sees the old one or the new one, never half of it."""
    fields = {
        "pid": record.child.pid,
        "token": record.child.token,
        "port": record.port,
        "version": record.version,
    }
    fresh = path.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(fields, file)
    fresh.replace(path)


def open_chapter(log: Path) -> int:
    """Make ready for a new start's output, emptying a log that has grown big; returns where it begins."""
    size = log.stat().st_size if log.exists() else 0
    if size > LOG_LIMIT:
        os.truncate(log, 0)
        return 0
    return size


def last_lines(log: Path, *, since: int) -> str:
    """Return the end of what the server said since a place in its log, on one line; "" if nothing."""
    try:
        with log.open("rb") as file:
            file.seek(max(since, log.stat().st_size - 8 * TAIL_CHARS))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-TAIL_LINES:])[-TAIL_CHARS:]
