"""Everything the product itself says to people, in every language it knows: catalogues of whole sentences.

A text has a key and named places to fill in. A test keeps the catalogues complete and their places alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from bot.texts.en import ENGLISH
from bot.texts.zh import CHINESE

CATALOGUES: Mapping[str, Mapping[str, str]] = MappingProxyType({"en": ENGLISH, "zh": CHINESE})


class Texts:
    """The sentences of one language."""

    def __init__(self, language: str) -> None:
        """Take the language of a locale such as "zh-Hans" or "de_DE.UTF-8"; unknown ones get English."""
        code = language.replace("_", "-").split("-")[0].split(".")[0].lower()
        self.language = code if code in CATALOGUES else "en"
        self._catalogue = CATALOGUES[self.language]

    def __call__(self, key: str, **places: object) -> str:
        """Return the sentence of this key with its places filled in; what is filled in is only text."""
        return self._catalogue[key].format(**places)

    def counted(self, key: str, count: int) -> str:
        """Return "1 turn" or "3 turns", as the language has it."""
        return self(f"{key}.one" if count == 1 else f"{key}.many", count=count)
