"""The real clock. Everything else takes a Clock, so that a test can hold the time in its hand."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime


class SystemClock:
    """The machine's wall clock, and the event loop's waiting."""

    def now(self) -> datetime:
        """Return the time as an aware UTC datetime."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait; a zero or negative time still yields to the event loop once."""
        await asyncio.sleep(max(seconds, 0))
