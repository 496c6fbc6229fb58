"""Budgets as written in local time, shown beside what is applied: on the terminal, in JSON, on the page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta

from reconciler.model.changes import Action, ObjectChange
from reconciler.model.declared import DeclaredManifest
from reconciler.model.nodes import DisruptionBudget
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.schedules import AllowWindow, LocalBudgets, PoolBudgets
from reconciler.report.difference.difference import Details, difference
from reconciler.report.difference.page import difference_page
from reconciler.report.plan.document import plan_document
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from reconciler.timetable.compiled_budgets import compiled
from reconciler.wiring.pages import rendered_page
from tests.plans import NOW, full_plan

WRITTEN = LocalBudgets(
    budgets=(
        DisruptionBudget("0", ("Drifted",), "0 9 * * mon-fri", timedelta(hours=8)),
        DisruptionBudget("10%"),
    ),
    allow_windows=(AllowWindow("0 22 * * *", timedelta(hours=8), ("Empty",)),),
    time_zone="Asia/Kolkata",
)
POOL = PoolBudgets("batch", WRITTEN, compiled(WRITTEN, NOW), SourcePosition("pools.yaml", 7))
PLAN = replace(
    full_plan(),
    objects=(ObjectChange(ObjectRef("karpenter.sh", "NodePool", "", "batch"), Action.UPDATE),),
    local_budgets=(POOL,),
)


def test_a_pool_that_does_not_change_is_in_the_json_alone() -> None:
    still = replace(PLAN, objects=())
    assert "Asia/Kolkata" not in page_text(plan_page(still, cluster="production", zone=UTC))
    (row,) = plan_document(still)["localBudgets"]
    assert row["written"]["allowWindows"] == [{"reasons": ["Empty"], "schedule": "0 22 * * *", "duration": "8h"}]
    assert row["compiled"][0] == {
        "nodes": "0",
        "reasons": ["Drifted"],
        "schedule": "30 3 * * mon-fri",
        "duration": "8h",
    }
    assert (row["renewAt"], row["validUntil"]) == ("2026-12-01T00:00:00Z", "2027-10-01T00:00:00Z")


def test_on_the_page_both_are_in_one_row() -> None:
    (section,) = [item for item in plan_page(PLAN, cluster="x", zone=UTC)["sections"] if "local time" in item["title"]]
    assert section["columns"] == ["Name", "Written", "Applied, in UTC"]
    assert section["rows"][0]["what"] == "0 (Drifted): 0 9 * * mon-fri for 8h, in Asia/Kolkata"
    assert section["rows"][0]["fields"] == ["0 (Drifted): 30 3 * * mon-fri for 8h"]


def test_the_page_says_until_when_the_applied_form_is_right_and_names_its_column() -> None:
    page = plan_page(PLAN, cluster="x", zone=UTC)
    (section,) = [item for item in page["sections"] if "local time" in item["title"]]
    right = "valid until 2027-10-01 00:00 UTC; recompiled from 2026-12-01 00:00 UTC."
    assert section["notes"] == [f"NodePool/batch: {right}"]
    for name in ("report.md.j2", "report.html.j2"):
        assert right in rendered_page(name, page)
    html = rendered_page("report.html.j2", page)
    assert 'data-column="Applied, in UTC"><code>0 (Drifted): 30 3 * * mon-fri for 8h' in html


def test_a_difference_shows_what_was_written_of_the_pools_that_differ_and_of_no_others() -> None:
    """One field of one pool is edited."""

    def documents(nodes: str) -> list[DeclaredManifest]:
        return [
            DeclaredManifest(
                ObjectRef("karpenter.sh", "NodePool", "", name), {"spec": value}, SourcePosition("a.yaml", 1)
            )
            for name, value in (("batch", nodes), ("other", "same"))
        ]

    plan = replace(PLAN, local_budgets=(POOL, replace(POOL, node_pool="other")))
    change = difference(plan, plan, Details(written=(documents("1"), documents("2"))))
    text = page_text(difference_page(change, cluster="production", zone=UTC))
    written = "NodePool/batch: 0 (Drifted): 0 9 * * mon-fri for 8h, in Asia/Kolkata"
    assert f"  {written}\n      0 (Drifted): 30 3 * * mon-fri for 8h\n" in text
    assert "NodePool/other: 0" not in text
    page = difference_page(change, cluster="x", zone=UTC)
    (section,) = [item for item in page["sections"] if "local time" in item["title"]]
    assert {row["name"] for row in section["rows"]} == {"NodePool/batch"}
    assert "valid until 2027-10-01" in rendered_page("report.md.j2", page)
