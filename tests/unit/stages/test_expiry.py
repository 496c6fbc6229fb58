"""Held nodes that expire: their chunks have room elsewhere before Karpenter takes them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.cluster.embedded.karpenter import Delays
from reconciler.report.explanation import explanation, explanation_document, explanation_text
from tests.fakes.embedded import SMALL, buffer, node_pool, workload
from tests.fakes.kept_cluster import KeptCluster

WANTED = 3


@pytest.mark.parametrize("register", [3, 50])
def test_a_buffer_on_nodes_of_a_short_life_is_never_short(register: int) -> None:
    kept = KeptCluster(instance_types=(SMALL,), delays=Delays(timedelta(seconds=2), timedelta(seconds=register)))
    pool = node_pool(consolidate_after="30s")
    pool["spec"]["template"]["spec"]["expireAfter"] = "10m"
    kept.want(WANTED, pool, within=register + 30)

    short = 0
    for _ in range(35 * 60 // 5):
        kept.keep(5, step=5)
        short += standing(kept) < WANTED
    assert short == 0


def test_explain_says_why_a_node_that_expires_soon_is_not_used() -> None:
    kept = KeptCluster(instance_types=(SMALL,))
    pool = node_pool(consolidate_after="30s")
    pool["spec"]["template"]["spec"]["expireAfter"] = "10m"
    kept.cluster.apply(pool)
    kept.cluster.apply(workload(replicas=0, cpu="1500m"))
    kept.cluster.apply(buffer(replicas=1))
    kept.keep(8 * 60, step=5)
    (plan,) = [item.plan for item in kept.passes if item.plan.unused and item.plan.node_claims.create]
    (name,) = plan.unused
    text = explanation_text(explanation(plan, "CapacityBuffer/shop/web"))
    assert f"  not used:\n    {name} is about to expire, at 2026-11-23 09:10 UTC (expireAfter)" in text
    document = explanation_document(explanation(plan, "CapacityBuffer/shop/web"))
    assert document["unused"] == [{"node": name, "why": "is about to expire, at 2026-11-23 09:10 UTC (expireAfter)"}]
    assert document["chunks"] == [{"count": 1, "requests": {"cpu": "1500m", "memory": "256Mi", "pods": "1"}}]


def standing(kept: KeptCluster) -> int:
    """Nodes that are ready and not being deleted: one holds one chunk."""
    view = kept.cluster.view()
    return sum(
        machine.node is not None and machine.node.ready and not (machine.node_claim and machine.node_claim.deleting)
        for machine in view.machines
    )
