"""Whole passes on the embedded cluster over a day of a schedule, and over budgets in local time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.changes import Delete
from reconciler.model.refs import ObjectRef
from reconciler.report.plan.words import summary
from reconciler.stages.state import PassResult
from reconciler.telemetry.gauges import ScheduledCapacity
from tests.fakes.clock import START
from tests.fakes.embedded import Document, GitSandbox, workload
from tests.fakes.embedded import node_pool as live_pool
from tests.manifests import BY_DEPLOYMENT, buffer, node_pool, schedule

# Whole passes on the embedded cluster over a day of a schedule: what is applied, held, released and said at each point.

EIGHT = START - timedelta(hours=1)
OFFICE = schedule("office", 2, "hours: 9", "hours: 17")
FOLLOWING = buffer("web", of=BY_DEPLOYMENT, replicas_from="office", lead_time="10m")
SLEEPING = buffer("ci", "replicas: 1", of=BY_DEPLOYMENT, active_during="office")
REPORTS = node_pool("reports", "replicas: 0", replicas_from="shop/office")


class Day(GitSandbox):
    """A cluster with pool `general` and a Deployment of no pods, at eight o'clock."""

    def __init__(self, **files: str) -> None:
        super().__init__({f"{name}.yaml": text for name, text in files.items()}, pool=live_pool(consolidate_after="0s"))
        self.clock.advance(EIGHT - START)
        self.cluster.apply(workload(replicas=0, cpu="1500m"))
        self.metric = ScheduledCapacity(lambda: self.cycle.schedules, self.clock)

    def at(self, hour: int, minute: int = 0) -> PassResult:
        """Passes at this time until nothing is left to do; the last of them."""
        wanted = START.replace(hour=hour, minute=minute)
        self.clock.advance(wanted - self.clock.now())
        for _ in range(20):
            result = self.cycle.run("edge")
            assert result.failure is None, result.failure
            if result.settled:
                return result
            self.wait(5)
        raise AssertionError("it never settles")

    def get(self, kind: str, name: str, namespace: str = "shop") -> Document | None:
        group = {"CapacityBuffer": "autoscaling.x-k8s.io", "MetricsProducer": "autoscaling.karpenter.sh"}
        body = self.cluster.get(ObjectRef(group[kind], kind, namespace, name))
        return None if body is None else dict(body)

    def replicas(self, kind: str, name: str) -> Any:
        body = self.get(kind, name)
        return None if body is None else body["spec"]["replicas"]

    def nodes_of(self, pool: str) -> int:
        return sum(node.label("karpenter.sh/nodepool") == pool for node in self.cluster.view().nodes)

    def value(self) -> float:
        (family,) = self.metric.collect()
        (sample,) = family.samples
        assert sample.labels == {"name": "office", "namespace": "shop"}
        return float(sample.value)


@pytest.fixture
def day() -> Day:
    return Day(office=OFFICE, following=FOLLOWING, sleeping=SLEEPING, reports=REPORTS)


def test_a_day_of_a_buffer_that_follows_with_a_lead(day: Day) -> None:
    seen = []
    for hour, minute in ((8, 0), (8, 50), (9, 0), (16, 59), (17, 0)):
        day.at(hour, minute)
        seen.append((day.replicas("CapacityBuffer", "web"), day.value()))
    assert seen == [(0, 0), (2, 0), (2, 2), (2, 2), (0, 0)]
    assert day.nodes_of("general") == 0, "what it held is handed back"


def test_a_buffer_that_sleeps_is_not_in_the_cluster_and_says_in_the_plan_why(day: Day) -> None:
    seen = []
    for hour in (8, 9, 17):
        result = day.at(hour)
        (outcome,) = (item for item in result.required_plan.demands if item.demand.ref.name == "ci")
        seen.append(
            (day.get("CapacityBuffer", "ci") is not None, outcome.demand.desired, outcome.demand.explanation[0])
        )
    early = (False, 0, "0: MetricsProducer/shop/office is at 0 until 2026-11-23 09:00 UTC")
    late = (False, 0, "0: MetricsProducer/shop/office is at 0 until 2026-11-24 09:00 UTC")
    assert seen == [early, (True, 1, "1 requested"), late]


def test_what_is_about_to_go_gets_no_status_any_more(day: Day) -> None:
    day.at(16, 59)
    day.clock.advance(60)
    result = day.cycle.run("edge")
    assert result.change_set is not None
    writes = [item.write for item in result.change_set.results if item.write.ref.name == "ci"]
    assert [type(write) for write in writes] == [Delete]


def test_the_plan_at_an_edge_says_what_a_static_pool_gains_and_loses_and_what_that_costs() -> None:
    """The sandbox's cheapest type costs $0.10 an hour."""
    day = Day(office=OFFICE, reports=REPORTS)
    costs, words = [], []
    for before, hour in ((8, 9), (16, 17)):
        day.at(before)
        day.clock.advance(START.replace(hour=hour) - day.clock.now())
        plan = day.cycle.plan().required_plan
        cost = plan.cost
        words.append(summary(plan))
        costs.append((round(cost.per_hour_before, 6), round(cost.per_hour_after, 6)))
    assert costs == [(0, 0.2), (0.2, 0)]
    assert words == [f"1 object to apply; 2 nodes {word} in static NodePools" for word in ("more", "fewer")]


def test_the_status_is_written_at_each_edge_and_not_between(day: Day) -> None:
    told = {"observedGeneration": 1}
    day.at(8)
    morning = {"currentValue": 0, "nextValue": 2, "nextValueTime": "2026-11-23T09:00:00Z", **told}
    assert (day.get("MetricsProducer", "office") or {})["status"] == morning
    result = day.at(8, 30)
    assert result.change_set is not None
    assert result.change_set.results == ()
    day.at(9)
    noon = {"currentValue": 2, "nextValue": 0, "nextValueTime": "2026-11-23T17:00:00Z", **told}
    assert (day.get("MetricsProducer", "office") or {})["status"] == noon
