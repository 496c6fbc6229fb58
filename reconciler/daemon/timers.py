"""When a pass is due: the next edge, polls and ticks, and what people ask for.

Edges are by a clock that may be set, and machines sleep: `look` compares with it each second. Edges that have passed count once, as the
present, and are never replayed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from math import inf
from random import uniform
from time import monotonic

from reconciler.model.schedules import Edge
from reconciler.ports import Clock


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

    @property
    def next(self) -> Edge | None:
        with self._lock:
            return self._next

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

    def look(self) -> float:
        """Reports the next edge if it has come; the first one after the present is then next. Returns the seconds until that one."""
        with self._lock:
            now = self._clock.now()
            edge = self._next
            if edge is not None and edge.at <= now:
                self._told = now
                self._next = self._ask(now)
                self._at_edge(edge)
            return inf if self._next is None else (self._next.at - now).total_seconds()

    def _ask(self, after: datetime) -> Edge | None:
        try:
            return self._next_edge(after)
        except Exception:  # noqa: BLE001 - a defect there makes passes fail too, which report it; ticks still come
            return None


class Regularly:
    """spread: the share by which intervals vary, so that many daemons do not ask a Git server at the same time.

    Counted by a clock that nobody sets.
    """

    def __init__(self, job: Callable[[], None], interval: timedelta, *, spread: float = 0.0) -> None:
        self._job = job
        self._interval = interval.total_seconds()
        self._spread = spread
        self._due = self._next()

    def look(self) -> float:
        """Calls the job if it is due. Returns the seconds until it is due again."""
        if monotonic() >= self._due:
            self._due = self._next()
            self._job()
        return self._due - monotonic()

    def _next(self) -> float:
        return monotonic() + self._interval * uniform(1 - self._spread, 1 + self._spread)  # noqa: S311 - spreads load


PATIENCE = 15.0
"""Seconds to wait for the poll. Then the pass is made of what is known: Git may be out of reach just when somebody asks."""


class Requests:
    """A request is the value of an annotation. Not thread-safe: the daemon holds a lock.

    handled: the newest value for which a pass was made.
    """

    def __init__(self, seconds: Callable[[], float] = monotonic) -> None:
        self.handled = ""
        self._seconds = seconds
        self._newest = ""
        self._since = 0.0
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
        self._since = self._seconds()
        return True

    def poll_begins(self) -> None:
        self._polling, self._waiting = self._waiting or self._polling, ""

    def poll_ended(self) -> bool:
        """Whether a pass is due now, whatever the poll came to."""
        asked, self._polling = self._polling, ""
        self._polled = asked or self._polled
        return bool(asked)

    def is_overdue(self) -> bool:
        """Whether a pass is due now, since the poll takes too long. It is said once."""
        asked = self._waiting or self._polling
        if not asked or self._seconds() - self._since < PATIENCE:
            return False
        self._polled, self._waiting, self._polling = asked, "", ""
        return True

    def pass_begins(self) -> str:
        """What to hand to `pass_ended`: the request that the pass is for, or ""."""
        asked, self._polled = self._polled, ""
        return asked

    def pass_ended(self, asked: str) -> None:
        self.handled = asked or self.handled
