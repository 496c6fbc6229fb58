"""What the daemon does beside its passes, each on a thread of its own: reports on pull requests, and snapshots."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import timedelta

from reconciler.daemon.state import as_failure, tell
from reconciler.model.errors import Failure, Waiting
from reconciler.model.source import PullRequest
from reconciler.telemetry.logs import Log, logger

SOON = 5.0
"""Seconds until the next look or attempt while something is still missing, such as the cluster's first view."""


class Reviews:
    """pull_requests: returns the open ones into the watched branch. report: plans one and posts it; returns the outcome in a word.
    base: returns the commit they go into, None while it is not known. Nothing is done unless this replica leads.

    Reports are not remembered after a restart, since posting the same again changes nothing.
    """

    def __init__(
        self,
        *,
        pull_requests: Callable[[], Iterable[PullRequest]],
        report: Callable[[PullRequest], str],
        base: Callable[[], str | None],
        is_leader: Callable[[], bool],
        interval: timedelta,
        on_result: Callable[[str], None] = lambda _result: None,
        log: Log | None = None,
    ) -> None:
        self._pull_requests = pull_requests
        self._report = report
        self._base = base
        self._is_leader = is_leader
        self._interval = interval.total_seconds()
        self._on_result = on_result
        self._log = log or logger()
        self._said: dict[int, tuple[str, str]] = {}
        self._waits = False
        self._due = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reviews", daemon=True)

    def start(self, stack: ExitStack) -> None:
        """Runs until the stack is left."""
        stack.callback(self.close)
        self._thread.start()

    def wake(self) -> None:
        """Looks at once: a webhook reported something new, or the base has moved. From any thread."""
        self._due.set()

    def close(self) -> None:
        """Ends without waiting for a report under way: a kill at any instant loses nothing."""
        self._stopping.set()
        self._due.set()

    def look(self) -> None:
        """Looks at all of them once. A failure with one does not affect the others."""
        base = self._base()
        self._waits = base is None
        if base is None or not self._is_leader():
            return
        try:
            pulls = tuple(self._pull_requests())
        except Exception as error:  # noqa: BLE001 - the next look must come in any case
            self._failed(as_failure(error, self._log))
            return
        self._said = {number: said for number, said in self._said.items() if number in {pull.number for pull in pulls}}
        for pull in pulls:
            if self._stopping.is_set():
                return
            state = (pull.head_commit, base)
            if self._said.get(pull.number) == state:
                continue
            try:
                result = self._report(pull)
            except Exception as error:  # noqa: BLE001 - likewise
                self._failed(as_failure(error, self._log), pull=str(pull.number))
                continue
            self._said[pull.number] = state
            self._on_result(result)
            self._log.info("reported on a pull request", pull=pull.number, commit=pull.head_commit, result=result)

    def _failed(self, failure: Failure, **facts: str) -> None:
        if self._stopping.is_set():  # what it needs is being closed
            return
        self._waits = self._waits or isinstance(failure, Waiting)
        self._on_result(type(failure).__name__.lower())
        tell(failure, "could not report on pull requests", self._log, **facts)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._due.clear()
            self.look()
            self._due.wait(min(SOON, self._interval) if self._waits else self._interval)


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
