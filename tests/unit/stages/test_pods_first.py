"""At a NodePool's limit pending pods come before chunks, though headroom makes no node for them."""

from __future__ import annotations

from reconciler.stages.state import PassResult
from tests.fakes.embedded import LARGE, SMALL, buffer, node_pool, workload
from tests.fakes.kept_cluster import KeptCluster

CHUNK = "1500m"
LARGE_POD = "6"


def shop_with(limit: str, *, pods: int = 0, chunks: int = 1) -> KeptCluster:
    """Chunks that fit a node of two cores; pods that need one of eight."""
    shop = KeptCluster(instance_types=(SMALL, LARGE))
    shop.cluster.apply(node_pool(limits={"cpu": limit}))
    shop.cluster.apply(workload(replicas=0, cpu=CHUNK))
    shop.cluster.apply(workload("large", replicas=pods, cpu=LARGE_POD))
    shop.cluster.apply(buffer(replicas=chunks))
    return shop


def outcome(result: PassResult) -> tuple[int, int, str]:
    """Chunks on new nodes, chunks without a place, and why."""
    (found,) = result.required_plan.demands
    return found.on_new, found.unplaced, "; ".join(reason.example for reason in found.unplaced_reasons)


def test_what_pending_pods_need_of_a_limit_is_not_for_chunks() -> None:
    made, unplaced, why = outcome(shop_with("8", pods=1).cycle.run("test"))
    assert (made, unplaced) == (0, 1)
    assert "the nodes that pending pods need are counted in" in why


def test_chunks_have_what_pending_pods_leave_of_a_limit() -> None:
    assert outcome(shop_with("10", pods=1, chunks=2).cycle.run("test"))[:2] == (1, 1)
    assert outcome(shop_with("8", pods=0, chunks=2).cycle.run("test"))[:2] == (2, 0)


def test_pods_that_no_node_could_ever_hold_keep_nothing_from_chunks() -> None:
    shop = shop_with("8")
    shop.cluster.apply(workload("huge", replicas=1, cpu="64"))
    assert outcome(shop.cycle.run("test"))[:2] == (1, 0)


def test_a_buffer_that_leaves_real_pods_no_room_is_named() -> None:
    shop = shop_with("8", chunks=2)
    shop.keep(30)
    assert len(shop.node_names()) == 2
    shop.cluster.apply(workload("large", replicas=1, cpu=LARGE_POD))
    findings = shop.cycle.run("test").required_plan.findings
    (found,) = [item for item in findings if item.code == "buffer-leaves-no-room"]
    assert str(found.ref) == "CapacityBuffer/shop/web"
    assert "NodePool general" in found.message
    assert "Pod/shop/large" in found.message


def test_no_buffer_is_named_where_pods_wait_for_another_reason() -> None:
    shop = shop_with("4", chunks=2)
    shop.keep(30)
    shop.cluster.apply(workload("large", replicas=1, cpu=LARGE_POD))
    codes = {item.code for item in shop.cycle.run("test").required_plan.findings}
    assert "buffer-leaves-no-room" not in codes
