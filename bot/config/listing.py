"""The list of all settings by name, taken from the dataclasses, and the name nearest to a wrong one."""

from __future__ import annotations

import typing
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from types import UnionType

from bot.config.settings import Config, Note

PREFIX = "OMOIDE_"
FILE_VARIABLE = "OMOIDE_CONFIG"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting; `section` is "" for those at the top of the file."""

    section: str
    key: str
    kind: object  # its type, without the None of an optional one
    default: object  # None: not set
    note: Note

    @property
    def name(self) -> str:
        """Return its name in a sentence, as in `llm.model`."""
        return f"{self.section}.{self.key}" if self.section else self.key

    @property
    def variable(self) -> str:
        """Return the environment variable that sets it."""
        return PREFIX + self.name.upper().replace(".", "__")

    @property
    def optional(self) -> bool:
        """Tell whether it may be left unset."""
        return self.default is None


def settings() -> tuple[Setting, ...]:
    """Return every setting, in the order of config.toml."""
    found: list[Setting] = []
    for key, kind in typing.get_type_hints(Config).items():
        if is_dataclass(kind):
            found += _of_section(key, typing.cast(type, kind))
    return (*_of_section("", Config), *found)


def sections() -> dict[str, str]:
    """Return the name of each section with what it is about."""
    hints = typing.get_type_hints(Config)
    return {key: str(kind.__doc__) for key, kind in hints.items() if is_dataclass(kind)}


def _of_section(section: str, kind: type) -> list[Setting]:
    defaults = {one.name: None if one.default is MISSING else one.default for one in fields(kind)}
    found = []
    for key, hint in typing.get_type_hints(kind, include_extras=True).items():
        note = next((extra for extra in typing.get_args(hint)[1:] if isinstance(extra, Note)), None)
        if note:
            found.append(Setting(section, key, _without_none(typing.get_args(hint)[0]), defaults[key], note))
    return found


def _without_none(kind: object) -> object:
    if isinstance(kind, UnionType):
        return next(one for one in typing.get_args(kind) if one is not type(None))
    return kind


def nearest_name(section: str, key: str) -> str | None:
    """Return the setting that was probably meant by an unknown one in the file."""
    known = settings()
    siblings = [one.key for one in known if one.section == section]
    near = get_close_matches(key.lower(), siblings, 1)
    if near:
        return f"{section}.{near[0]}" if section else near[0]
    elsewhere = [one.name for one in known if one.key == key.lower()]
    if elsewhere:
        return elsewhere[0]
    near = get_close_matches(f"{section}.{key}".lower(), [one.name for one in known], 1)
    return near[0] if near else None


def nearest_variable(variable: str) -> str | None:
    """Return the variable that was probably meant by an unknown one."""
    known = [FILE_VARIABLE, *(one.variable for one in settings())]
    near = get_close_matches(variable.upper(), known, 1)
    return near[0] if near else None
