"""Budgets over a span as JSON, written in parts: the same text as a document written at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.changes import BudgetOutcome
from reconciler.model.timelines import BudgetSpan
from reconciler.report.budgets.document import BUDGETS_SCHEMA, budget_row, budget_spans_json
from reconciler.report.findings.document import finding_row
from reconciler.report.json_text import timestamp, to_json
from tests.plans import NOW, full_plan

START = datetime(2026, 1, 1, tzinfo=UTC)


def spans(count: int) -> Iterator[BudgetSpan]:
    """With gaps and without, with outcomes that come again and others, and with text that JSON escapes."""
    often = [BudgetOutcome("a", "Empty", number, number, 0, 1, 12, f'"{number}"\n{{}}') for number in range(3)]
    for index in range(count):
        begin = START + index * timedelta(minutes=7)
        end = begin + timedelta(minutes=7 if index % 5 else 6, microseconds=index % 2)
        other = BudgetOutcome("b", "Drifted", None, None, 0, 0, index, "any")
        yield BudgetSpan(begin, end, often[index % 3] if index % 4 else other)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 2000, 2001, 2002, 30_000])
def test_parts_make_the_document(count: int) -> None:
    findings = full_plan().findings
    rows = [
        {"from": timestamp(span.start), "to": timestamp(span.end), **budget_row(span.outcome)} for span in spans(count)
    ]
    document = {
        "schemaVersion": BUDGETS_SCHEMA,
        "now": timestamp(NOW),
        "budgets": rows,
        "findings": [finding_row(finding) for finding in findings],
    }
    parts = list(budget_spans_json(spans(count), now=NOW, findings=findings))
    assert "".join(parts) == to_json(document)
    assert max(map(len, parts)) < 2_000_000


def test_rows_are_asked_for_as_they_are_written() -> None:
    asked = []

    def counted() -> Iterator[BudgetSpan]:
        for span in spans(10_000):
            asked.append(span)
            yield span

    next(budget_spans_json(counted(), now=NOW))
    assert len(asked) < 10
