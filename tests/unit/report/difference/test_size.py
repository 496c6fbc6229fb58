"""A comment on a pull request has a limit. The summary is never cut by it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reconciler.model.changes import (
    Action,
    DemandOutcome,
    FieldChange,
    NodeClaimChanges,
    NodeClaimCreation,
    ObjectChange,
    Plan,
)
from reconciler.model.findings import Finding, Severity
from reconciler.model.placement import Holding, UnplacedReason
from reconciler.model.refs import SourcePosition
from reconciler.report.difference.difference import Difference, difference
from reconciler.report.difference.headline import headline
from reconciler.report.difference.page import difference_page
from reconciler.report.escaping import markdown_text
from reconciler.wiring.pages import MOST_BYTES, rendered_page
from tests.builders import buffer_ref, demand
from tests.plans import NOW, planned

WIDE = "\u20ac" * 700
"""Three bytes each, so that characters and bytes differ."""


def large(count: int) -> Difference:
    """Another change, reason and finding for each, so that nothing can be grouped."""
    names = [f"buffer-{index}" for index in range(count)]
    plan = Plan(
        None,
        NOW,
        demands=tuple(
            DemandOutcome(
                demand(name, count=index + 2),
                0,
                index + 1,
                1,
                (UnplacedReason("NodePool limit", index, f"NodePool {name} is at its limit {WIDE}"),),
            )
            for index, name in enumerate(names)
        ),
        node_claims=NodeClaimChanges(
            create=tuple(
                NodeClaimCreation(name, planned(Holding(buffer_ref(name), 0, 1), price=0.1)) for name in names
            ),
        ),
        objects=tuple(
            ObjectChange(buffer_ref(name), Action.UPDATE, (FieldChange("spec.note", WIDE, f"{WIDE}{name}"),), {})
            for name in names
        ),
        findings=tuple(
            Finding(
                "unknown-field", Severity.ERROR, f"{name} {WIDE}", SourcePosition(f"{name}.yaml", 1), buffer_ref(name)
            )
            for name in names
        ),
    )
    return difference(Plan(None, NOW), plan)


@pytest.mark.parametrize("count", [1, 70, 500])
def test_a_report_stays_below_the_limit_with_its_summary_whole(count: int) -> None:
    change = large(count)
    text = rendered_page("report.md.j2", difference_page(change, cluster="production"))
    assert len(text.encode()) < MOST_BYTES
    assert markdown_text(headline(change)) in text
    assert text.count("<details>") == text.count("</details>")
    for shown, left in re.findall(r"((?:^[|-].*\n)+)\n*… and ([\d,]+) more", text, re.MULTILINE):
        assert shown.count("buffer-") >= count - int(left.replace(",", "")), "what is left out is counted"
    assert ("… and " in text) == (count > 1)


def test_equal_rows_are_one_row_that_counts_them() -> None:
    names = [f"buffer-{index}" for index in range(70)]
    outcomes = tuple(DemandOutcome(demand(name, count=2), 0, 2, 0) for name in names)
    change = difference(Plan(None, NOW), replace(Plan(None, NOW), demands=outcomes))
    text = rendered_page("report.md.j2", difference_page(change, cluster="production"))
    assert text.count("absent → 2") == 1
    assert "and 67 more" in text


def test_equal_input_gives_equal_bytes() -> None:
    once, again = (rendered_page("report.md.j2", difference_page(large(70), cluster="c")) for _ in range(2))
    assert once == again
