"""The next edge as a timer: an instant at which a schedule's value changes.

An APScheduler date job wakes at the instant itself. Its date is by the machine's clock, which may be set, and machines sleep.
So `look` compares with the clock each second. Edges that have passed count once, as the present, and are never replayed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from reconciler.model.schedules import Edge
from reconciler.ports import Clock

if TYPE_CHECKING:
    from apscheduler.schedulers.background import BackgroundScheduler

_JOB = "edge"
_CLOSE = timedelta(milliseconds=500)
"""A job whose date is off by more than this, since a clock was set, gets another date."""


class Edges:
    """next_edge: returns the first edge after an instant. at_edge: called when an edge has come, from any thread.

    Thread-safe. Every edge is reported once, since the next one is always after the present.
    """

    def __init__(
        self,
        next_edge: Callable[[datetime], Edge | None],
        clock: Clock,
        at_edge: Callable[[Edge], None],
    ) -> None:
        self._next_edge = next_edge
        self._clock = clock
        self._at_edge = at_edge
        self._lock = threading.RLock()
        self._next: Edge | None = None
        self._told: datetime | None = None
        self._job_at: datetime | None = None
        self._scheduler: BackgroundScheduler | None = None

    @property
    def next(self) -> Edge | None:
        with self._lock:
            return self._next

    def start(self, scheduler: BackgroundScheduler) -> None:
        with self._lock:
            self._scheduler = scheduler
            self._set_job()

    def stop(self) -> None:
        with self._lock:
            self._scheduler = None

    def look_from(self, since: datetime) -> None:
        """Finds the first edge after `since`, which may be past, since the declaration or the clock may have changed."""
        with self._lock:
            now = self._clock.now()
            if self._told is not None and self._told > now:
                self._told = None  # the clock was set back, so edges it has passed come again
            if self._told is not None:
                since = max(since, self._told)
            self._next = self._ask(since)
            self.look()

    def look(self) -> None:
        """Reports the next edge if it has come; the first one after the present is then next."""
        with self._lock:
            now = self._clock.now()
            edge = self._next
            if edge is not None and edge.at <= now:
                self._told = now
                self._next = self._ask(now)
                self._at_edge(edge)
            self._set_job()

    def _ask(self, after: datetime) -> Edge | None:
        try:
            return self._next_edge(after)
        except Exception:  # noqa: BLE001 - a defect there makes passes fail too, which report it; ticks still come
            return None

    def _set_job(self) -> None:
        if self._scheduler is None:
            return
        if self._next is None:
            if self._job_at is not None and self._scheduler.get_job(_JOB) is not None:
                self._scheduler.remove_job(_JOB)
            self._job_at = None
            return
        at = datetime.now(UTC) + (self._next.at - self._clock.now())
        if self._job_at is not None and abs(at - self._job_at) < _CLOSE and self._scheduler.get_job(_JOB) is not None:
            return
        self._scheduler.add_job(self.look, "date", run_date=at, id=_JOB, replace_existing=True)
        self._job_at = at
