"""Nodes carry a taint for as long as they hold chunks, so that Karpenter moves no other node's pods there."""

from __future__ import annotations

from reconciler.model.nodes import HELD_TAINT
from tests.fakes.embedded import SMALL, buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster


def tainted(shop: KeptCluster) -> set[str]:
    return {item.name for item in shop.cluster.view().nodes if HELD_TAINT in item.taints}


def test_a_node_has_it_from_its_arrival_until_its_room_is_taken() -> None:
    shop = KeptCluster(instance_types=(SMALL,))
    shop.want(1, node_pool(disruption={"consolidateAfter": "Never"}))
    (first,) = shop.node_names()
    assert tainted(shop) == {first}
    assert shop.keep(600) == []

    shop.cluster.scale(workload_ref(), 1)
    shop.keep(60)
    assert {pod.node_name for pod in shop.cluster.view().pods} == {first}, "the pod is bound in spite of the taint"
    assert tainted(shop) == set(shop.node_names()) - {first}
    assert len(tainted(shop)) == 1


def test_release_keeps_what_others_have_tainted() -> None:
    shop = KeptCluster(instance_types=(SMALL,))
    taint = {"key": "dedicated", "value": "shop", "effect": "NoSchedule"}
    pool = node_pool(disruption={"consolidateAfter": "Never"})
    pool["spec"]["template"]["spec"]["taints"] = [taint]
    shop.cluster.apply(pool)
    target = workload(replicas=0, cpu="1500m")
    target["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists", "key": "dedicated"}]
    shop.cluster.apply(target)
    shop.cluster.apply(buffer(replicas=1))
    shop.keep(60)
    (first,) = shop.node_names()
    shop.cluster.scale(workload_ref(), 1)
    shop.keep(60)
    node = next(item for item in shop.cluster.view().nodes if item.name == first)
    assert [item.key for item in node.taints] == ["dedicated"]
    assert len(tainted(shop)) == 1
