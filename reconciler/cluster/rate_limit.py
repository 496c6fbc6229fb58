"""A token bucket that limits how fast headroom calls an API server."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class RateLimit:
    """Allows `per_second` calls in the long run, `burst` at once. Thread-safe: each caller waits for its own turn."""

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._interval = 1 / per_second
        self._slack = self._interval * (burst - 1)
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._next = clock() - self._slack

    def wait(self) -> None:
        """Blocks until the caller may proceed."""
        with self._lock:
            now = self._clock()
            self._next = max(self._next, now - self._slack)
            turn, self._next = self._next, self._next + self._interval
        if turn > now:
            self._sleep(turn - now)
