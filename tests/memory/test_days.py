"""A person's days: over midnight, over daylight saving, over days that never were."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.days import bounds, day_of, find_zone, yesterday

BERLIN = ZoneInfo("Europe/Berlin")
SAO_PAULO = ZoneInfo("America/Sao_Paulo")
APIA = ZoneInfo("Pacific/Apia")
HOUR = timedelta(hours=1)


def utc(*when: int) -> datetime:
    return datetime(*when, tzinfo=UTC)  # type: ignore[arg-type, misc]  # the numbers of a date, in order


def test_a_minute_after_midnight_yesterday_is_the_day_that_has_just_ended() -> None:
    # 22:59 and 23:01 UTC are 23:59 and 00:01 in Berlin.
    before = yesterday(utc(2026, 3, 4, 22, 59), BERLIN)
    after = yesterday(utc(2026, 3, 4, 23, 1), BERLIN)
    assert before == (utc(2026, 3, 2, 23), utc(2026, 3, 3, 23))
    assert after == (utc(2026, 3, 3, 23), utc(2026, 3, 4, 23))


def test_yesterday_is_the_persons_and_not_the_machines() -> None:
    now = utc(2026, 3, 4, 22)
    assert day_of(now, ZoneInfo("Asia/Tokyo")) == date(2026, 3, 5)
    assert yesterday(now, ZoneInfo("Asia/Tokyo")) == (utc(2026, 3, 3, 15), utc(2026, 3, 4, 15))
    assert yesterday(now, ZoneInfo("America/Los_Angeles")) == (utc(2026, 3, 3, 8), utc(2026, 3, 4, 8))


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        (BERLIN, date(2026, 3, 29), 23),
        (BERLIN, date(2026, 10, 25), 25),
        (BERLIN, date(2026, 6, 1), 24),
        (SAO_PAULO, date(2018, 11, 4), 23),
        (SAO_PAULO, date(2018, 2, 17), 25),
        (ZoneInfo("Australia/Lord_Howe"), date(2026, 10, 4), 23.5),
        (APIA, date(2011, 12, 30), 0),
        (ZoneInfo("America/Havana"), date(2026, 11, 1), 25),
    ],
)
def test_a_day_has_as_many_hours_as_it_had_there(zone: ZoneInfo, day: date, hours: float) -> None:
    start, end = bounds(day, zone)
    assert (end - start) / HOUR == hours


def test_where_midnight_does_not_exist_the_day_begins_at_the_jump() -> None:
    start, _ = bounds(date(2018, 11, 4), SAO_PAULO)
    assert start == utc(2018, 11, 4, 3)
    assert start.astimezone(SAO_PAULO).hour == 1
    assert day_of(start - timedelta(milliseconds=1), SAO_PAULO) == date(2018, 11, 3)
    assert yesterday(start, SAO_PAULO) == bounds(date(2018, 11, 3), SAO_PAULO)


def test_a_day_that_was_skipped_is_empty_and_its_neighbours_meet() -> None:
    _, end_of_29 = bounds(date(2011, 12, 29), APIA)
    start_of_31, _ = bounds(date(2011, 12, 31), APIA)
    assert bounds(date(2011, 12, 30), APIA) == (end_of_29, end_of_29)
    assert start_of_31 == end_of_29


ZONES = ("Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu", "America/New_York", "UTC")


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(2000, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - Hypothesis wants bounds without a zone
)
def test_every_moment_lies_in_its_own_day_and_after_its_yesterday(name: str, at: datetime) -> None:
    zone = ZoneInfo(name)
    start, end = bounds(day_of(at, zone), zone)
    assert start <= at < end
    assert yesterday(at, zone)[1] == start


@given(st.sampled_from(ZONES), st.dates(date(1990, 1, 1), date(2035, 1, 1)))
def test_days_follow_each_other_without_gap_or_overlap(name: str, day: date) -> None:
    zone = ZoneInfo(name)
    start, end = bounds(day, zone)
    assert start <= end == bounds(day + timedelta(days=1), zone)[0]


@pytest.mark.parametrize("name", ["Europe/Berlin", "UTC", "America/Argentina/Ushuaia"])
def test_a_zone_is_found_by_its_name(name: str) -> None:
    zone = find_zone(name)
    assert zone is not None
    assert zone.key == name


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", ".", "..", "../x", "/etc/passwd", "Europe", "Europe/", "Europe//Berlin", "Mars/Olympus"),
        *("\0", "\udc80", "x" * 5000, "zone.tab", "Europe/__init__.py", "Europe/Berlin/x"),
    ],
)
def test_what_is_no_zone_is_none_and_no_error(name: str) -> None:
    assert find_zone(name) is None


@given(st.text())
def test_no_text_makes_the_look_up_fail(name: str) -> None:
    zone = find_zone(name)
    assert zone is None or zone.key == name
