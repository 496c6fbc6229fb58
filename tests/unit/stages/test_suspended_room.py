"""The room of a suspended buffer: it keeps the nodes that it has, and takes none beside them."""

from __future__ import annotations

from typing import Any

from reconciler.model.changes import ApplyStatus
from reconciler.model.nodes import HELD_ANNOTATION, HOLDS_ANNOTATION
from reconciler.model.refs import ObjectRef
from reconciler.report.plan.page import plan_page
from reconciler.report.plan.rows import page_text
from tests.fakes.embedded import LARGE, SMALL, buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster

STEADY: dict[str, Any] = {"consolidateAfter": "30s", "budgets": [{"nodes": "0"}]}
BUDGET: dict[str, Any] = {"consolidateAfter": "30s", "budgets": [{"nodes": "1"}]}


def warm_shop(disruption: dict[str, Any] = STEADY, **more: Any) -> KeptCluster:
    """Two chunks, each on a node that it fills."""
    shop = KeptCluster(instance_types=(SMALL, LARGE), **more)
    shop.cluster.apply(node_pool(disruption=disruption))
    shop.cluster.apply(workload(replicas=0, cpu="1500m"))
    shop.cluster.apply(buffer(replicas=2))
    shop.keep(60)
    assert len(shop.node_names()) == 2
    return shop


def add_room(shop: KeptCluster) -> None:
    """A node on which one small pod runs, and four chunks would fit."""
    shop.add_node("big", "m-8x", cpu="7")
    shop.cluster.apply(workload("small", replicas=1, cpu="500m"))
    shop.keep(10)
    assert shop.node("node-big").ready


def suspend(shop: KeptCluster, value: str = "true") -> None:
    body = buffer(replicas=2)
    body["metadata"]["annotations"] = {"headroom.dev/suspend": value}
    shop.cluster.apply(body)
    shop.keep(10)


def held(shop: KeptCluster) -> dict[str, str]:
    """Names of held nodes, and what each holds."""
    nodes = shop.cluster.view().nodes
    return {item.name: item.annotation(HOLDS_ANNOTATION) or "" for item in nodes if item.annotation(HELD_ANNOTATION)}


def said(shop: KeptCluster) -> dict[str, str]:
    live = shop.cluster.get(ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "web")) or {}
    return {item["type"]: f"{item['status']}: {item['message']}" for item in live["status"]["conditions"]}


def test_of_room_that_pods_use_nothing_is_made_good_on_other_nodes() -> None:
    shop = warm_shop()
    suspend(shop)
    add_room(shop)
    shop.cluster.scale(workload_ref("web"), 6)
    shop.keep(30)
    assert held(shop) == {}
    shop.cluster.scale(workload_ref("web"), 1)
    shop.keep(300)
    assert held(shop) == {}
    assert said(shop)["Provisioning"].startswith("False")
    suspend(shop, "false")
    assert sum(map(len, held(shop).values())) > 0


def test_a_node_that_goes_is_not_made_good_on_other_nodes() -> None:
    shop = warm_shop()
    suspend(shop)
    first, second = held(shop)
    add_room(shop)
    shop.cluster.lose(second)
    shop.keep(120)
    assert list(held(shop)) == [first]
    plan = shop.cycle.plan().required_plan
    assert "      suspended\n" in page_text(plan_page(plan, cluster="shop"))
    suspend(shop, "false")
    assert len(held(shop)) == 2


def test_it_is_not_moved_to_room_that_became_free() -> None:
    shop = warm_shop(BUDGET)
    nodes = shop.node_names()
    suspend(shop)
    add_room(shop)
    shop.keep(300)
    assert sorted(held(shop)) == nodes


def test_one_that_never_held_anything_takes_nothing_whatever_its_status_says() -> None:
    shop = warm_shop()
    add_room(shop)
    other = buffer("other", replicas=2)
    other["metadata"]["annotations"] = {"headroom.dev/suspend": "true"}
    shop.cluster.apply(other)
    ref = ObjectRef("autoscaling.x-k8s.io", "CapacityBuffer", "shop", "other")
    shop.write(ApplyStatus(ref, {"replicas": 2}))
    shop.keep(30)
    assert all("other" not in words for words in held(shop).values())


def test_its_nodes_stay_though_they_drift() -> None:
    shop = warm_shop(BUDGET)
    nodes = {item.uid for item in shop.cluster.view().nodes}
    suspend(shop)
    pool = node_pool(disruption=BUDGET)
    pool["spec"]["template"]["metadata"] = {"labels": {"team": "shop"}}
    shop.cluster.apply(pool)
    shop.keep(300)
    assert {item.uid for item in shop.cluster.view().nodes} == nodes
    assert len(held(shop)) == 2
    suspend(shop, "false")
    shop.keep(300)
    assert nodes.isdisjoint({item.uid for item in shop.cluster.view().nodes})


def test_its_node_stays_though_it_is_not_ready_for_long() -> None:
    shop = warm_shop()
    name = shop.node_names()[0]
    suspend(shop)
    shop.cluster.set_ready(name, ready=False)
    shop.keep(600)
    assert len(held(shop)) == 2
    assert said(shop)["Provisioning"] == "False: of 2 chunks, 1 on nodes that are not ready"
    shop.cluster.set_ready(name, ready=True)
    shop.keep(10)
    assert said(shop)["Provisioning"].startswith("True")
