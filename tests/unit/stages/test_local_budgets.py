"""Passes over a repository with budgets in local time: applied in UTC, still for a month, right over a change of the clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reconciler.catalog.observed import ClusterCatalog
from reconciler.cycle import Cycle
from reconciler.manifests.repository.declared import live_declared
from reconciler.plan.node_pools.disruption_budgets import PoolState, allowed
from reconciler.settings.settings import Settings
from reconciler.stages.state import PassResult
from reconciler.wiring.cycle import make_cycle
from tests.fakes.embedded import Sandbox, pool_ref
from tests.fakes.source import FakeSource

BERLIN = ZoneInfo("Europe/Berlin")
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: general
  annotations:
    headroom.dev/timezone: Europe/Berlin
    headroom.dev/allow-windows: 0 22 * * * for 8h
spec:
  disruption:
    budgets: [{nodes: "4"}]
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""
NIGHT = range(22, 30)
"""Hours of the clock in Berlin from 22 to 6, counted on from midnight."""


class Month:
    def __init__(self) -> None:
        self.sandbox = Sandbox()
        self.cycle: Cycle = make_cycle(
            Settings(),
            source=FakeSource({"pools.yaml": POOL}),
            cluster=self.sandbox.cluster,
            catalog=ClusterCatalog("embedded"),
            clock=self.sandbox.clock,
        )

    def pass_at(self, moment: datetime) -> PassResult:
        self.sandbox.clock.advance(moment - self.sandbox.clock.now())
        result = self.cycle.run("tick")
        assert result.failure is None, result.failure
        return result

    def budgets(self) -> Sequence[Mapping[str, Any]]:
        body = self.sandbox.cluster.get(pool_ref("general"))
        assert body is not None
        found: Sequence[Mapping[str, Any]] = body["spec"]["disruption"]["budgets"]
        return found


@pytest.fixture
def month() -> Month:
    return Month()


def test_nothing_is_written_for_a_month_and_then_once(month: Month) -> None:
    first = datetime(2027, 3, 3, 9, tzinfo=UTC)
    assert month.pass_at(first).required_plan.has_changes
    before = month.budgets()
    assert not month.pass_at(datetime(2027, 3, 27, 23, 59, tzinfo=UTC)).required_plan.has_changes
    assert not month.pass_at(datetime(2027, 3, 28, 2, tzinfo=UTC)).required_plan.has_changes
    edge = month.cycle.next_edge(datetime(2027, 3, 28, 2, tzinfo=UTC))
    assert edge is not None
    assert edge.at == datetime(2027, 4, 1, tzinfo=UTC)
    assert month.pass_at(edge.at).required_plan.has_changes
    assert month.budgets() != before
    assert not month.pass_at(edge.at + timedelta(hours=1)).required_plan.has_changes


def test_a_daemon_that_is_away_over_the_change_leaves_no_wrong_window(month: Month) -> None:
    month.pass_at(datetime(2027, 3, 3, 9, tzinfo=UTC))
    (pool,) = live_declared(month.sandbox.cluster.view()).node_pools
    for hour in range(24 * 60):
        moment = datetime(2027, 3, 5, 0, 30, tzinfo=UTC) + timedelta(hours=hour)
        clock = moment.astimezone(BERLIN)
        is_night = clock.hour in NIGHT or clock.hour + 24 in NIGHT
        # The night in which the clocks go forward lasts its eight hours, until seven.
        is_night |= (clock.month, clock.day, clock.hour) == (3, 28, 6)
        assert allowed(pool, "Drifted", PoolState(total=10), moment) == (4 if is_night else 0), clock
