"""The few statistics that the measurements use: pure.

Times on a shared machine have long tails to one side, so the middle is a median and the spread is the
quartiles; and two sides are compared round by round, so that what slowed a round down slowed both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share (0 to 1) of the values lies, interpolated linearly.

    Raises ValueError if there are no values.
    """
    if not values:
        raise ValueError("no values, no quantile")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of some values, and between which quartiles they lie."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of the values. Raises ValueError if there are none."""
        return cls(quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75))

    def text(self, unit: float = 1.0, digits: int = 2) -> str:
        """Write it down as middle (low-high), each multiplied by `unit`."""
        low, middle, high = (f"{value * unit:.{digits}f}" for value in (self.low, self.middle, self.high))
        return f"{middle} ({low}-{high})"


def ratios(values: Sequence[float], floor: Sequence[float]) -> list[float]:
    """Return each round's value over the floor of the same round. Raises ValueError for unequal lengths."""
    return [value / least for value, least in zip(values, floor, strict=True)]
