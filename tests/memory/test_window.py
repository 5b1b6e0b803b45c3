"""The window's policy, as properties: blocks, whole turns, order, and a limit that always holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.window import evicted, next_block

sizes = st.lists(st.integers(min_value=1, max_value=200), max_size=40)
limits = st.integers(min_value=-50, max_value=600)
parts = st.floats(min_value=0, max_value=1)


@given(sizes, limits, parts)
def test_what_stays_fits_the_limit(sizes: list[int], limit: int, part: float) -> None:
    gone = evicted(sizes, limit=limit, keep=int(limit * part))
    assert sum(sizes[gone:]) <= max(limit, 0)


@given(sizes, limits, parts)
def test_nothing_goes_while_everything_fits(sizes: list[int], limit: int, part: float) -> None:
    gone = evicted(sizes, limit=limit, keep=int(limit * part))
    assert (gone == 0) == (sum(sizes) <= limit or not sizes)


@given(sizes, limits, parts)
def test_an_eviction_leaves_at_most_the_low_water_mark_or_one_turn(
    sizes: list[int], limit: int, part: float
) -> None:
    keep = int(limit * part)
    gone = evicted(sizes, limit=limit, keep=keep)
    if gone:
        left = sizes[gone:]
        assert sum(left) <= max(keep, 0) or (len(left) == 1 and left[0] <= limit)


@given(sizes, limits, parts)
def test_no_more_goes_than_must(sizes: list[int], limit: int, part: float) -> None:
    keep = int(limit * part)
    gone = evicted(sizes, limit=limit, keep=keep)
    if gone:
        assert sum(sizes[gone - 1 :]) > min(keep, limit)


@given(sizes, limits)
def test_with_the_whole_limit_to_keep_the_window_slides(sizes: list[int], limit: int) -> None:
    gone = evicted(sizes, limit=limit, keep=limit)
    if gone:
        assert sum(sizes[gone - 1 :]) > limit


@given(sizes, limits, parts)
def test_the_newest_turn_stays_whenever_it_fits(sizes: list[int], limit: int, part: float) -> None:
    if sizes and sizes[-1] <= limit:
        assert evicted(sizes, limit=limit, keep=int(limit * part)) < len(sizes)


@pytest.mark.parametrize(
    ("limit", "keep", "gone"), [(100, 50, 0), (99, 50, 5), (99, 99, 1), (99, 0, 9), (9, 9, 10), (0, 0, 10)]
)
def test_ten_turns_of_ten_tokens(limit: int, keep: int, gone: int) -> None:
    assert evicted([10] * 10, limit=limit, keep=keep) == gone


@given(st.lists(st.integers(min_value=1, max_value=60), min_size=1, max_size=80))
def test_what_is_said_to_go_next_is_what_the_next_eviction_takes(stream: list[int]) -> None:
    limit, keep = 200, 100
    window: list[int] = []
    foretold: list[int] = []
    for size in stream:
        gone = evicted([*window, size], limit=limit, keep=keep)
        if gone:
            # The block foretold goes as a whole; a turn that overshoots may take a few more with it.
            assert gone >= len(foretold)
            window, foretold = window[gone:] if gone <= len(window) else [], []
        if gone <= len(window):
            window.append(size)
        count = next_block(window, limit=limit, keep=keep)
        foretold = window[:count] or foretold
