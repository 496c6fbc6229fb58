"""Publishes a snapshot of the cluster every few minutes. It has its own thread, so that no pass waits for a push."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

from reconciler.daemon.failures import as_failure, tell
from reconciler.model.errors import Waiting
from reconciler.telemetry.logs import Log, logger

SOON = 5.0
"""Seconds until the next attempt while something is still missing, such as the cluster's first view."""


class Snapshots:
    """publish: takes a snapshot and pushes it if it has changed; returns the outcome in a word. interval: the least time between two.
    Nothing is done unless this replica leads."""

    def __init__(
        self,
        *,
        publish: Callable[[], str],
        is_leader: Callable[[], bool],
        interval: timedelta,
        on_result: Callable[[str], None] = lambda _result: None,
        log: Log | None = None,
    ) -> None:
        self._publish = publish
        self._is_leader = is_leader
        self._interval = interval.total_seconds()
        self._on_result = on_result
        self._log = log or logger()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="snapshots", daemon=True)

    def start(self, stack: ExitStack) -> None:
        """Runs until the stack is left, without waiting for a push under way: a kill at any instant loses nothing."""
        stack.callback(self._stopping.set)
        self._thread.start()

    def look(self) -> float:
        """Makes one attempt; returns the seconds until the next."""
        if not self._is_leader():
            return min(SOON, self._interval)
        try:
            result = self._publish()
        except Exception as error:  # noqa: BLE001 - the next attempt must come in any case
            if self._stopping.is_set():  # what it needs is being closed
                return 0.0
            failure = as_failure(error, self._log)
            self._on_result(type(failure).__name__.lower())
            tell(failure, "could not publish a snapshot", self._log)
            return min(SOON, self._interval) if isinstance(failure, Waiting) else self._interval
        self._on_result(result)
        self._log.info("snapshot", result=result)
        return self._interval

    def _run(self) -> None:
        while not self._stopping.wait(self.look()):
            pass
