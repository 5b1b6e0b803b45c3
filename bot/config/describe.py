"""The settings for people: the text of config.toml and the table in the README, both made from the list."""

from __future__ import annotations

import json

from bot.config.listing import Setting, sections, settings

_HEAD = """\
# Settings of Omoide. A line that begins with # and no blank is a setting with its default: take the # off
# to change it.
#
# The environment wins over this file: OMOIDE_<SECTION>__<KEY>, such as OMOIDE_LLM__MODEL or OMOIDE_DATA_DIR.
# Keys and passwords are better kept there than here. "" stands for: not set.
"""


def config_file() -> str:
    """Return the text of a settings file with every setting in it, commented out, with its default."""
    parts = [_HEAD, *(_block(one) for one in settings() if not one.section)]
    for section, about in sections().items():
        parts.append(f"[{section}]\n# {about}\n")
        parts += [_block(one) for one in settings() if one.section == section]
    return "\n".join(parts)


def settings_table() -> str:
    """Return all settings as a Markdown table."""
    rows = ["| setting | default | what it does |", "|---|---|---|"]
    rows += [f"| `{one.name}` | {_default(one)} | {_cell(one.note.about)} |" for one in settings()]
    return "\n".join(rows) + "\n"


def _block(setting: Setting) -> str:
    note = setting.note
    unset = f"# Not set: {note.unset}.\n" if note.unset else ""
    line = f"{setting.key} = {toml_value(setting.default)}"
    return f"# {note.about[:1].upper()}{note.about[1:]}.\n{unset}" + "".join(
        f"#{one}\n" for one in line.split("\n")
    )


def toml_value(value: object) -> str:
    """Write a default as TOML; not set is the empty text."""
    if isinstance(value, str) and "\n" in value:
        return f'"""\n{value}"""'
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps("" if value is None else value, ensure_ascii=False)


def _default(setting: Setting) -> str:
    if setting.default is None:
        return _cell(setting.note.unset)
    written = toml_value(setting.default)
    return "a short one, in `config.toml`" if "\n" in written else f"`{_cell(written)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
