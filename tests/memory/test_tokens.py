"""The token estimator learns a server's true prices from its counts, for any mix of scripts."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.tokens import Measure, Prices, TokenEstimator, measure

LATIN = "the parcel from Lisbon came today, and the exam is on Friday at nine; "
CJK = "明日は試験があります。昨天收到了包裹，心情很好。"
CYRILLIC = "посылка пришла сегодня "


def server(text: str, *, latin: float, cjk: float, other: float = 0.6) -> int:
    """Count as a tokenizer with these prices would."""
    size = measure(text)
    return round(size.ascii * latin + size.cjk * cjk + size.other * other)


@pytest.mark.parametrize(("latin", "cjk"), [(0.22, 0.6), (0.25, 1.0), (0.4, 1.6), (0.3, 2.2), (0.15, 0.7)])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_within_a_few_turns_the_estimate_is_near_what_the_server_counts(
    latin: float, cjk: float, share: float
) -> None:
    estimator = TokenEstimator()
    text = CJK * round(40 * share) + LATIN * round(12 * (1 - share))
    for _ in range(6):
        estimator.learn(measure(text), server(text, latin=latin, cjk=cjk))
    assert estimator.count(text) == pytest.approx(server(text, latin=latin, cjk=cjk), rel=0.05)


def test_prompts_of_changing_mixture_teach_the_price_of_each_script() -> None:
    estimator = TokenEstimator()
    chance = random.Random(7)
    for _ in range(40):
        text = LATIN * chance.randint(1, 20) + CJK * chance.randint(1, 20)
        estimator.learn(measure(text), server(text, latin=0.22, cjk=0.7))
    for text in (LATIN * 20, CJK * 20):
        assert estimator.count(text) == pytest.approx(server(text, latin=0.22, cjk=0.7), rel=0.1)


def test_what_one_script_teaches_leaves_the_others_alone() -> None:
    estimator = TokenEstimator()
    before = estimator.count(CJK * 10)
    for _ in range(5):
        estimator.learn(measure(LATIN * 20), server(LATIN * 20, latin=0.2, cjk=1))
    assert estimator.count(CJK * 10) == before


def test_a_third_script_is_learned_too() -> None:
    estimator = TokenEstimator()
    for _ in range(6):
        estimator.learn(measure(CYRILLIC * 30), server(CYRILLIC * 30, latin=0.25, cjk=1, other=0.45))
    counted = server(CYRILLIC * 30, latin=0.25, cjk=1, other=0.45)
    assert estimator.count(CYRILLIC * 30) == pytest.approx(counted, rel=0.05)


measures = st.builds(
    Measure,
    ascii=st.integers(0, 100_000),
    cjk=st.integers(0, 100_000),
    other=st.integers(0, 100_000),
    messages=st.integers(0, 500),
)


@given(st.lists(st.tuples(measures, st.integers(-10, 10**9)), max_size=30), st.text(min_size=1))
def test_whatever_a_server_counts_the_estimate_stays_positive_and_finite(
    counts: list[tuple[Measure, int]], text: str
) -> None:
    estimator = TokenEstimator()
    for size, counted in counts:
        estimator.learn(size, counted)
    estimate = estimator.count(text)
    assert estimate >= 1
    assert math.isfinite(estimate)


@given(st.lists(st.tuples(measures, st.integers(0, 10**6)), max_size=5), st.text(), st.text())
def test_a_longer_text_never_costs_less(counts: list[tuple[Measure, int]], text: str, more: str) -> None:
    estimator = TokenEstimator()
    for size, counted in counts:
        estimator.learn(size, counted)
    assert estimator.count(text) <= estimator.count(text + more)


@given(st.text())
def test_every_character_is_counted_once(text: str) -> None:
    size = measure(text)
    assert size.ascii + size.cjk + size.other == len(text)
    assert min(size.ascii, size.cjk, size.other) >= 0


@given(st.text(), st.text())
def test_measures_add_up_and_take_away(one: str, other: str) -> None:
    both = measure(one, messages=1) + measure(other)
    assert both == measure(one + other, messages=1)
    assert both - measure(other) == measure(one, messages=1)


@given(measures, st.integers(1, 10**6))
def test_a_correction_never_moves_away_from_the_count(size: Measure, counted: int) -> None:
    prices = Prices()
    before, after = prices.tokens(size), prices.corrected(size, counted).tokens(size)
    assert abs(after - counted) <= abs(before - counted) + 1
