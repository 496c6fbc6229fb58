"""New findings of a difference, each counted once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from reconciler.model.changes import Plan
from reconciler.model.findings import Finding, Severity
from reconciler.model.refs import SourcePosition
from reconciler.report.difference.difference import Details, difference
from tests.builders import buffer_ref

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)

REFUSED = Finding("immutable-field", Severity.ERROR, "cannot be changed", SourcePosition("a.yaml", 3, 1), buffer_ref())
NO_YAML = Finding("yaml-syntax", Severity.ERROR, "cannot be read", SourcePosition("a.yaml", 1, 1))


def test_what_the_comparison_and_the_plan_both_find_is_one_finding() -> None:
    head = replace(Plan(None, NOW), findings=(replace(REFUSED, position=SourcePosition("a.yaml", 9, 1)),))
    assert difference(Plan(None, NOW), head, Details(refused=(REFUSED,))).new_findings == (REFUSED,)


def test_two_files_that_cannot_be_read_are_two() -> None:
    other = replace(NO_YAML, position=SourcePosition("b.yaml", 1, 1))
    head = replace(Plan(None, NOW), findings=(NO_YAML, other, other))
    assert difference(Plan(None, NOW), head).new_findings == (NO_YAML, other)
