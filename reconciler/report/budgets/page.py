"""Disruption budgets as plain rows for `budgets.html.j2`: the heat map, and the same in words. Called by `headroom budgets`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from reconciler.model.changes import BudgetOutcome
from reconciler.model.findings import Finding
from reconciler.model.timelines import BudgetSpan
from reconciler.report.budgets.chart import budget_chart
from reconciler.report.budgets.pools import by_row
from reconciler.report.drawing.time_axis import local_zone, span_words
from reconciler.report.drawing.value_lanes import allowed_spans, merged, number_of
from reconciler.report.findings.page import finding_row
from reconciler.report.words import counted, moment

MOST_SPANS = 60
"""The most spans to list for one reason."""


def budget_page(
    outcomes: Sequence[BudgetOutcome],
    spans: Sequence[BudgetSpan],
    *,
    heading: str,
    now: datetime,
    zone: tzinfo | None = None,
    findings: Sequence[Finding] = (),
) -> dict[str, Any]:
    """outcomes: what holds now. spans: what will hold, in order within each NodePool and reason."""
    place = zone or local_zone(now)
    return {
        "title": heading,
        "when": moment(now, place),
        "now": [_outcome(item) for item in outcomes],
        "chart": budget_chart(spans, zone=place, now=now, findings=findings, alone=False),
        "ahead": [
            _ahead(f"{pool} {reason}", own, place)
            for pool, reasons in by_row(spans).items()
            for reason, own in reasons.items()
        ],
        "findings": [finding_row(finding) for finding in findings],
    }


def _outcome(item: BudgetOutcome) -> dict[str, str]:
    return {
        "name": item.node_pool,
        "reason": item.reason,
        "allowed": number_of(item.allowed),
        "budget": number_of(item.budget),
        "total": f"{item.total:,}",
        "why": item.why,
    }


def _ahead(name: str, spans: Sequence[BudgetSpan], zone: tzinfo) -> dict[str, Any]:
    own = merged(allowed_spans(spans))
    rows = [
        {"when": span_words(span.start, span.end, zone), "allowed": number_of(span.value), "why": span.why}
        for span in own[:MOST_SPANS]
    ]
    changes = counted(len(own) - 1, "change")
    return {"name": name, "changes": changes, "rows": rows, "left": max(0, len(own) - MOST_SPANS)}
