"""Passes on a machine whose clock is an hour ahead: nodes are as old as the cluster says, and nothing runs away."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

from reconciler.catalog.observed import ClusterCatalog
from reconciler.cluster.server_clock import ServerClock
from reconciler.model.view import ClusterView
from reconciler.ports import Clock
from reconciler.settings.settings import Settings
from reconciler.stages.state import PassResult
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
    """The sandbox's cluster, read over a connection that tells its time, or does not."""

    def __init__(self, sandbox: Sandbox, *, tells: bool) -> None:
        self._sandbox = sandbox
        self._tells = tells
        clock = sandbox.clock
        self._server_clock = ServerClock(elapsed=lambda: clock.now().timestamp(), now=Ahead(clock).now)

    def view(self) -> ClusterView:
        now = format_datetime(self._sandbox.clock.now(), usegmt=True)
        self._server_clock.hear(now if self._tells else None)
        return self._server_clock.dated(self._sandbox.cluster.view())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox.cluster, name)


@dataclass(frozen=True, slots=True)
class History:
    """counts: how many NodeClaims there were, after each pass; made: the uids of all that ever were; result: of the last pass."""

    counts: list[int]
    made: set[str]
    result: PassResult


def history(*, tells: bool, lasts: timedelta = timedelta(minutes=2), every: int = 5) -> History:
    """A buffer of four nodes that live for an hour. every: seconds between passes."""
    sandbox = Sandbox(instance_types=(SMALL,))
    pool = node_pool(consolidate_after="30s")
    pool["spec"]["template"]["spec"]["expireAfter"] = "1h"
    for document in (pool, workload(replicas=0, cpu="1500m"), buffer(replicas=4)):
        sandbox.cluster.apply(document)
    skewed = Skewed(sandbox, tells=tells)
    cycle = make_cycle(
        Settings(), source=FakeSource(), cluster=skewed, catalog=ClusterCatalog("embedded"), clock=Ahead(sandbox.clock)
    )
    counts, made = [], set()
    for _ in range(lasts // timedelta(seconds=every)):
        result = cycle.run("tick")
        assert result.failure is None, result.failure
        claims = sandbox.wait(every).node_claims
        counts.append(len(claims))
        made |= {claim.uid for claim in claims}
    return History(counts, made, result)


def test_a_node_is_as_old_as_the_cluster_says() -> None:
    seen = history(tells=True)
    assert set(seen.counts[1:]) == {4}
    found = {finding.code: finding.message for finding in seen.result.required_plan.findings}
    assert found["clock-skew"].startswith("this machine's clock is 1:01:00 ahead of the API server's")


def test_where_nobody_tells_the_time_no_node_is_replaced_before_it_expires() -> None:
    seen = history(tells=False, lasts=timedelta(minutes=59), every=20)
    assert set(seen.counts) == {4}
    assert len(seen.made) == 4
    assert "clock-unknown" in {finding.code for finding in seen.result.required_plan.findings}


def test_before_the_end_of_its_life_it_is_replaced_once() -> None:
    seen = history(tells=True, lasts=timedelta(minutes=59), every=20)
    assert max(seen.counts) > 4
    assert len(seen.made) == 8
