"""How two plans' static NodePools differ: each side counted from where it leaves the pool."""

from __future__ import annotations

import pytest

from reconciler.model.changes import Plan, StaticPoolChange
from reconciler.report.difference.difference import difference
from reconciler.report.difference.page import difference_page
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from reconciler.report.plan.words import summary
from tests.plans import NOW


def plan(*pools: StaticPoolChange) -> Plan:
    return Plan(revision=None, now=NOW, static_pools=pools)


GROWS = StaticPoolChange("reports", 1, 4, "m-4x", 0.2)
SHRINKS = StaticPoolChange("reports", 1, 0)


@pytest.mark.parametrize(
    ("base", "head", "line"),
    [
        (plan(), plan(GROWS), "NodePool reports: 3 more nodes (static): m-4x, $0.2000/h each"),
        (plan(GROWS), plan(), "NodePool reports: 3 fewer nodes (static)"),
        (plan(SHRINKS), plan(GROWS), "NodePool reports: 4 more nodes (static): m-4x, $0.2000/h each"),
        (plan(), plan(SHRINKS), "NodePool reports: 1 fewer node (static)"),
        (plan(SHRINKS), plan(), "NodePool reports: 1 more node (static)"),
    ],
)
def test_a_line_for_a_pool_that_comes_to_have_another_size(base: Plan, head: Plan, line: str) -> None:
    change = difference(base, head)
    assert change.has_changes
    assert f"{line}; " in page_text(difference_page(change, cluster="production"))


def test_the_same_on_both_sides_is_no_difference() -> None:
    assert not difference(plan(GROWS), plan(GROWS)).has_changes


def test_the_plan_and_its_summary_name_them() -> None:
    assert "  + NodePool reports: 3 more nodes (static): m-4x, $0.2000/h each; 1 → 4" in page_text(
        plan_page(plan(GROWS), cluster="c")
    )
    assert "  - NodePool reports: 1 fewer node (static); " in page_text(plan_page(plan(SHRINKS), cluster="c"))
    assert summary(plan(GROWS)) == "3 nodes more in static NodePools"
