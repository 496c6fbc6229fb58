"""Room that pods with few places need: told, marked, and kept from others, on the embedded cluster."""

from __future__ import annotations

from reconciler.model.nodes import SCARCE_TAINT
from tests.fakes.embedded import SMALL, buffer, node_pool, workload, workload_ref
from tests.fakes.kept_cluster import KeptCluster


def two_pools(surge: str) -> KeptCluster:
    """Pods of web go anywhere, those of batch to one NodePool. Each has a node."""
    shop = KeptCluster(instance_types=(SMALL,), surge=surge)
    for name, weight in (("general", 10), ("batch", 1)):
        shop.cluster.apply(node_pool(name, weight=weight))
    batch = workload("batch", replicas=0, cpu="1500m")
    batch["spec"]["template"]["spec"]["nodeSelector"] = {"karpenter.sh/nodepool": "batch"}
    target = {"apiGroup": "apps", "kind": "Deployment", "name": "batch"}
    for document in (workload("web", replicas=0, cpu="1500m"), batch, buffer("batch", replicas=1, scalableRef=target)):
        shop.cluster.apply(document)
    shop.keep(60)
    shop.cluster.apply(buffer("web", replicas=1))
    shop.keep(120)
    assert len(shop.node_names()) == 2
    return shop


def scarce(shop: KeptCluster) -> list[str]:
    return [
        dict(item.labels)["karpenter.sh/nodepool"] for item in shop.cluster.view().nodes if SCARCE_TAINT in item.taints
    ]


def told(shop: KeptCluster) -> list[str]:
    return [item.message for item in shop.cycle.plan().required_plan.findings if item.code == "pods-may-wait"]


def test_the_room_of_those_with_few_places_is_marked_until_it_is_used() -> None:
    shop = two_pools("all")
    assert scarce(shop) == ["batch"]
    assert told(shop) == []
    assert shop.keep(600) == [], "a second pass changes nothing"

    shop.cluster.scale(workload_ref("web"), 1)
    shop.keep(1)
    shop.cluster.scale(workload_ref("batch"), 1)
    shop.keep(1)
    assert None not in shop.where().values(), "both are bound at once"
    shop.keep(120)
    assert len(scarce(shop)) == 1, "the new placeholder's room is scarce now, the used one's no longer"
    used = set(shop.where().values())
    assert not used & {item.name for item in shop.cluster.view().nodes if SCARCE_TAINT in item.taints}


def test_as_planned_the_wait_is_only_told() -> None:
    shop = two_pools("planned")
    assert scarce(shop) == []
    assert shop.cycle.plan().required_plan.notes == (), "the checker agrees"
    assert told(shop) == [
        "1 of 1 may have to wait when web is scaled up before batch: web's pods take room that batch's need"
    ]


def test_spare_room_stays_where_it_is() -> None:
    """No order of two sizes fits two nodes; a third is there for that, and chunks are not drawn together again."""
    shop = KeptCluster(instance_types=(SMALL,), surge="all")
    shop.cluster.apply(node_pool(consolidate_after="30s"))
    for name, cpu, count in (("a", "950m", 2), ("b", "600m", 3)):
        shop.cluster.apply(workload(name, replicas=0, cpu=cpu))
        target = {"apiGroup": "apps", "kind": "Deployment", "name": name}
        shop.cluster.apply(buffer(name, replicas=count, scalableRef=target))
    shop.keep(300)
    assert told(shop) == []
    assert shop.keep(900, step=5) == []
    for name, count in (("a", 2), ("b", 3)):
        shop.cluster.scale(workload_ref(name), count)
    shop.keep(1)
    assert None not in shop.where().values()


def test_alone_looks_at_no_other_buffer() -> None:
    shop = two_pools("alone")
    assert scarce(shop) == []
    assert len(told(shop)) == 1
