"""APScheduler's jobs: they only say that a poll, a tick or an edge is due."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apscheduler.schedulers.background import BackgroundScheduler

JITTER = 0.05
"""The share by which poll intervals vary, so that many daemons do not ask a Git server at the same time."""


Job = tuple[Callable[[], None], timedelta]
"""A function to call from the scheduler's thread, and how often."""


class Jobs:
    """poll and tick are called between `start` and `stop`."""

    def __init__(self, poll: Job, tick: Job) -> None:
        self._poll, self._poll_interval = poll
        self._tick, self._tick_interval = tick
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
        poll, tick = self._poll_interval.total_seconds(), self._tick_interval.total_seconds()
        jobs: tuple[tuple[Callable[[], None], str, dict[str, Any]], ...] = (
            (self._poll, "poll", {"seconds": poll, "jitter": poll * JITTER}),
            (self._tick, "tick", {"seconds": tick}),
        )
        for job, name, interval in jobs:
            self._scheduler.add_job(job, "interval", id=name, replace_existing=True, **interval)

    def wake(self) -> None:
        """Makes the scheduler look at the clock. It sleeps until its next job, and would not notice that the clock was set."""
        if self._scheduler is not None:
            self._scheduler.wakeup()
