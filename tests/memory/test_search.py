"""Finding turns by their words, whatever those are made of, and only those that may be shown."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.search import find, matches, terms_of
from memory.types import DIRECT, Audience, MemoryId, SessionId, Turn, TurnId
from tests.clock import NOON

CLUB, OTHER = Audience("club"), Audience("other")

anything = st.text(st.characters(), max_size=40)  # lone surrogates, controls and all


def said(human: str, reply: str = "", *, audience: Audience = DIRECT, number: int = 0) -> Turn:
    at = NOON + timedelta(seconds=number)
    return Turn(
        TurnId(f"{number:06}"), MemoryId("terminal:ann"), SessionId("s"), audience, at, human, reply, at
    )


class Told:
    """Turns, newest first, that say how many of them were read."""

    def __init__(self, *turns: Turn) -> None:
        self._turns = turns
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[Turn]:
        for turn in self._turns:
            self.read += 1
            yield turn


async def found(
    turns: Sequence[Turn], words: str, *, in_front_of: Audience = DIRECT, limit: int = 10
) -> list[str]:
    told = aiter(Told(*turns))
    return [turn.human for turn in await find(told, words, in_front_of=in_front_of, limit=limit)]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("BLACK cat", "a Cat, quite black"),
        ("straße", "In der STRASSE"),
        ("STRASSE", "in der Straße"),
        ("caf\u00e9", "a cafe\u0301 in Rome"),
        ("cafe\u0301", "a caf\u00e9 in Rome"),
        ("ＡＢＣ１２", "the code is abc12"),
        ("abc12", "the code is ＡＢＣ１２"),
        ("ﬁsh", "he went fishing"),
        ("ΟΔΟΣ", "η οδος"),
        ("πραΰς".upper(), "ο πραΰς"),  # in capitals it is composed of other parts
        ("πραΰς", "Ο " + "πραΰς".upper()),
        ("\u01f0", "J\u030c"),
        ("黑猫", "我今天看见一只黑猫"),
        ("猫 公园", "公园里有一只猫"),
        ("猫　公园", "公园里有一只猫"),
        ("ﾈｺ", "ネコがいる"),
        ("umpki", "a pumpkin"),
        ("\t cat \n", "cat"),
    ],
)
async def test_all_words_are_found_in_any_case_width_and_composition(words: str, text: str) -> None:
    assert await found([said(text)], words) == [text]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("black cat", "a black dog"),
        ("cat", "c a t"),
        ("狗", "我今天看见一只黑猫"),
        ("黑猫", "黑 猫"),
        ("cafe", "caf"),
    ],
)
async def test_what_lacks_a_word_is_not_found(words: str, text: str) -> None:
    assert await found([said(text)], words) == []


async def test_the_words_may_be_spread_over_what_was_said_and_answered_but_none_runs_across() -> None:
    turns = [said("I saw a cat", "Where?"), said("cat", "fish")]
    assert await found(turns, "cat where") == ["I saw a cat"]
    assert await found(turns, "catfish") == []


@pytest.mark.parametrize("words", ["", " ", "\n\t", "\u3000", "\xa0\u2028"])
async def test_no_words_find_nothing_and_nothing_is_read(words: str) -> None:
    told = Told(said("anything"), said(""))
    assert await find(aiter(told), words, in_front_of=DIRECT, limit=10) == ()
    assert told.read == 0


async def test_the_newest_come_first_up_to_the_limit_and_no_more_is_read() -> None:
    turns = [said(f"cat {number}", number=number) for number in reversed(range(10))]
    told = Told(*turns)
    result = await find(aiter(told), "cat", in_front_of=DIRECT, limit=3)
    assert [turn.human for turn in result] == ["cat 9", "cat 8", "cat 7"]
    assert told.read == 3


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_of_none_finds_none(limit: int) -> None:
    assert await found([said("cat")], "cat", limit=limit) == []


async def test_each_audience_finds_what_was_said_to_it_and_the_direct_chat_all() -> None:
    turns = [said("cat direct"), said("cat club", audience=CLUB), said("cat other", audience=OTHER)]
    assert await found(turns, "cat", in_front_of=CLUB) == ["cat club"]
    assert await found(turns, "cat", in_front_of=OTHER) == ["cat other"]
    assert await found(turns, "cat") == ["cat direct", "cat club", "cat other"]


async def test_what_may_not_be_shown_does_not_count_for_the_limit() -> None:
    turns = [said(f"cat {number}") for number in range(5)] + [said("cat club", audience=CLUB)]
    assert await found(turns, "cat", in_front_of=CLUB, limit=1) == ["cat club"]


@given(anything, anything, anything)
def test_no_text_makes_it_fail(human: str, reply: str, words: str) -> None:
    assert matches(said(human, reply), terms_of(words)) in (True, False)


@given(anything, anything)
def test_every_word_of_a_turn_finds_it(human: str, reply: str) -> None:
    turn = said(human, reply)
    for word in f"{human}\n{reply}".split():
        assert matches(turn, terms_of(word)), word


@given(anything, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_however_a_word_is_composed_it_is_the_same_word(text: str, form: str) -> None:
    composed = unicodedata.normalize(form, text)  # type: ignore[arg-type] # one of the four names
    assert terms_of(composed) == terms_of(text)
