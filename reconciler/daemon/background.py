"""What the daemon does beside its passes, each on a thread of its own: reports on pull requests, and snapshots."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta

from reconciler.model.errors import Waiting
from reconciler.ports import PullRequest
from reconciler.telemetry.logs import Log, as_failure, logger, tell

SOON = 5.0
"""Seconds until the next look or attempt while something is still missing, such as the cluster's first view."""


@dataclass(frozen=True, slots=True)
class LoopRules:
    """When a loop looks, and whom it tells. is_leader: nothing is done unless this replica leads. interval: between two looks. on_result:
    told each outcome in a word."""

    is_leader: Callable[[], bool]
    interval: timedelta
    on_result: Callable[[str], None] = lambda _result: None
    log: Log = field(default_factory=logger)


class _BackgroundLoop(ABC):
    """Looks again and again, until it is closed."""

    name: str
    complaint: str

    def __init__(self, rules: LoopRules) -> None:
        self._rules = rules
        self._interval = rules.interval.total_seconds()
        self._soon = min(SOON, self._interval)
        self._due = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def start(self, stack: ExitStack) -> None:
        """Runs until the stack is left."""
        stack.callback(self.close)
        self._thread.start()

    def close(self) -> None:
        """Ends without waiting for a report or a push under way: a kill at any instant loses nothing."""
        self._stopping.set()
        self._due.set()

    def look(self) -> float:
        """Looks once; returns the seconds until the next look."""
        try:
            return self._look()
        except Exception as error:  # noqa: BLE001 - the next look must come in any case
            return self._failed(error)

    @abstractmethod
    def _look(self) -> float: ...

    def _failed(self, error: Exception, **facts: str) -> float:
        """Tells of the failure; returns the seconds until the next look."""
        if self._stopping.is_set():  # what it needs is being closed
            return 0.0
        failure = as_failure(error, self._rules.log)
        self._rules.on_result(type(failure).__name__.lower())
        tell(failure, self.complaint, self._rules.log, **facts)
        return self._soon if isinstance(failure, Waiting) else self._interval

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._due.clear()
            self._due.wait(self.look())


class Reviews(_BackgroundLoop):
    """pull_requests: returns the open ones into the watched branch. report: plans one and posts it; returns the outcome in a word.
    base: returns the commit they go into, None while it is not known.

    Reports are not remembered after a restart, since posting the same again changes nothing.
    """

    name = "reviews"
    complaint = "could not report on pull requests"

    def __init__(
        self,
        rules: LoopRules,
        *,
        pull_requests: Callable[[], Iterable[PullRequest]],
        report: Callable[[PullRequest], str],
        base: Callable[[], str | None],
    ) -> None:
        super().__init__(rules)
        self._pull_requests = pull_requests
        self._report = report
        self._base = base
        self._said: dict[int, tuple[str, str]] = {}

    def wake(self) -> None:
        """Looks at once: a webhook reported something new, or the base has moved. From any thread."""
        self._due.set()

    def _look(self) -> float:
        """Looks at all of them once. A failure with one does not affect the others."""
        base = self._base()
        if base is None:
            return self._soon
        if not self._rules.is_leader():
            return self._interval
        pulls = tuple(self._pull_requests())
        self._said = {number: said for number, said in self._said.items() if number in {pull.number for pull in pulls}}
        wait = self._interval
        for pull in pulls:
            if self._stopping.is_set():
                break
            state = (pull.head_commit, base)
            if self._said.get(pull.number) == state:
                continue
            try:
                result = self._report(pull)
            except Exception as error:  # noqa: BLE001 - the others must be looked at in any case
                wait = min(wait, self._failed(error, pull=str(pull.number)))
                continue
            self._said[pull.number] = state
            self._rules.on_result(result)
            self._rules.log.info("reported on a pull request", pull=pull.number, commit=pull.head_commit, result=result)
        return wait


class Snapshots(_BackgroundLoop):
    """publish: takes a snapshot and pushes it if it has changed; returns the outcome in a word."""

    name = "snapshots"
    complaint = "could not publish a snapshot"

    def __init__(self, rules: LoopRules, publish: Callable[[], str]) -> None:
        super().__init__(rules)
        self._publish = publish

    def _look(self) -> float:
        if not self._rules.is_leader():
            return self._soon
        result = self._publish()
        self._rules.on_result(result)
        self._rules.log.info("snapshot", result=result)
        return self._interval
