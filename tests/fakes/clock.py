"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from reconciler.ports import Clock

START = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
"""A Monday morning."""


class ManualClock(Clock):
    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def advance(self, step: timedelta | float) -> datetime:
        """Forward by a span or by seconds; a negative one is a clock that was set back. Returns the new time."""
        with self._lock:
            self._now += step if isinstance(step, timedelta) else timedelta(seconds=step)
            return self._now
