"""The pure parts of the measurements compute what they say; no time is asserted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import Spread, quantile, ratios

NUMBERS = st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=1, max_size=50)


def test_a_quantile_between_two_values_is_interpolated() -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert quantile([10.0, 20.0], 0.25) == 12.5


@given(NUMBERS)
def test_the_outermost_quantiles_are_the_least_and_the_greatest_value(values: list[float]) -> None:
    assert quantile(values, 0) == min(values)
    assert quantile(values, 1) == max(values)


@given(NUMBERS, st.floats(min_value=0, max_value=1), st.floats(min_value=0, max_value=1))
def test_a_higher_share_never_gives_a_lower_quantile(values: list[float], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert quantile(values, low) <= quantile(values, high) + 1e-6


def test_no_values_have_no_quantile() -> None:
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)


def test_a_spread_is_written_with_its_middle_first() -> None:
    spread = Spread.of([0.001, 0.002, 0.003, 0.004, 0.005])
    assert spread.text(1000, 1) == "3.0 (2.0-4.0)"


def test_each_round_is_compared_with_its_own_floor() -> None:
    assert ratios([2.0, 30.0], [1.0, 10.0]) == [2.0, 3.0]


def test_rounds_without_a_floor_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="argument 2"):
        ratios([1.0, 2.0], [1.0])
