"""The settings file: its text, its tables, and in which line a key stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Source:
    """What a settings file holds; without a file, nothing."""

    path: Path
    text: str
    tables: Mapping[str, object]

    @property
    def folder(self) -> Path:
        """Return the folder that relative paths in the file start from."""
        return self.path.parent

    def where(self, section: str, key: str) -> str:
        """Return file and line of a key, for people."""
        line = line_of(self.text, (section, key) if section else (key,))
        return f"{self.path}:{line}"


def read_file(path: Path, *, named: bool) -> Source:
    """Read a settings file; one that is not there is empty unless somebody named it. Raises ConfigError."""
    try:
        # A byte-order mark is what some Windows editors put in front.
        text = path.read_text(encoding="utf-8-sig")
        return Source(path, text, tomllib.loads(text))
    except FileNotFoundError as error:
        if named:
            raise ConfigError(f"{path}: there is no such settings file") from error
        return Source(path, "", {})
    except OSError as error:
        raise ConfigError(f"{path}: the settings file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        # Not chained: the error holds the whole file, keys and all.
        raise ConfigError(f"{path}: the settings file is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(path, text, str(error))) from error


def _syntax(path: Path, text: str, complaint: str) -> str:
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", complaint)
    line = found.group(1) if found and found.group(1) else str(text.count("\n") + 1)
    what = complaint[: found.start()] if found else complaint
    return (
        f'{path}:{line}: this is not TOML: {what[:1].lower()}{what[1:]} (a text needs quotes: key = "text")'
    )


def line_of(text: str, keys: tuple[str, ...]) -> int:
    """Return the line in which the statement begins that brings a key.

    The file is parsed from the top, one line more each time: a part that parses ends at the end of a
    statement, so the first one that has the key tells where its statement was. Only for error messages.
    """
    lines = text.split("\n")
    start = 1
    for number in range(1, len(lines) + 1):
        try:
            tables: object = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue  # inside of a text or a list over several lines
        if _has(tables, keys):
            return start
        start = number + 1
    return start


def _has(tables: object, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(tables, dict) or key not in tables:
            return False
        tables = tables[key]
    return True
