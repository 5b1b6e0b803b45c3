"""Days as the person has them: from midnight to midnight in their zone, however many hours that is."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def find_zone(name: str) -> ZoneInfo | None:
    """Return the zone of this IANA name, or None if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # ValueError: not a name at all ("../x", NUL). OSError: the name of a folder ("Europe").
        return None


def day_of(at: datetime, zone: ZoneInfo) -> date:
    """Return the person's calendar day at this moment."""
    return at.astimezone(zone).date()


def bounds(day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return when a day begins and when the next one does, in UTC.

    Where a midnight does not exist (the clock springs over it), the day begins at the moment of the jump.
    """
    start = datetime.combine(day, time.min, tzinfo=zone)
    end = datetime.combine(day + timedelta(days=1), time.min, tzinfo=zone)
    return start.astimezone(UTC), end.astimezone(UTC)


def yesterday(now: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return the bounds of the person's yesterday, in UTC."""
    return bounds(day_of(now, zone) - timedelta(days=1), zone)
