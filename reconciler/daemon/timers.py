"""When a pass is due: the next edge, polls and ticks, and what people ask for.

An APScheduler date job wakes at the instant of an edge. Its date is by the machine's clock, which may be set, and machines sleep.
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
JITTER = 0.05
"""The share by which poll intervals vary, so that many daemons do not ask a Git server at the same time."""
_CLOSE = timedelta(milliseconds=500)
"""A job whose date is off by more than this, since a clock was set, gets another date."""


class Edges:
    """next_edge: returns the first edge after an instant. at_edge: called when an edge has come, from any thread.

    Thread-safe. Every edge is reported once, since the next one is always after the present.
    """

    def __init__(
        self, next_edge: Callable[[datetime], Edge | None], clock: Clock, at_edge: Callable[[Edge], None]
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


class Jobs:
    """poll and tick are called between `start` and `stop`, from the scheduler's thread, each at its own interval."""

    def __init__(self, poll: tuple[Callable[[], None], timedelta], tick: tuple[Callable[[], None], timedelta]) -> None:
        self._jobs = {"poll": (*poll, JITTER), "tick": (*tick, 0.0)}
        self._scheduler: BackgroundScheduler | None = None

    def start(self) -> BackgroundScheduler:
        """Starts the scheduler and returns it, for other jobs."""
        from apscheduler.schedulers.background import BackgroundScheduler

        self._scheduler = BackgroundScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        )
        self.plan()
        self._scheduler.start()
        return self._scheduler

    def stop(self) -> None:
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)
            self._scheduler = None

    def plan(self) -> None:
        """Sets the dates of all jobs, counted from now. After a clock was set back they would otherwise be late."""
        if self._scheduler is None:
            return
        for name, (call, interval, share) in self._jobs.items():
            seconds = interval.total_seconds()
            jitter = seconds * share
            self._scheduler.add_job(call, "interval", seconds=seconds, jitter=jitter, id=name, replace_existing=True)

    def wake(self) -> None:
        """Makes the scheduler look at the clock. It sleeps until its next job, and would not notice that the clock was set."""
        if self._scheduler is not None:
            self._scheduler.wakeup()


class Requests:
    """A request is the value of an annotation. Not thread-safe: the daemon holds a lock.

    handled: the newest value for which a pass was made.
    """

    def __init__(self) -> None:
        self.handled = ""
        self._newest = ""
        self._waiting = ""
        """Asked for, and no poll has begun since."""
        self._polling = ""
        """The poll under way began after it was asked for."""
        self._polled = ""
        """The next pass is for it."""

    def ask(self, value: str) -> bool:
        """Whether it is a new request."""
        if not value or value in (self._newest, self.handled):
            return False
        self._newest = self._waiting = value
        return True

    def poll_begins(self) -> None:
        self._polling, self._waiting = self._waiting, ""

    def poll_ended(self) -> bool:
        """Whether a pass is due now, whatever the poll came to."""
        asked, self._polling = self._polling, ""
        self._polled = asked or self._polled
        return bool(asked)

    def pass_begins(self) -> str:
        """What to hand to `pass_ended`: the request that the pass is for, or ""."""
        asked, self._polled = self._polled, ""
        return asked

    def pass_ended(self, asked: str) -> None:
        self.handled = asked or self.handled
