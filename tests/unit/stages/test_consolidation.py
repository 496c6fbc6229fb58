"""Held nodes become smaller: chunks leave for cheaper room, then Karpenter takes the node that they left."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.embedded import LARGE, SMALL, buffer, node_pool, workload
from tests.fakes.kept_cluster import KeptCluster


def shrunk(consolidate_after: str = "60s", budget: str = "100%", chunks: int = 1, **more: Any) -> KeptCluster:
    """Five chunks on one large node, where one small node would do for the one chunk that is asked for now."""
    shop = KeptCluster(instance_types=(SMALL, LARGE))
    disruption = {"consolidateAfter": consolidate_after, "budgets": [{"nodes": budget}], **more}
    shop.cluster.apply(node_pool(disruption=disruption))
    shop.cluster.apply(workload(replicas=0, cpu="1500m"))
    shop.cluster.apply(buffer(replicas=5))
    shop.keep(30)
    assert types(shop) == ["m-8x"]
    shop.passes.clear()
    shop.cluster.apply(buffer(replicas=chunks))
    return shop


def types(shop: KeptCluster) -> list[str]:
    return sorted(node.label("node.kubernetes.io/instance-type") or "" for node in shop.cluster.view().nodes)


def provisioning(shop: KeptCluster) -> str:
    """What the buffer's condition says, which is True as long as its capacity is there."""
    told = [
        item for outcome in shop.passes[-1].plan.demands for item in outcome.conditions if item.type == "Provisioning"
    ]
    return "all the time" if [item.status for item in told] == ["True"] else str(told)


def test_an_empty_buffer_that_shrank_gets_a_smaller_node() -> None:
    shop = shrunk()
    shop.keep(40)
    assert types(shop) == ["m-8x"]
    for _ in range(60):
        shop.keep(2)
        assert provisioning(shop) == "all the time"
    assert types(shop) == ["m-2x"]
    assert shop.keep(3600, step=20) == []
    assert shop.cluster.view().inventory.memory.get("departures") is None


@pytest.mark.parametrize(
    "limits",
    [{"consolidate_after": "Never"}, {"budget": "0"}, {"chunks": 5}, {"chunks": 4}],
    ids=["never", "no budget", "the same size", "a saving that is too small"],
)
def test_a_node_stays_within_the_limits_of_its_node_pool(limits: dict[str, Any]) -> None:
    shop = shrunk(**limits)
    shop.keep(1800, step=10)
    assert types(shop) == ["m-8x"]
