"""Passes on a machine whose clock is an hour ahead: nodes are as old as the cluster says, and nothing runs away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from reconciler.catalog.observed import ClusterCatalog
from reconciler.ports import Clock
from reconciler.settings import Settings
from reconciler.wiring.cycle import make_cycle
from tests.fakes.embedded import SMALL, Sandbox, buffer, node_pool, workload
from tests.fakes.source import FakeSource

AHEAD = timedelta(minutes=61)


@dataclass(frozen=True, slots=True)
class Ahead(Clock):
    of: Clock

    def now(self) -> datetime:
        return self.of.now() + AHEAD


class Skewed:
    """The sandbox's cluster, as one whose answers tell another time than this machine's."""

    def __init__(self, sandbox: Sandbox, *, tells: bool) -> None:
        self._cluster = sandbox.cluster
        self._skew = AHEAD if tells else timedelta(0)

    def view(self) -> Any:
        return replace(self._cluster.view(), clock_skew=self._skew)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def placeholders(*, tells: bool, seconds: int = 120) -> tuple[list[int], Any]:
    """How many NodeClaims there are, every five seconds, with nodes that live for an hour; and the last result."""
    sandbox = Sandbox(instance_types=(SMALL,))
    pool = node_pool(consolidate_after="30s")
    pool["spec"]["template"]["spec"]["expireAfter"] = "1h"
    for document in (pool, workload(replicas=0, cpu="1500m"), buffer(replicas=4)):
        sandbox.cluster.apply(document)
    cycle = make_cycle(
        Settings(),
        source=FakeSource(),
        cluster=Skewed(sandbox, tells=tells),
        catalog=ClusterCatalog("embedded"),
        clock=Ahead(sandbox.clock),
    )
    counts = []
    for _ in range(seconds // 5):
        result = cycle.run("tick")
        assert result.failure is None, result.failure
        counts.append(len(sandbox.wait(5).node_claims))
    return counts, result


def test_a_node_is_as_old_as_the_cluster_says() -> None:
    counts, result = placeholders(tells=True)
    assert set(counts[1:]) == {counts[0]}
    found = {finding.code: finding.message for finding in result.required_plan.findings}
    assert found["clock-skew"].startswith("this machine's clock is 1:01:00 ahead of the API server's")


def test_even_where_nobody_tells_the_time_they_are_replaced_a_step_at_a_time() -> None:
    counts, _ = placeholders(tells=False)
    assert counts[0] == 4
    assert all(after - before <= 1 for before, after in pairwise(counts)), counts


@pytest.mark.parametrize("life", [timedelta(hours=1)])
def test_after_its_life_it_is_replaced_all_the_same(life: timedelta) -> None:
    counts, _ = placeholders(tells=True, seconds=int(life.total_seconds()))
    assert max(counts) > counts[0]
