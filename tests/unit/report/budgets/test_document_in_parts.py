"""Budgets over a span as JSON, written in parts: the same text as a document written at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.model.changes import BudgetOutcome
from reconciler.model.timelines import BudgetPieces
from reconciler.report.budgets.document import BUDGETS_SCHEMA, budget_row, budget_spans_json
from reconciler.report.escaping import timestamp, to_json
from reconciler.report.findings import finding_row
from reconciler.timetable.windows import instant_of, ticks
from tests.plans import NOW, full_plan

START = ticks(NOW)
PIECES = 700


def pieces(count: int) -> Iterator[BudgetPieces]:
    """Of several pools: outcomes that come again and others, text that JSON escapes, instants between two seconds."""
    often = [BudgetOutcome("a", "Empty", number, number, 0, 1, 12, f'"{number}"\n{{}}') for number in range(3)]
    made = [
        often[index % 3] if index % 4 else BudgetOutcome("b", "Drifted", None, None, 0, 0, index, "any")
        for index in range(count)
    ]
    for first in range(0, count, PIECES):
        outcomes = made[first : first + PIECES]
        yield BudgetPieces([START + (first + index) * 420_000_001 for index in range(len(outcomes) + 1)], outcomes)


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {"from": timestamp(instant_of(begin)), "to": timestamp(instant_of(end)), **budget_row(outcome)}
        for item in pieces(count)
        for begin, end, outcome in zip(item.edges[:-1], item.edges[1:], item.outcomes, strict=True)
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 2000, 2001, 2002, 30_000])
def test_parts_make_the_document(count: int) -> None:
    findings = full_plan().findings
    document = {
        "schemaVersion": BUDGETS_SCHEMA,
        "now": timestamp(NOW),
        "budgets": rows(count),
        "findings": [finding_row(finding) for finding in findings],
    }
    parts = list(budget_spans_json(pieces(count), now=NOW, findings=findings))
    assert "".join(parts) == to_json(document)
    assert max(map(len, parts)) < 2_000_000


def test_rows_are_asked_for_as_they_are_written() -> None:
    asked = []

    def counted() -> Iterator[BudgetPieces]:
        for item in pieces(10_000):
            asked.append(item)
            yield item

    next(budget_spans_json(counted(), now=NOW))
    assert len(asked) == 1
