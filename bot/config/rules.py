"""What a setting's value must be beyond its type: each rule returns a complaint, or None.

Pure. A complaint ends the sentence "… must be" and never quotes the value, which may be a secret.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def is_named(value: object) -> str | None:
    """Accept any text with something in it."""
    return None if str(value).strip() else "a text that is not empty"


def is_web_address(value: object) -> str | None:
    """Accept an http or https address of a server, without a user or password in it."""
    try:
        parts = urlsplit(str(value))
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return "an address such as http://127.0.0.1:8080/v1"
    if not sound or re.search(r"\s", str(value)):
        return "an address such as http://127.0.0.1:8080/v1"
    if "@" in parts.netloc:
        return "an address without a user and password in it (a key belongs into llm.api_key)"
    return None


def is_mongo_address(value: object) -> str | None:
    """Accept what MongoDB's drivers take as an address."""
    found = re.fullmatch(r"mongodb(\+srv)?://[^\s/?]+(/\S*)?", str(value))
    return None if found else "an address such as mongodb://user:password@host:27017"


def is_database_name(value: object) -> str | None:
    """Accept a name that MongoDB accepts for a database."""
    found = re.fullmatch(r'[^\s/\\."$*<>:|?\0]{1,38}', str(value))
    return None if found else 'a name of at most 38 characters without spaces and / \\ . " $ * < > : | ?'


def is_zone(value: object) -> str | None:
    """Accept the name of an IANA time zone."""
    name = str(value)
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        near = get_close_matches(name, available_timezones(), 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        return f"an IANA time zone such as Europe/Berlin{meant}"
    return None


def is_language(value: object) -> str | None:
    """Accept "auto" or the tag of a language."""
    text = str(value)
    found = text == "auto" or _LANGUAGE.fullmatch(text)
    return None if found else '"auto" or the code of a language, such as "en" or "zh"'
