"""The embedded cluster as a port: what watches it sees, and that it is the same each time."""

from __future__ import annotations

import threading

from reconciler.clocks import SystemClock
from reconciler.cluster.embedded.cluster import EmbeddedCluster
from reconciler.cluster.embedded.karpenter import Delays
from reconciler.model.view import ClusterView
from tests.fakes.embedded import (
    DELAYS,
    Sandbox,
    apply,
    claim_ref,
    hold,
    node_claim,
    node_pool,
    workload,
    workload_ref,
)

PATIENCE = 20.0


def test_whoever_watches_is_told_of_changes_and_of_nothing_else() -> None:
    sandbox = Sandbox()
    told: list[str] = []
    sandbox.cluster.start(lambda: told.append(sandbox.cluster.view().revision))
    sandbox.write(apply(node_claim("a", "m-2x")))
    assert len(told) == 1
    sandbox.wait(1)
    assert len(told) == 1
    sandbox.wait(1)
    assert len(told) == 2
    sandbox.write(apply(node_claim("a", "m-2x")))
    sandbox.write(hold(claim_ref("a")), dry_run=True)
    assert len(told) == 2


def test_the_same_story_twice_gives_the_same_view_whatever_the_clocks_steps() -> None:
    def story(step: float) -> ClusterView:
        sandbox = Sandbox(provisions_pending=True)
        sandbox.cluster.apply(node_pool(consolidate_after="30s"))
        sandbox.cluster.apply(workload(replicas=9, cpu="700m"))
        sandbox.write(apply(node_claim("held", "m-8x", held=True)))
        for _ in range(int(60 / step)):
            sandbox.wait(step)
        sandbox.cluster.scale(workload_ref(), 2)
        for _ in range(int(120 / step)):
            sandbox.wait(step)
        return sandbox.cluster.view()

    first = story(60)
    assert "node-held" in [node.name for node in first.nodes]
    assert story(60) == first
    assert story(0.5) == first


def test_in_real_time_nodes_come_by_themselves_and_closing_ends_it() -> None:
    delays = Delays(DELAYS.launch * 0, DELAYS.register * 0, DELAYS.drain * 0)
    cluster = EmbeddedCluster(SystemClock(), delays=delays)
    there = threading.Event()

    def look() -> None:
        if cluster.view().nodes:
            there.set()

    cluster.start(look)
    try:
        cluster.write(apply(node_pool()))
        cluster.write(apply(node_claim("a", "s-4x-amd64-linux")))
        assert there.wait(PATIENCE)
    finally:
        cluster.close()
    assert "embedded cluster" not in {thread.name for thread in threading.enumerate()}


def test_writes_from_many_threads_are_all_there() -> None:
    sandbox = Sandbox()
    names = [f"c-{number:02}" for number in range(40)]
    threads = [
        threading.Thread(target=lambda name=name: sandbox.write(apply(node_claim(name, "m-2x")))) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    view = sandbox.wait(10)
    assert [claim.name for claim in view.node_claims] == names
    assert len(view.nodes) == 40
