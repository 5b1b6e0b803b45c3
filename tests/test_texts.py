"""The catalogues: complete in every language, with the same places to fill in."""

from __future__ import annotations

import string

import pytest

from bot.chat.policy import Excuse
from bot.commands import COMMANDS
from bot.texts import CATALOGUES, Texts

ENGLISH = CATALOGUES["en"]


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", CATALOGUES)
def test_a_catalogue_has_every_text_with_every_place(language: str) -> None:
    catalogue = CATALOGUES[language]
    assert set(catalogue) == set(ENGLISH)
    for key, text in catalogue.items():
        assert text.strip()
        assert _places(text) == _places(ENGLISH[key]), key


@pytest.mark.parametrize("language", CATALOGUES)
def test_every_excuse_and_every_command_has_its_texts(language: str) -> None:
    texts = Texts(language)
    for excuse in Excuse:
        assert texts(excuse.value)
    for command in COMMANDS:
        assert texts(f"help.{command.name}")
        assert texts(f"usage.{command.name}").startswith(f"/{command.name}")


def test_command_names_are_unique_and_words() -> None:
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)
    assert all(name.isalpha() and name.islower() for name in names)


def test_an_unknown_locale_gets_english_and_a_region_its_language() -> None:
    assert Texts("zh-Hans").language == Texts("zh_CN.UTF-8").language == Texts("ZH").language == "zh"
    assert Texts("").language == Texts("xx").language == Texts("C").language == "en"


def test_what_is_filled_in_is_only_text() -> None:
    assert Texts("en")("search.nothing", words="{0.__class__} {words}") == (
        "I found nothing with “{0.__class__} {words}”."
    )


def test_one_is_one_and_many_are_many() -> None:
    assert Texts("en").counted("count.turns", 1) == "1 turn"
    assert Texts("en").counted("count.turns", 0) == "0 turns"
    assert Texts("zh").counted("count.turns", 2) == "2 轮对话"
