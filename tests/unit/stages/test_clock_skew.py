"""Passes on a machine whose clock is an hour ahead: nodes are as old as the cluster says, and nothing runs away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.catalog.observed import ClusterCatalog
from reconciler.model.quantity import time_text
from reconciler.model.view import ClusterView
from reconciler.ports import Clock
from reconciler.settings.settings import Settings
from reconciler.wiring.session import make_cycle
from tests.fakes.embedded import SMALL, Sandbox, buffer, node_pool, workload
from tests.fakes.source import FakeSource

AHEAD = timedelta(minutes=61)


@dataclass(frozen=True, slots=True)
class Ahead(Clock):
    of: Clock

    def now(self) -> datetime:
        return self.of.now() + AHEAD


class Skewed:
    """The sandbox's cluster, of which the machine knows how far its own clock is ahead."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._cluster = sandbox.cluster

    def view(self) -> ClusterView:
        return replace(self._cluster.view(), clock_skew=AHEAD)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def test_a_node_is_as_old_as_the_cluster_says() -> None:
    """Four nodes that live for an hour."""
    sandbox = Sandbox(instance_types=(SMALL,))
    pool = node_pool(consolidate_after="30s")
    pool["spec"]["template"]["spec"]["expireAfter"] = "1h"
    for document in (pool, workload(replicas=0, cpu="1500m"), buffer(replicas=4)):
        sandbox.cluster.apply(document)
    cycle = make_cycle(
        Settings(),
        source=FakeSource(),
        cluster=Skewed(sandbox),
        catalog=ClusterCatalog("embedded"),
        clock=Ahead(sandbox.clock),
    )
    counts, short_for = [], []
    for _ in range(24):
        result = cycle.run("tick")
        assert result.failure is None, result.failure
        (outcome,) = result.required_plan.demands
        if outcome.short_since is not None:
            short_for.append(result.required_plan.now - outcome.short_since)
        counts.append(len(sandbox.wait(5).node_claims))
    assert timedelta(0) <= max(short_for) < AHEAD / 2
    (web,) = (item for ref, item in sandbox.cluster.view().objects.items() if ref.kind == "CapacityBuffer")
    written = max(item["lastTransitionTime"] for item in web.body["status"]["conditions"])
    assert written < time_text(sandbox.clock.now()), "it is dated by the cluster's clock, by which it is read again"
    assert set(counts[1:]) == {4}
    found = {finding.code: finding.message for finding in result.required_plan.findings}
    assert found["clock-skew"].startswith("this machine's clock is 1:01:00 ahead of the API server's")
