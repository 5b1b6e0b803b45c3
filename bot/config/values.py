"""One value at a time: from what stands in the file or in a variable to what the setting holds.

The only file that knows pydantic, imported when there is a value to check. A value of a wrong type is an
error, never a guess; text from the environment is parsed. A secret is never quoted.
"""

from __future__ import annotations

import json
import math
import typing
from datetime import date, time
from pathlib import Path

from bot.config.listing import Setting
from bot.config.secret import Secret


class WrongValue(ValueError):
    """A value that a setting cannot hold; the text ends the sentence "it must be"."""


def read_value(setting: Setting, raw: object, *, parse: bool = False) -> object:
    """Return the value for a setting; None for "" where it may be unset.

    With `parse`, `raw` is text to parse. Raises WrongValue.
    """
    if raw == "" and setting.optional:
        return None
    value = _typed(setting, raw, parse=parse)
    complaint = setting.note.rule(value) if setting.note.rule else None
    if complaint:
        raise WrongValue(f"{complaint}{_but_is(setting, raw)}")
    if setting.kind is Secret:
        return Secret(str(value))
    return Path(str(value)) if setting.kind is Path else value


def _typed(setting: Setting, raw: object, *, parse: bool) -> object:
    from pydantic import Field, TypeAdapter, ValidationError

    note = setting.note
    limits = Field(gt=note.above, ge=note.at_least, le=note.at_most)
    kind = str if setting.kind in (Secret, Path) else setting.kind
    adapter = TypeAdapter(typing.cast("type[object]", typing.Annotated[kind, limits]))
    try:
        value = adapter.validate_strings(raw) if parse else adapter.validate_python(raw, strict=True)
    except ValidationError:
        # Not chained: pydantic's text quotes the value.
        value = math.nan
    if isinstance(value, float) and not math.isfinite(value):
        raise WrongValue(f"{_expected(setting)}{_but_is(setting, raw)}")
    return value


def _expected(setting: Setting) -> str:
    if typing.get_origin(setting.kind) is typing.Literal:
        return "one of " + ", ".join(json.dumps(one) for one in typing.get_args(setting.kind))
    note = setting.note
    limits = (("above", note.above), ("at least", note.at_least), ("at most", note.at_most))
    said = [f"{word} {limit:.12g}" for word, limit in limits if limit is not None]
    what = {int: "a whole number", float: "a number"}.get(typing.cast(type, setting.kind), "a text")
    return f"{what} {' and '.join(said)}".rstrip()


def _but_is(setting: Setting, raw: object) -> str:
    names = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    names |= {dict: "a section", date: "a date", time: "a time"}
    if isinstance(raw, bool | int | float | str) and not _hidden(setting, raw):
        return f", not {shortened(json.dumps(raw, ensure_ascii=False))}"
    if isinstance(raw, str):
        return ""
    return f", not {next((name for kind, name in names.items() if isinstance(raw, kind)), 'that')}"


def _hidden(setting: Setting, raw: object) -> bool:
    return setting.kind is Secret or "@" in str(raw)


def shortened(text: str, limit: int = 60) -> str:
    """Return the text, cut to what fits a line."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
