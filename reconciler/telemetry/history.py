"""The passes that did something, for `headroom status`: the newest first, and only as many as a person reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from reconciler.model.changes import NOT_WRITTEN, ApplyStatus, Outcome

MOST_HISTORY = 20
MOST_WRITES = 20
"""The most writes of one pass in the history."""

_OF_ONE_PASS = frozenset({"finished", "trigger", "times", "since"})
"""The fields in which passes with the same result may differ."""


class History:
    """Rows are made from documents of `headroom.dev/status/v1`, and are never modified."""

    def __init__(self) -> None:
        self._rows: deque[Mapping[str, Any]] = deque(maxlen=MOST_HISTORY)

    def rows(self) -> list[Mapping[str, Any]]:
        return list(self._rows)

    def remember(self, trigger: str, document: Mapping[str, Any]) -> None:
        """Adds a pass that wrote something or tried to, failed, or had another result than the one before. Consecutive passes that
        wrote nothing and had the same result are one row."""
        row = _row(trigger, document)
        before: Mapping[str, Any] = self._rows[0] if self._rows else {"result": ""}
        if not document["writes"] and row["result"] == before["result"] == "ok":
            return
        if self._rows and not row["applied"] and _came_to(row) == _came_to(before):
            times = before.get("times", 1) + 1
            self._rows[0] = {**row, "times": times, "since": before.get("since", before["finished"])}
        else:
            self._rows.appendleft(row)


def _row(trigger: str, document: Mapping[str, Any]) -> dict[str, Any]:
    writes = document["writes"]
    applied = [row for row in writes if row["outcome"] == Outcome.APPLIED]
    failed = sum(row["outcome"] in NOT_WRITTEN for row in writes)
    return {
        "finished": document["finished"],
        "trigger": trigger,
        "result": "partial" if failed and document["result"] == "ok" else document["result"],
        "message": document["message"],
        "summary": document["summary"],
        "applied": len(applied),
        "statuses": sum(row["write"] == ApplyStatus.__name__ for row in applied),
        "failed": failed,
        "writes": writes[:MOST_WRITES],
    }


def _came_to(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in _OF_ONE_PASS}
