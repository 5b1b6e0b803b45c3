"""Text that must not be seen: a key, or an address with a password in it.

It cannot be printed, logged or formatted by accident; who needs it says so by calling `reveal`.
"""

from __future__ import annotations

from urllib.parse import urlsplit


class Secret:
    """A text whose `repr` and `str` hide it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret('***')"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written to a file")


def hosts_of(address: Secret) -> str:
    """Return what of an address may be shown to people: scheme and hosts, no user, password or options."""
    parts = urlsplit(address.reveal())
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
