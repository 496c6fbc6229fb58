"""The last pass and how many there were: told to logs and metrics, asked by /status. One object a daemon, made by wiring."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from reconciler.model.changes import Outcome
from reconciler.ports import Clock, PassResult
from reconciler.report.daemon_status import daemon_status_document
from reconciler.report.words import summary
from reconciler.telemetry.logs import Log
from reconciler.telemetry.metrics import Metrics
from reconciler.telemetry.passes import result_of
from reconciler.telemetry.redaction import redacted


class LastPass:
    """Thread-safe: passes are told from the daemon's thread, the document is asked for by web threads."""

    def __init__(self, *, cluster: str, clock: Clock, metrics: Metrics, log: Log) -> None:
        self._cluster = cluster
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._started = clock.now()
        self._passes = 0
        self._document: Mapping[str, Any] | None = None
        self._lock = threading.Lock()

    def document(self) -> Mapping[str, Any] | None:
        """As `headroom.dev/status/v1`; None before the first pass has ended."""
        with self._lock:
            return self._document

    def observe(self, trigger: str, result: PassResult) -> None:
        now = self._clock.now()
        with self._lock:
            self._passes += 1
            document = daemon_status_document(
                cluster=self._cluster,
                started=self._started,
                finished=now,
                passes=self._passes,
                plan=result.plan,
                change_set=result.change_set,
                tree=result.tree,
                failure=result.failure,
                settled=result.settled,
                timings=result.timings,
            )
            # It is served to whoever asks, and messages of Git or a server may quote a credential.
            self._document = redacted(document)
        self._metrics.observe(result, now=now)
        self._tell(trigger, result)

    def _tell(self, trigger: str, result: PassResult) -> None:
        """One line a pass; one more for each write that did not succeed."""
        writes = () if result.change_set is None else result.change_set.results
        applied = sum(write.outcome is Outcome.APPLIED for write in writes)
        facts: dict[str, Any] = {
            "trigger": trigger,
            "result": result_of(result),
            "revision": None if result.tree is None else result.tree.revision,
            "plan": None if result.plan is None else summary(result.plan),
            "applied": applied,
            "settled": result.settled,
            "seconds": round(sum(result.timings.values()), 3),
        }
        # A pass that found nothing to do is no news, and of one that failed the daemon tells.
        tell = self._log.info if applied else self._log.debug
        tell("pass", **facts)
        for write in writes:
            if not write.ok:
                waits = write.outcome is Outcome.SKIPPED
                (self._log.info if waits else self._log.warning)(
                    "write", object=str(write.write.ref), outcome=write.outcome.value, message=write.message
                )
