"""Which lock is needed: as little as possible to download, and nothing that is there already. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

LOCKS = ("base", "database", "local", "dev")
"""The locks, each holding all of the one before it."""

PURPOSES = ("chat", "run", "setup", "test")

_MODEL_VARIABLES = ("OMOIDE_LLM__BASE_URL", "OMOIDE_LLM__API_KEY", "OPENAI_API_KEY")


def needed(purpose: str, *, env: Mapping[str, str], config: Mapping[str, object]) -> str:
    """Return the lock for a purpose: a model or a database of one's own need not be downloaded."""
    if purpose == "test":
        return "dev"
    if purpose == "setup" or not _has_model(env, config):
        return "local"
    return "base" if _has_database(env, config) else "database"


def covers(have: str, need: str) -> bool:
    """Tell whether an installed lock holds all of another."""
    return have in LOCKS and LOCKS.index(have) >= LOCKS.index(need)


def read_config(path: Path) -> Mapping[str, object]:
    """Return what a settings file holds; nothing if it cannot be read, which the program itself will tell."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}


def _has_model(env: Mapping[str, str], config: Mapping[str, object]) -> bool:
    return (
        _is_set(env, *_MODEL_VARIABLES)
        or _holds(config, "llm", "base_url")
        or _holds(config, "llm", "api_key")
    )


def _has_database(env: Mapping[str, str], config: Mapping[str, object]) -> bool:
    return _is_set(env, "OMOIDE_MONGO__URI") or _holds(config, "mongo", "uri")


def _is_set(env: Mapping[str, str], *variables: str) -> bool:
    return any(env.get(variable, "").strip() for variable in variables)


def _holds(config: Mapping[str, object], section: str, key: str) -> bool:
    table = config.get(section)
    return isinstance(table, dict) and bool(table.get(key))
