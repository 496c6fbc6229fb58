"""Disruption budgets as JSON (`headroom.dev/budgets/v1`). Called by `headroom budgets`; the schema is schemas/budgets.v1.json."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from reconciler.model.changes import BudgetOutcome
from reconciler.model.findings import Finding
from reconciler.model.timelines import BudgetSpan
from reconciler.report.findings.document import finding_row
from reconciler.report.json_text import timestamp

BUDGETS_SCHEMA = "headroom.dev/budgets/v1"


def budgets_document(
    outcomes: Sequence[BudgetOutcome], *, now: datetime, findings: Iterable[Finding] = ()
) -> dict[str, Any]:
    """Every pool and reason at one instant."""
    return _document([budget_row(outcome) for outcome in outcomes], now, findings)


def budget_spans_document(
    spans: Sequence[BudgetSpan], *, now: datetime, findings: Iterable[Finding] = ()
) -> dict[str, Any]:
    """Every pool and reason over a span: one row for as long as nothing changes, `from` inclusive, `to` exclusive."""
    rows = [{"from": timestamp(span.start), "to": timestamp(span.end), **budget_row(span.outcome)} for span in spans]
    return _document(rows, now, findings)


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
