"""The passes that did something, for `headroom status` and the daemon's page: the newest first, and only as many as a person reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from reconciler.model.changes import NOT_WRITTEN, Apply, ApplyStatus, Delete, Outcome
from reconciler.report.json_text import timestamp
from reconciler.report.plan.document import money
from reconciler.report.status.document import PassReport, pass_summary, result_of, write_rows

MOST_HISTORY = 20
MOST_WRITES = 20
"""The most writes of one pass in the history."""

_OF_ONE_PASS = frozenset({"finished", "trigger", "times", "since", "perHourBefore", "perHourAfter"})
"""The fields in which passes with the same result may differ."""


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
        result = result_of(report.failure)
        if not writes and result == before["result"] == "ok":
            return
        row = _row(report, writes, result)
        if self._rows and not row["applied"] and _came_to(row) == _came_to(before):
            times = before.get("times", 1) + 1
            self._rows[0] = {**row, "times": times, "since": before.get("since", before["finished"])}
        else:
            self._rows.appendleft(row)


def _row(report: PassReport, writes: list[dict[str, Any]], result: str) -> dict[str, Any]:
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
