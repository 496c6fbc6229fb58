"""The API server's clock, from the dates of its answers. Ages of objects go by that clock, and this machine's may be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock

from reconciler.model.view import ClusterView
from reconciler.plan.facts import NOT_TOLD

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
    _answers_without: int = 0
    _dated: tuple[ClusterView, tuple[timedelta, bool], ClusterView] | None = None

    def hear(self, date: str | None) -> None:
        """Takes the `Date` header of an answer that has just come. An invalid date is ignored."""
        try:
            told = parsedate_to_datetime(date or "").astimezone(UTC)
        except ValueError:
            with self._lock:
                self._answers_without += 1
            return
        with self._lock:
            self._heard = (told, self.elapsed())

    @property
    def is_untold(self) -> bool:
        """Whether the server answers but never tells the time."""
        with self._lock:
            return self._heard is None and self._answers_without > 0

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
        """The view with the skew of the clocks, or the finding that the server does not tell the time. It is the same object as long as
        nothing changes."""
        skew, is_untold = self.skew, self.is_untold
        if not skew and not is_untold:
            return view
        if self._dated is None or self._dated[0] is not view or self._dated[1] != (skew, is_untold):
            untold = replace(view, clock_is_known=False, findings=(*view.findings, NOT_TOLD))
            self._dated = view, (skew, is_untold), untold if is_untold else replace(view, clock_skew=skew)
        return self._dated[2]
