"""Held nodes that have drifted are replaced one budget step at a time, and then there is silence."""

from __future__ import annotations

from collections import Counter

from reconciler.model.refs import ObjectRef
from tests.fakes.embedded import SMALL, node_pool
from tests.fakes.kept_cluster import KeptCluster

BUFFER = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")
BUDGET = {"consolidateAfter": "30s", "budgets": [{"nodes": "1"}]}


def warm_shop(replicas: int = 4) -> KeptCluster:
    """A buffer of chunks that fill a node each."""
    shop = KeptCluster(instance_types=(SMALL,))
    shop.want(replicas, node_pool(disruption=BUDGET))
    assert len(shop.cluster.view().nodes) == replicas
    return shop


def uids(shop: KeptCluster) -> set[str]:
    """A node that was replaced may have its name again."""
    return {item.uid for item in shop.cluster.view().nodes}


def says_full(shop: KeptCluster) -> bool:
    body = shop.cluster.get(BUFFER) or {}
    rows = {row["type"]: row["status"] for row in body["status"]["conditions"]}
    return bool(rows["Provisioning"] == "True")


def change_template(shop: KeptCluster) -> None:
    pool = node_pool(disruption=BUDGET)
    pool["spec"]["template"]["metadata"] = {"labels": {"team": "shop"}}
    shop.cluster.apply(pool)


def test_four_held_nodes_drift_and_each_is_replaced_before_it_goes() -> None:
    shop = warm_shop()
    old = uids(shop)
    change_template(shop)
    nodes = []
    for _ in range(150):
        shop.keep(1)
        nodes.append(len(shop.cluster.view().nodes))
        assert says_full(shop)
    assert old.isdisjoint(uids(shop))
    assert nodes[-1] == 4
    assert min(nodes) >= 4, "the buffer was short"
    assert max(nodes) <= 5, "more than one was replaced at a time"
    assert max(shop.hold_changes().values()) <= 1, shop.hold_changes()
    assert shop.keep(600) == []


def test_nodes_are_made_once_for_each_that_drifted() -> None:
    shop = warm_shop()
    made_before = Counter(len(item.plan.node_claims.create) for item in shop.passes)
    change_template(shop)
    shop.keep(150)
    made = sum(len(item.plan.node_claims.create) for item in shop.passes)
    assert made - sum(number * count for number, count in made_before.items()) == 4


def test_a_restart_in_the_middle_changes_nothing_of_the_end() -> None:
    shop = warm_shop()
    old = uids(shop)
    change_template(shop)
    for _ in range(15):
        shop.keep(10)
        shop.restart()
    assert old.isdisjoint(uids(shop))
    assert len(shop.node_names()) == 4
    assert max(shop.hold_changes().values()) <= 1
    shop.keep(60)
    assert shop.keep(600) == []
