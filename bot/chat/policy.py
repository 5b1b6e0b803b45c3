"""What to do about each way in which a model goes wrong: the one table.

It exists so that whether to try again, what to keep and what to say is read in one place and decided by the
type of the error alone. Nothing is ever asked again once the person has seen text of the reply.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from bot.errors import (
    ModelBroken,
    ModelError,
    ModelInterrupted,
    ModelMalformed,
    ModelMissing,
    ModelRefused,
    ModelSilent,
    ModelTooSlow,
    ModelUnauthorized,
    ModelUnreachable,
    PromptTooLong,
    RateLimited,
)
from memory import Outcome


class Excuse(StrEnum):
    """Which kind sentence the person gets; the value is its key in the catalogue of texts."""

    UNREACHABLE = "model-unreachable"
    MISCONFIGURED = "model-misconfigured"
    BUSY = "model-busy"
    BROKEN = "model-broken"
    TOO_SLOW = "model-too-slow"
    INTERRUPTED = "model-interrupted"
    SILENT = "model-silent"
    REFUSED = "model-refused"
    TOO_LONG = "model-too-long"


@dataclass(frozen=True, slots=True)
class Wait:
    """How long to wait before a further try, in seconds.

    `first`, then `factor` times as long each time, never above `most`; jitter takes up to half of it off,
    so that many who failed together do not come back together. What the server asked for comes first; if
    that is above `most`, nobody should be left waiting for it.
    """

    first: float = 0.0
    factor: float = 2.0
    most: float = 20.0

    def seconds(self, tried: int, *, told: float | None, jitter: float) -> float | None:
        """Return the wait before try number `tried` + 1, or None not to try; `jitter` is in [0, 1)."""
        if told is not None:
            return told + jitter if told <= self.most else None
        return min(self.first * self.factor**tried, self.most) * (1 - jitter / 2)


@dataclass(frozen=True, slots=True)
class Row:
    """What to do about one type of error.

    `tries`: how often to ask again while nothing has been shown, after `wait` each time.
    `shrinks`: how often to ask again with a smaller window (what the window shows is the engine's).
    `excuse`: what the person is told when that is over. `level`: for the log.
    `shown` and `unshown`: how the turn ends with text of the reply already shown, which is kept, and without.
    """

    excuse: Excuse
    level: int = logging.WARNING
    tries: int = 0
    wait: Wait = Wait()
    shrinks: int = 0
    shown: Outcome = Outcome.INTERRUPTED
    unshown: Outcome = Outcome.FAILED


POLICY: Mapping[type[ModelError], Row] = MappingProxyType(
    {
        # A server that restarts is back within seconds.
        ModelUnreachable: Row(Excuse.UNREACHABLE, tries=2, wait=Wait(first=0.5)),
        # Only whoever runs the bot can mend these: asking again is no use, and the log must stand out.
        ModelUnauthorized: Row(Excuse.MISCONFIGURED, level=logging.ERROR),
        ModelMissing: Row(Excuse.MISCONFIGURED, level=logging.ERROR),
        RateLimited: Row(Excuse.BUSY, tries=3, wait=Wait(first=2.0)),
        ModelBroken: Row(Excuse.BROKEN, tries=2, wait=Wait(first=1.0)),
        # The whole patience of the person has gone into the first try.
        ModelTooSlow: Row(Excuse.TOO_SLOW),
        ModelInterrupted: Row(Excuse.INTERRUPTED, tries=1, wait=Wait(first=0.5)),
        ModelMalformed: Row(Excuse.BROKEN, tries=1, wait=Wait(first=0.5)),
        # Sampling: the next try may find words.
        ModelSilent: Row(Excuse.SILENT, tries=1),
        ModelRefused: Row(Excuse.REFUSED, level=logging.INFO),
        PromptTooLong: Row(Excuse.TOO_LONG, level=logging.INFO, shrinks=2),
        # For a type that nobody has thought about yet.
        ModelError: Row(Excuse.BROKEN),
    }
)


def row_for(error: ModelError) -> Row:
    """Return the row of the most specific type that has one."""
    return next(POLICY[kind] for kind in type(error).__mro__ if kind in POLICY)
