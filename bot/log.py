"""Logging for people who run the bot: set up once, by the command line, and nowhere else.

A person's words are never logged above debug; this file only decides where lines go and how they look.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal

_TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_OURS = ("bot", "memory")


class _JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _private(file: Path) -> logging.Handler:
    """Open a log file `data_dir/log/NAME`, in folders that only their owner can enter. Raises OSError."""
    for folder in (file.parent.parent, file.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = RotatingFileHandler(file, maxBytes=2_000_000, backupCount=3, encoding="utf-8", errors="replace")
    os.chmod(file, 0o600)
    return handler


def set_up(*, level: str, form: Literal["text", "json"], file: Path | None = None) -> None:
    """Send our log lines to a file that only its owner can read, or else to standard error.

    Libraries are heard from warning on: some of them log what they send. Raises OSError when the file cannot
    be written.
    """
    handler = logging.StreamHandler() if file is None else _private(file)
    handler.setFormatter(_JsonLines() if form == "json" else logging.Formatter(_TEXT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in _OURS:
        logging.getLogger(name).setLevel(level.upper())
