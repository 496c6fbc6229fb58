"""All capacity over the time to come, from what a pass knew."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.manifests.repository.declared import read
from reconciler.model.buffers import Dialect
from reconciler.model.timelines import CapacityTimeline
from reconciler.outlook import Outlook
from reconciler.plan.facts import Facts
from reconciler.report.timeline.chart import ALLOWED, ASKED, WORTH, lanes

EXAMPLE = Path(__file__).resolve().parents[2] / "examples-repo" / "clusters" / "production"
SATURDAY = datetime(2026, 11, 21, 7, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def outlook() -> Outlook:
    files = {str(path.relative_to(EXAMPLE)): path.read_bytes() for path in EXAMPLE.rglob("*.yaml")}
    return Outlook(Facts(SATURDAY, effective=read(files)), Dialect.KARPENTER)


@pytest.fixture(scope="module")
def week(outlook: Outlook) -> CapacityTimeline:
    return outlook.ahead()


def test_it_has_buffers_schedules_and_budgets_together(week: CapacityTimeline) -> None:
    assert (week.start, week.end) == (SATURDAY, SATURDAY + timedelta(days=7))
    assert {lane.group for lane in lanes(week)} == {ASKED, WORTH, ALLOWED}
    assert {span.outcome.node_pool for span in week.budgets} == {"batch", "general"}


def test_every_lane_fills_the_span_and_changes_where_a_span_ends(week: CapacityTimeline) -> None:
    for lane in lanes(week):
        assert (lane.spans[0].start, lane.spans[-1].end) == (week.start, week.end), lane.name
        for before, after in zip(lane.spans, lane.spans[1:], strict=False):
            assert before.end == after.start
            assert before.value != after.value


def test_it_can_look_from_a_later_instant(outlook: Outlook) -> None:
    later = SATURDAY + timedelta(days=2, hours=6)
    (schedule,) = outlook.ahead(later, timedelta(hours=12)).schedules
    assert (schedule.start, schedule.end) == (later, later + timedelta(hours=12))
    assert schedule.outcome.current_value == 3


def test_two_passes_have_two_outlooks(outlook: Outlook) -> None:
    again = Outlook(outlook.facts, outlook.dialect)
    assert again != outlook


def test_budgets_count_the_nodes_that_the_plan_makes(outlook: Outlook) -> None:
    planned = replace(outlook, new_node_pools=("general", "general", "general"))
    totals = {span.outcome.node_pool: span.outcome.total for span in planned.ahead().budgets}
    assert totals == {"batch": 0, "general": 3}
