"""Disruption budgets as JSON (`headroom.dev/budgets/v1`). Called by `headroom budgets`; the schema is schemas/budgets.v1.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from reconciler.model.changes import BudgetOutcome
from reconciler.model.findings import Finding
from reconciler.model.timelines import BudgetSpan
from reconciler.report.findings.document import finding_row
from reconciler.report.json_text import indented, timestamp, to_json

_ROWS_A_PART = 2000
_MOST_KEPT = 10_000
BUDGETS_SCHEMA = "headroom.dev/budgets/v1"


def budgets_document(
    outcomes: Sequence[BudgetOutcome], *, now: datetime, findings: Iterable[Finding] = ()
) -> dict[str, Any]:
    """Every pool and reason at one instant."""
    return _document([budget_row(outcome) for outcome in outcomes], now, findings)


def budget_spans_json(spans: Iterable[BudgetSpan], *, now: datetime, findings: Iterable[Finding] = ()) -> Iterator[str]:
    """Every pool and reason over a span, in parts: one row for as long as nothing changes, `to` exclusive.

    In parts, and without a value for each row, since a year of two hundred pools has a million rows.
    """
    whole = to_json(_document([{}], now, findings))
    before, after = whole.split("{}", 1)
    rows = _rows(spans)
    first = next(rows, None)
    if first is None:
        yield to_json(_document([], now, findings))
        return
    yield before + first
    while part := ",\n    ".join(islice(rows, _ROWS_A_PART)):
        yield f",\n    {part}"
    yield after


def _rows(spans: Iterable[BudgetSpan]) -> Iterator[str]:
    known: dict[int, tuple[BudgetOutcome, str]] = {}
    last, words = None, ""
    for span in spans:
        begin = words if span.start is last else timestamp(span.start)
        last, words = span.end, timestamp(span.end)
        found = known.get(id(span.outcome))
        if found is None:
            if len(known) >= _MOST_KEPT:
                known.clear()
            # The outcome is kept too, so that no other one can come to have its id.
            found = known[id(span.outcome)] = (span.outcome, indented(budget_row(span.outcome), "\n    ")[1:])
        yield f'{{\n      "from": "{begin}",\n      "to": "{words}",{found[1]}'


def _document(rows: list[dict[str, Any]], now: datetime, findings: Iterable[Finding]) -> dict[str, Any]:
    return {
        "schemaVersion": BUDGETS_SCHEMA,
        "now": timestamp(now),
        "budgets": rows,
        "findings": [finding_row(finding) for finding in findings],
    }


def budget_row(row: BudgetOutcome) -> dict[str, Any]:
    return {
        "nodePool": row.node_pool,
        "reason": row.reason,
        "budget": row.budget,
        "allowed": row.allowed,
        "disrupting": row.disrupting,
        "notReady": row.not_ready,
        "total": row.total,
        "why": row.why,
    }
