"""Time is cut without gaps, and a prefix ends where the next one begins."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memory.stores.queries import after_prefix, steps_back
from tests.clock import NOON

moments = st.timedeltas(timedelta(days=-3000), timedelta(days=3000)).map(lambda gap: NOON + gap)


@given(moments, st.none() | moments, st.none() | moments, moments)
def test_every_moment_is_in_one_stretch_if_it_is_asked_for_and_in_none_if_not(
    now: datetime, since: datetime | None, until: datetime | None, moment: datetime
) -> None:
    asked = (since is None or moment >= since) and (until is None or moment < until)
    holding = [
        (low, high)
        for low, high in steps_back(now, since=since, until=until)
        if (low is None or moment >= low) and (high is None or moment < high)
    ]
    assert len(holding) == (1 if asked else 0)


@given(moments, st.none() | moments, st.none() | moments)
def test_stretches_go_back_in_time_and_are_few(
    now: datetime, since: datetime | None, until: datetime | None
) -> None:
    stretches = steps_back(now, since=since, until=until)
    assert 1 <= len(stretches) <= 6
    for (low, _), (_, high) in pairwise(stretches):
        assert low == high
        assert low is not None


@given(st.text(), st.text())
def test_what_has_a_prefix_is_below_the_end_of_the_prefix(prefix: str, rest: str) -> None:
    end = after_prefix(prefix)
    assert end is None or prefix + rest < end


@given(st.text(), st.text())
def test_what_lies_between_a_prefix_and_its_end_has_the_prefix(prefix: str, other: str) -> None:
    end = after_prefix(prefix)
    if prefix <= other and (end is None or other < end):
        assert other.startswith(prefix)
