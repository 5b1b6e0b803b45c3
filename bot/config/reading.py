"""From the settings file and the environment to a Config: the only reader of both.

The environment wins over the file, the file over the defaults. All that is wrong is told at once, each with
the line or the variable it stands in. An empty variable counts as not there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.config.listing import (
    FILE_VARIABLE,
    PREFIX,
    Setting,
    nearest_name,
    nearest_variable,
    sections,
    settings,
)
from bot.config.secret import Secret
from bot.config.settings import Config
from bot.config.source import Source, read_file
from bot.config.values import WrongValue, read_value
from bot.errors import ConfigError

OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"


@dataclass(slots=True)
class _Findings:
    """What has been read so far: values by setting name, and what is wrong."""

    values: dict[str, object] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def take(self, setting: Setting, raw: object, *, where: str, parse: bool = False) -> None:
        try:
            self.values[setting.name] = read_value(setting, raw, parse=parse)
        except WrongValue as wrong:
            self.faults.append(f"{where}: {setting.name} must be {wrong}")

    def unknown(self, where: str, what: str, near: str | None) -> None:
        meant = f"; did you mean {near}?" if near else ""
        self.faults.append(f"{where}: {what}{meant}")


def load(*, path: Path | None, env: Mapping[str, str]) -> Config:
    """Read the settings file (`path`, else what OMOIDE_CONFIG names, else ./config.toml) and the environment.

    A named file must exist, ./config.toml need not. Raises ConfigError with everything that is wrong.
    """
    named = path or (Path(env[FILE_VARIABLE]) if env.get(FILE_VARIABLE) else None)
    source = read_file(named or Path("config.toml"), named=named is not None)
    found = _Findings()
    _from_file(source, found)
    _from_environment(env, found)
    if found.faults:
        raise ConfigError(_told(found.faults))
    key = env.get(OPENAI_KEY_VARIABLE, "").strip()
    if key and found.values.get("llm.api_key") is None:
        found.values["llm.api_key"] = Secret(key)
    return _config(found.values, data_dir=_data_dir(found.values, source, env))


def _told(faults: list[str]) -> str:
    if len(faults) == 1:
        return faults[0]
    return f"{len(faults)} settings are wrong:\n" + "\n".join(f"  {fault}" for fault in faults)


def _from_file(source: Source, found: _Findings) -> None:
    known = {one.name: one for one in settings()}
    for section, key, raw in _entries(source.tables, found, source):
        setting = known.get(f"{section}.{key}" if section else key)
        where = source.where(section, key)
        if setting:
            found.take(setting, raw, where=where)
        else:
            name = f"{section}.{key}" if section else key
            found.unknown(where, f"there is no setting {name}", nearest_name(section, key))


def _entries(
    tables: Mapping[str, object], found: _Findings, source: Source
) -> Iterator[tuple[str, str, object]]:
    names = sections()
    for key, raw in tables.items():
        if key in names:
            if isinstance(raw, dict):
                yield from ((key, inner, value) for inner, value in raw.items())
            else:
                found.faults.append(
                    f"{source.where('', key)}: {key} is a section: write [{key}], its keys below"
                )
        elif isinstance(raw, dict):
            found.unknown(source.where("", key), f"there is no section [{key}]", _near_section(key, names))
        else:
            yield "", key, raw


def _near_section(key: str, names: Mapping[str, str]) -> str | None:
    from difflib import get_close_matches

    near = get_close_matches(key.lower(), list(names), 1)
    return f"[{near[0]}]" if near else None


def _from_environment(env: Mapping[str, str], found: _Findings) -> None:
    known = {one.variable: one for one in settings()}
    for variable in sorted(one for one in env if one.upper().startswith(PREFIX)):
        text = env[variable].strip()
        if variable == FILE_VARIABLE:
            continue
        if variable not in known:
            found.unknown(variable, "there is no such setting", nearest_variable(variable))
        elif text:
            found.take(known[variable], text, where=variable, parse=True)


def _data_dir(values: Mapping[str, object], source: Source, env: Mapping[str, str]) -> Path:
    chosen = values.get("data_dir")
    try:
        if not isinstance(chosen, Path):
            return default_data_dir(env, platform=sys.platform)
        base = Path() if env.get(f"{PREFIX}DATA_DIR", "").strip() else source.folder
        return (base / chosen.expanduser()).absolute()
    except RuntimeError as error:
        raise ConfigError("data_dir: there is no home folder here; set OMOIDE_DATA_DIR") from error


def default_data_dir(env: Mapping[str, str], *, platform: str) -> Path:
    """Return the platform's folder for a program's data. Raises RuntimeError when there is no home folder."""
    if platform == "win32":
        base = env.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
        return Path(base) / "omoide"
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    if platform == "darwin":
        return home / "Library" / "Application Support" / "omoide"
    chosen = env.get("XDG_DATA_HOME", "")
    # The XDG specification: a relative path is to be ignored.
    return (Path(chosen) if chosen.startswith("/") else home / ".local" / "share") / "omoide"


def _config(values: Mapping[str, object], *, data_dir: Path) -> Config:
    base = Config(data_dir=data_dir)
    changed: dict[str, object] = {}
    for section in sections():
        prefix = f"{section}."
        given = {
            name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)
        }
        if given:
            changed[section] = type(getattr(base, section))(**given)
    return Config(data_dir=data_dir, **changed)  # type: ignore[arg-type]  # checked one by one in values.py
