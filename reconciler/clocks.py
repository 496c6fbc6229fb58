"""Clocks: the machine's, or one that `--now` sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class FixedClock:
    """Always the same instant, for `--now` of a one-shot command."""

    def __init__(self, instant: datetime) -> None:
        self._instant = instant.astimezone(UTC)

    def now(self) -> datetime:
        return self._instant


class ShiftedClock:
    """Starts at an instant and runs at the machine's pace, for the daemon's `--now`."""

    def __init__(self, start: datetime) -> None:
        self._start = start.astimezone(UTC)
        self._began = monotonic()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=monotonic() - self._began)
