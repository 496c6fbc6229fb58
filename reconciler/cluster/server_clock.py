"""The API server's clock, from the dates of its answers. Ages of objects go by that clock, and this machine's may be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock

from reconciler.model.view import ClusterView
from reconciler.plan.clock_skew import NOT_TOLD

_STEADY = timedelta(seconds=3)
"""Smaller differences mean nothing, since a `Date` header has whole seconds and answers take time."""


def seconds_awake_or_asleep() -> float:
    """Seconds that only increase, also while the machine sleeps. On Linux `time.monotonic` stands still then."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class ServerClock:
    """Thread-safe. Between answers it advances by elapsed seconds, so that setting this machine's clock changes nothing.

    An API server that never tells the time still dates new objects. Its time is at least that of the newest object.
    """

    def __init__(
        self,
        *,
        elapsed: Callable[[], float] = seconds_awake_or_asleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._elapsed = elapsed
        self._now = now
        self._lock = Lock()
        self._heard: tuple[datetime, float] | None = None
        self._skew = timedelta(0)
        self._answers_without = 0
        self._newest: tuple[datetime, float] | None = None
        self._doubt = timedelta(0)

    def hear(self, date: str | None) -> None:
        """Takes the `Date` header of an answer that has just come. An invalid date is ignored."""
        try:
            told = parsedate_to_datetime(date or "").astimezone(UTC)
        except ValueError:
            with self._lock:
                self._answers_without += 1
            return
        with self._lock:
            self._heard = (told, self._elapsed())

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
            skew = self._now() - (told + timedelta(seconds=self._elapsed() - at))
            if abs(skew - self._skew) > _STEADY:
                self._skew = timedelta(0) if abs(skew) <= _STEADY else timedelta(seconds=round(skew.total_seconds()))
            return self._skew

    def see(self, created: datetime) -> None:
        """Takes the creation time of an object, which is not later than the server's present time."""
        with self._lock:
            at = self._elapsed()
            if self._newest is None or created > self._newest[0] + timedelta(seconds=at - self._newest[1]):
                self._newest = (created, at)

    @property
    def doubt(self) -> timedelta:
        """How much further than `skew` this machine may be ahead if the server does not tell, in whole seconds without small changes."""
        if not self.is_untold:
            return timedelta(0)
        with self._lock:
            if self._newest is None:
                return timedelta(0)
            created, at = self._newest
            doubt = self._now() - (created + timedelta(seconds=self._elapsed() - at))
            if abs(doubt - self._doubt) > _STEADY:
                self._doubt = timedelta(0) if doubt <= _STEADY else timedelta(seconds=round(doubt.total_seconds()))
            return self._doubt

    def dated(self, view: ClusterView) -> ClusterView:
        """The view with the skew of the clocks, or the doubt if the server does not tell."""
        if not self.is_untold:
            return replace(view, clock_skew=self.skew) if self.skew else view
        made = (item.created for items in (view.node_claims, view.nodes, view.pods) for item in items)
        newest = max((at for at in made if at is not None), default=None)
        if newest is not None:
            self.see(newest)
        return replace(view, clock_doubt=self.doubt, findings=(*view.findings, NOT_TOLD))


def clocks_of(view: ClusterView) -> tuple[object, ...]:
    """The parts of the view that `dated` sets."""
    return (view.clock_skew, view.clock_doubt, view.findings)
