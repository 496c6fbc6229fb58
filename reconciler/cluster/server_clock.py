"""The API server's clock, from the dates of its answers. Ages of objects go by that clock, and this machine's may be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock

from reconciler.model.view import ClusterView

_STEADY = timedelta(seconds=3)
"""Smaller differences mean nothing, since a `Date` header has whole seconds and answers take time."""


def seconds_awake_or_asleep() -> float:
    """Seconds that only increase, also while the machine sleeps. On Linux `time.monotonic` stands still then."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(kw_only=True)
class ServerClock:
    """Thread-safe. Between answers it advances by elapsed seconds, so that setting this machine's clock changes nothing."""

    elapsed: Callable[[], float] = seconds_awake_or_asleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _lock: Lock = field(default_factory=Lock)
    _heard: tuple[datetime, float] | None = None
    _skew: timedelta = timedelta(0)
    _dated: tuple[ClusterView, ClusterView] | None = None
    """A view, and the same with the skew."""

    def hear(self, date: str | None) -> None:
        """Takes the `Date` header of an answer that has just come. None, and an invalid date, are ignored."""
        with suppress(ValueError):
            told = parsedate_to_datetime(date or "").astimezone(UTC)
            with self._lock:
                self._heard = (told, self.elapsed())

    @property
    def skew(self) -> timedelta:
        """This machine's time less the server's, in whole seconds. Small changes are ignored."""
        with self._lock:
            if self._heard is None:
                return timedelta(0)
            told, at = self._heard
            skew = self.now() - (told + timedelta(seconds=self.elapsed() - at))
            if abs(skew - self._skew) > _STEADY:
                self._skew = timedelta(0) if abs(skew) <= _STEADY else timedelta(seconds=round(skew.total_seconds()))
            return self._skew

    def dated(self, view: ClusterView) -> ClusterView:
        """The view with the skew of the clocks. It is the same object as long as nothing changes."""
        skew = self.skew
        if not skew:
            return view
        known = self._dated
        if known is None or known[0] is not view or known[1].clock_skew != skew:
            known = self._dated = (view, replace(view, clock_skew=skew))
        return known[1]
