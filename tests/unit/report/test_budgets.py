"""Disruption budgets on a terminal, as JSON and on the page; in local time, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reconciler.model.changes import Action, BudgetOutcome, ObjectChange, Plan
from reconciler.model.nodes import DisruptionBudget, NodePool
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.schedules import AllowWindow, LocalBudgets, PoolBudgets
from reconciler.model.timelines import BudgetPieces
from reconciler.plan.node_pools.budget_timeline import budget_cells
from reconciler.plan.node_pools.disruption_budgets import PoolState, budget_outcomes
from reconciler.report.budgets import BUDGETS_SCHEMA, HourGrid, budget_row, budget_spans_json, budgets_text, hours_text
from reconciler.report.difference.difference import difference
from reconciler.report.difference.page import difference_page
from reconciler.report.escaping import timestamp, to_json
from reconciler.report.findings import finding_row
from reconciler.report.plan.document import plan_document
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from reconciler.timetable.compiled_budgets import compiled
from reconciler.timetable.windows import instant_of, ticks
from reconciler.wiring.posting import rendered_page
from tests.builders import node_pool
from tests.plans import NOW, full_plan

BERLIN = ZoneInfo("Europe/Berlin")
FRIDAY = datetime(2026, 10, 23, 9, tzinfo=UTC)
OFFICE_HOURS = DisruptionBudget("0", ("Drifted",), "0 9 * * mon-fri", timedelta(hours=8))
OFFICE = node_pool("office", budgets=(DisruptionBudget("20%"), OFFICE_HOURS))


def present(pool: NodePool, state: PoolState) -> str:
    outcomes = budget_outcomes([pool], {pool.name: state}, FRIDAY)
    return budgets_text(outcomes, heading="Disruption budgets", now=FRIDAY, zone=BERLIN)


def hours(pool: NodePool, start: datetime, end: datetime, zone: ZoneInfo = BERLIN) -> list[str]:
    grid = HourGrid(start, end, zone=zone)
    cells = budget_cells([pool], {pool.name: PoolState(20)}, grid.edges)
    return hours_text(cells, grid, now=start, zone=zone).splitlines()


def row(lines: list[str], day: str) -> str:
    return next(line for line in lines if line.strip().startswith(day))[14:62].rstrip()


def test_the_present_says_what_may_go_and_which_budget_binds() -> None:
    assert present(OFFICE, PoolState(20, disrupting=1, not_ready=2)) == (
        "Disruption budgets, 2026-10-23 11:00 CEST (09:00 UTC)\n"
        "\n"
        "NodePool office: 20 nodes, 1 disrupting, 2 not ready\n"
        "  Underutilized and Empty  1 allowed     budgets[0] binds: 20% of 20 nodes is 4; "
        "1 disrupting and 2 not ready already, which leaves 1\n"
        "  Drifted                  none allowed  budgets[1] binds: no node at all, "
        "for 8h from each '0 9 * * mon-fri' (UTC)\n"
    )


def test_reasons_alike_share_a_line_also_where_nothing_bounds_them() -> None:
    text = present(node_pool("free", budgets=()), PoolState(1))
    assert "  Underutilized, Empty and Drifted  no limit  the list of budgets is empty: any number may go\n" in text
    assert "NodePool free: 1 node\n" in text


def test_what_closes_a_pool_is_named() -> None:
    seven = DisruptionBudget("5", ("Empty",), "0 0 * * 7", timedelta(hours=1))
    text = present(node_pool("shut", budgets=(DisruptionBudget("5"), seven)), PoolState(9))
    assert (
        "Underutilized, Empty and Drifted  none allowed  budgets[1] cannot be evaluated, so that nothing may go" in text
    )
    assert "7 is above 6, in the field for day of week" in text


def test_days_are_those_of_the_readers_clock_with_utc_below() -> None:
    lines = hours(OFFICE, FRIDAY, FRIDAY + timedelta(days=3, hours=15))
    assert "        CEST  00    03    06    09    12    15    18    21" in lines
    assert "         UTC  22    01    04    07    10    13    16    19" in lines
    # 09:00 to 17:00 UTC is 11:00 to 19:00 in summer and 10:00 to 18:00 in winter.
    assert row(lines, "Fri 23 Oct") == " " * 22 + "0" + "·" * 15 + "4" + "░" * 9
    assert row(lines, "Mon 26 Oct") == "4" + "░" * 19 + "0" + "·" * 15 + "4" + "░" * 11
    assert next(line for line in lines if "Sun 25 Oct" in line).endswith("clocks change to CET, UTC+01:00")
    assert "  office: Underutilized and Empty: 4 at all times" in lines


def test_what_changes_within_every_hour_is_not_said_to_stay() -> None:
    half = DisruptionBudget("0", None, "@hourly", timedelta(minutes=30))
    (line,) = hours(node_pool("half", budgets=(half, DisruptionBudget("7"))), FRIDAY, FRIDAY + timedelta(days=2))[2:]
    assert line == "  half: Underutilized, Empty and Drifted: none at some time of every hour, up to 7 at others"
    (line,) = hours(node_pool("free", budgets=(half,)), FRIDAY, FRIDAY + timedelta(days=2))[2:]
    assert line == "  free: Underutilized, Empty and Drifted: none at some time of every hour, no limit at others"


def test_a_cell_is_the_least_of_its_hour_also_where_the_hour_comes_twice_or_never() -> None:
    # Half past one to twenty to two UTC: within the hour that comes twice on the day that the clock is set back.
    short = DisruptionBudget("0", None, "30 1 * * *", timedelta(minutes=10))
    pool = node_pool("short", budgets=(short, DisruptionBudget("5")))
    back = hours(pool, datetime(2026, 10, 24, 22, tzinfo=UTC), datetime(2026, 10, 25, 23, tzinfo=UTC))
    assert row(back, "Sun 25 Oct") == "5░░░0·5" + "░" * 41
    forward = hours(pool, datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC))
    assert row(forward, "Sun 29 Mar") == "5░░░  0·5" + "░" * 39


def test_zones_off_the_full_hour_have_their_own_cells() -> None:
    lines = hours(
        OFFICE,
        datetime(2026, 10, 22, 18, 30, tzinfo=UTC),
        datetime(2026, 10, 23, 18, 30, tzinfo=UTC),
        ZoneInfo("Asia/Kolkata"),
    )
    # 09:00 UTC is 14:30: the hour in which it closes is closed, the one in which it opens too.
    assert row(lines, "Fri 23 Oct") == "4" + "░" * 27 + "0" + "·" * 17 + "4░"


def test_a_plan_names_the_pools_of_which_no_node_may_go() -> None:
    plan = Plan(None, FRIDAY, budgets=budget_outcomes([OFFICE], {"office": PoolState(20)}, FRIDAY))
    text = page_text(plan_page(plan, cluster="test", zone=BERLIN))
    assert "NodePools that allow no disruption now (1)\n  NodePool office: for Drifted; budgets[1] binds" in text
    assert "Underutilized" not in text
    nothing = replace(plan, budgets=(BudgetOutcome("new", "Empty", 0, 0, 0, 0, 0, "10% of 0 nodes is 0"),))
    assert "no disruption now" not in page_text(plan_page(nothing, cluster="test", zone=BERLIN))


def test_pictures_of_one_output_share_a_scale() -> None:
    """As in the chart: 2 nodes are shaded alike beside a pool of 10 and beside itself."""
    pools = [
        node_pool(name, budgets=(DisruptionBudget(nodes), OFFICE_HOURS))
        for name, nodes in (("few", "2"), ("some", "5"), ("many", "9"))
    ]
    grid = HourGrid(FRIDAY, FRIDAY + timedelta(days=1), zone=BERLIN)
    cells = budget_cells(pools, {pool.name: PoolState(20) for pool in pools}, grid.edges)
    text = hours_text(cells, grid, now=FRIDAY, zone=BERLIN)
    shades = {name: row(text[text.index(f"{name}: Drifted") :].splitlines(), "Sat 24 Oct") for name in ("few", "many")}
    assert shades["few"][1] < shades["many"][1]
    assert (shades["few"][0], shades["many"][0]) == ("2", "9")


# Budgets as written in local time, shown beside what is applied: on the terminal, in JSON, on the page.

WRITTEN = LocalBudgets(
    budgets=(DisruptionBudget("0", ("Drifted",), "0 9 * * mon-fri", timedelta(hours=8)), DisruptionBudget("10%")),
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
    (section,) = [item for item in plan_page(PLAN, cluster="x", zone=UTC).sections if "local time" in item["title"]]
    assert section["columns"] == ["Name", "Written", "Applied, in UTC"]
    assert section["rows"][0]["what"] == "0 (Drifted): 0 9 * * mon-fri for 8h, in Asia/Kolkata"
    assert section["rows"][0]["fields"] == ["0 (Drifted): 30 3 * * mon-fri for 8h"]


def test_the_page_says_until_when_the_applied_form_is_right_and_names_its_column() -> None:
    page = plan_page(PLAN, cluster="x", zone=UTC)
    (section,) = [item for item in page.sections if "local time" in item["title"]]
    right = "valid until 2027-10-01 00:00 UTC; recompiled from 2026-12-01 00:00 UTC."
    assert section["notes"] == [f"NodePool/batch: {right}"]
    for name in ("report.md.j2", "report.html.j2"):
        assert right in rendered_page(name, page)
    html = rendered_page("report.html.j2", page)
    assert 'data-column="Applied, in UTC"><code>0 (Drifted): 30 3 * * mon-fri for 8h' in html


def test_a_difference_shows_what_was_written_of_the_pools_that_differ_and_of_no_others() -> None:
    """A limit was edited, and all budgets of the pool stood there. Lines that move make no difference either."""
    other = replace(POOL, node_pool="other")
    moved = replace(other, position=SourcePosition("pools.yaml", 9))
    before, after = (replace(PLAN, local_budgets=pools) for pools in ((other,), (POOL, moved)))
    change = difference(before, after)
    text = page_text(difference_page(change, cluster="production", zone=UTC))
    written = "NodePool/batch: 0 (Drifted): 0 9 * * mon-fri for 8h, in Asia/Kolkata"
    assert f"  {written}\n      0 (Drifted): 30 3 * * mon-fri for 8h\n" in text
    assert "NodePool/other: 0" not in text
    page = difference_page(change, cluster="x", zone=UTC)
    (section,) = [item for item in page.sections if "local time" in item["title"]]
    assert {row["name"] for row in section["rows"]} == {"NodePool/batch"}
    assert "valid until 2027-10-01" in rendered_page("report.md.j2", page)


# Budgets over a span as JSON, written in parts: the same text as a document written at once.

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
