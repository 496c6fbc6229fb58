"""The last pass and the number of passes, for logs, metrics and /status. One object for each daemon, made by wiring."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC
from typing import Any

from reconciler.model.changes import NOT_WRITTEN, Apply, ApplyStatus, Delete, Outcome, Plan
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import counted, listed
from reconciler.model.remembered import WaitingDeletions
from reconciler.model.timelines import BufferPast, FillPoint
from reconciler.ports import Clock, PassResult
from reconciler.report.escaping import timestamp
from reconciler.report.plan.document import money
from reconciler.report.plan.words import summary, waiting_words
from reconciler.report.status.document import PassReport, Seen, pass_summary, result_word, write_rows
from reconciler.telemetry.buffers import FillHistory
from reconciler.telemetry.logs import Log
from reconciler.telemetry.metrics import Metrics, Problems, problems_of, result_of

MOST_HISTORY = 20
MOST_WRITES = 20
"""The most writes of one pass in the history."""

_OF_ONE_PASS = frozenset({"finished", "trigger", "times", "since", "perHourBefore", "perHourAfter"})
"""The fields in which passes with the same result may differ."""
MOST_NAMED = 3
"""The most demands without their capacity, or waiting objects, to name in one line of the log."""


class History:
    """Rows are parts of a document of `headroom.dev/status/v1`, and are never modified."""

    def __init__(self) -> None:
        self._rows: deque[Mapping[str, Any]] = deque(maxlen=MOST_HISTORY)

    def rows(self) -> list[Mapping[str, Any]]:
        return list(self._rows)

    def remember(self, report: PassReport) -> None:
        """Adds a pass that wrote something or tried to, failed, or had another result than the one before. Consecutive passes that
        wrote nothing and had the same result are one row."""
        before: Mapping[str, Any] = self._rows[0] if self._rows else {"result": ""}
        writes = write_rows(report.change_set)
        result = result_word(report.failure)
        if not writes and result == before["result"] == "ok":
            return
        row = _history_row(report, writes, result)
        if self._rows and not row["applied"] and _came_to(row) == _came_to(before):
            times = before.get("times", 1) + 1
            self._rows[0] = {**row, "times": times, "since": before.get("since", before["finished"])}
        else:
            self._rows.appendleft(row)


def _history_row(report: PassReport, writes: list[dict[str, Any]], result: str) -> dict[str, Any]:
    applied = [row for row in writes if row["outcome"] == Outcome.APPLIED]
    failed = sum(row["outcome"] in NOT_WRITTEN for row in writes)
    nodes = [row["write"] for row in applied if row["object"].startswith("NodeClaim/")]
    cost = report.plan.cost if report.plan is not None and report.planned else None
    return {
        "finished": timestamp(report.finished),
        "trigger": report.trigger,
        "revision": None if report.tree is None else report.tree.revision,
        "result": "partial" if failed and result == "ok" else result,
        "message": "" if report.failure is None else report.failure.message,
        "summary": pass_summary(report),
        "applied": len(applied),
        "statuses": sum(row["write"] == ApplyStatus.__name__ for row in applied),
        "failed": failed,
        "nodesMade": nodes.count(Apply.__name__),
        "nodesDeleted": nodes.count(Delete.__name__),
        "perHourBefore": None if cost is None else money(cost.per_hour_before),
        "perHourAfter": None if cost is None else money(cost.per_hour_after),
        "writes": writes[:MOST_WRITES],
    }


def _came_to(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in _OF_ONE_PASS}


class LastPass:
    """Thread-safe: the daemon's thread reports passes, and web threads read the report.

    A pass pays only for references: whatever is shown of it is computed when somebody looks.
    """

    def __init__(self, *, cluster: str, clock: Clock, metrics: Metrics, log: Log) -> None:
        self._clock = clock
        self._metrics = metrics
        self._log = log
        now = clock.now()
        self._report = PassReport(cluster, now, now, 0)
        self._history = History()
        self._fill = FillHistory()
        self._lock = threading.Lock()
        self._findings: dict[tuple[str, str, str, str], Finding] = {}
        self._stalled: tuple[str, str] | None = None
        self._settled = False
        self._problems: Problems = frozenset()
        self._waiting = WaitingDeletions()
        self._lasting: set[str] = set()

    def report(self) -> PassReport:
        """The last pass, with what earlier ones left; without a pass before the first has ended."""
        with self._lock:
            return self._report

    def points(self) -> tuple[FillPoint, ...]:
        """How full all buffers together were, and what nodes cost."""
        with self._lock:
            return self._fill.points()

    def past(self, buffer: str) -> BufferPast:
        """How full one buffer was, and when it was refilled. buffer: its name, as in `CapacityBuffer/shop/web`."""
        with self._lock:
            return self._fill.of(buffer)

    def pasts(self) -> dict[str, tuple[FillPoint, ...]]:
        """How full each buffer was, by its name."""
        with self._lock:
            return self._fill.by_buffer()

    def observe(self, trigger: str, result: PassResult, seen: Seen | None = None) -> None:
        """Takes over a pass. seen: what its plan was made from."""
        now = self._clock.now()
        ended = self._metrics.observe(result, now=now)
        seen = seen or Seen()
        with self._lock:
            before = self._report
            fresh = result.plan is not None
            report = replace(
                before,
                finished=now,
                passes=before.passes + 1,
                trigger=trigger,
                plan=result.plan if fresh else before.plan,
                planned=fresh,
                change_set=result.change_set,
                tree=result.tree or before.tree,
                failure=result.failure,
                settled=result.settled,
                timings=result.timings,
                seen=seen if fresh else before.seen,
            )
            self._history.remember(report)
            self._report = replace(report, history=self._history.rows())
            if result.plan is not None:
                self._fill.observe(result.plan, ended, now)
        self._tell(trigger, result)

    def _tell(self, trigger: str, result: PassResult) -> None:
        """Logs a line for a pass that changed something, and one for what is new: writes that fail, findings, a stall."""
        writes = () if result.change_set is None else result.change_set.results
        applied = [write for write in writes if write.outcome is Outcome.APPLIED]
        statuses = sum(isinstance(write.write, ApplyStatus) for write in applied)
        facts: dict[str, Any] = {
            "trigger": trigger,
            "result": result_of(result),
            "revision": None if result.tree is None else result.tree.revision,
            "plan": None if result.plan is None else summary(result.plan, UTC),
            "applied": len(applied) - statuses,
            "statuses": statuses,
            "seconds": round(sum(result.timings.values()), 3),
        }
        # A pass that found nothing to do is not logged, and the daemon itself logs one that failed.
        tell = self._log.info if applied else self._log.debug
        tell("pass", **facts)
        for trace in result.traces:
            self._log.debug("an object was set aside", exception=trace)
        if result.change_set is not None:
            self._tell_problems(problems_of(result.change_set))
        self._tell_news(result)

    def _tell_problems(self, problems: Problems) -> None:
        """Logs the writes that were not made, and those that no longer fail, unless the pass before had the same."""
        before, self._problems = self._problems, problems
        waiting: dict[str, list[str]] = {}
        for about, outcome, message in sorted(problems - before):
            if outcome == Outcome.SKIPPED:
                waiting.setdefault(message, []).append(about)
            else:
                self._log.warning("write", object=about, outcome=outcome, message=message)
        for message, objects in waiting.items():
            named = listed(objects, most=MOST_NAMED)
            self._log.info("write", object=named, outcome=Outcome.SKIPPED.value, message=message)
        still = {about for about, _, _ in problems}
        for about, outcome, _ in sorted(before):
            if about not in still and outcome != Outcome.SKIPPED:
                self._log.info("write no longer fails", object=about, outcome=outcome)

    def _tell_waiting(self, waiting: WaitingDeletions) -> None:
        """Logs what waits to be deleted, if other objects wait than in the pass before."""
        before, self._waiting = self._waiting, waiting
        if waiting and waiting.refs != before.refs:
            objects = listed(map(str, waiting.refs), most=MOST_NAMED)
            self._log.info(waiting_words(waiting, UTC), objects=objects)

    def _tell_turn(self, begins: str, ends: str, *, lasts: bool, **facts: str) -> None:
        """Logs once when a state begins, and once when it ends. What changes meanwhile is in the status."""
        if lasts and begins not in self._lasting:
            self._lasting.add(begins)
            self._log.warning(begins, **facts)
        elif not lasts and begins in self._lasting:
            self._lasting.remove(begins)
            self._log.info(ends)

    def _tell_news(self, result: PassResult) -> None:
        """Logs what began or ended since the pass before: findings, a stall, being settled."""
        if result.plan is not None:
            findings = {
                (finding.code, str(finding.position or ""), str(finding.ref or ""), finding.message): finding
                for finding in result.plan.findings
                if finding.severity is not Severity.INFO
            }
            for key in sorted(findings.keys() - self._findings.keys()):
                finding = findings[key]
                self._log.warning(
                    "finding",
                    severity=finding.severity.value,
                    code=finding.code,
                    where=key[1],
                    object=key[2],
                    message=finding.message,
                    hint=finding.hint,
                )
            for key in sorted(self._findings.keys() - findings.keys()):
                self._log.info("finding is gone", code=key[0], where=key[1], object=key[2])
            self._findings = findings
        if result.tree is not None and result.tree.stalled != self._stalled:
            self._stalled = result.tree.stalled
            if self._stalled is None:
                self._log.info("the repository can be read again", revision=result.tree.revision)
            else:
                reason, message = self._stalled
                self._log.warning("stalled: the last good commit stays in force", reason=reason, message=message)
        if result.plan is not None:
            blocked = result.plan.blocked
            reasons = listed(blocked, most=MOST_NAMED)
            self._tell_turn(
                "nothing is deleted or released", "deletions and releases go on", lasts=bool(blocked), reasons=reasons
            )
            self._tell_turn("suspended: nothing is applied", "no longer suspended", lasts=result.suspended)
            self._tell_waiting(result.plan.waiting)
        if result.settled and not self._settled:
            without = [] if result.plan is None else _without_capacity(result.plan)
            if without:
                self._log.info(
                    "settled: nothing is left that can be changed now, but not all capacity is there",
                    without=listed(without, most=MOST_NAMED),
                )
            elif self._waiting:
                self._log.info("settled: nothing is left that can be changed now, but objects wait to be deleted")
            else:
                self._log.info("settled: the cluster is as declared")
        self._settled = result.settled


def _without_capacity(plan: Plan) -> list[str]:
    """`2 of 5 chunks of CapacityBuffer/shop/web`: buffers and requests whose chunks have no place, and those that are not ready."""
    names = []
    for outcome in plan.demands:
        service, ref = outcome.service, outcome.demand.ref
        if outcome.demand.is_pending_pod:
            continue
        if not service.ready:
            names.append(f"{ref} (not ready)")
        elif service.missing:
            names.append(f"{service.missing:,} of {counted(service.wanted or 0, 'chunk')} of {ref}")
    return names
