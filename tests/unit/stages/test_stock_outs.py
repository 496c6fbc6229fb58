"""What ran out is stayed away from, another offering is taken if one will do, and all who look are told so."""

from __future__ import annotations

from tests.fakes.embedded import LARGE, SMALL, buffer, node_pool, workload
from tests.fakes.kept_cluster import KeptCluster

ZONE = "topology.kubernetes.io/zone"


def sold_out(*types: str, replicas: int = 1, zone: str = "zone-a") -> KeptCluster:
    """Chunks of a node each that have to be in one zone, where these types have run out without anybody knowing yet."""
    shop = KeptCluster(instance_types=(SMALL, LARGE), instance_types_offered=1)
    shop.cluster.apply(node_pool())
    shop.cluster.apply(workload(replicas=0, cpu="1500m", nodeSelector={ZONE: zone}))
    for name in types:
        shop.cluster.set_stock(name, zone, "on-demand", available=False)
    shop.cluster.apply(buffer(replicas=replicas))
    return shop


def asked_for(shop: KeptCluster) -> list[tuple[str, ...]]:
    return [item.planned.instance_types for made in shop.passes for item in made.plan.node_claims.create]


def warnings(shop: KeptCluster) -> list[str]:
    return [item.event.message for item in shop.cluster.events if item.event.reason == "NoCapacity"]


def test_another_offering_is_taken_and_that_is_said() -> None:
    shop = sold_out("m-2x")
    shop.keep(60)
    assert asked_for(shop) == [("m-2x",), ("m-8x",)]
    (message,) = warnings(shop)
    assert "(m-2x in zone-a as on-demand): instead it asks for m-8x in zone-a as on-demand" in message
    assert shop.short() == 0
    assert shop.keep(120) == []


def test_where_nothing_else_will_do_it_is_tried_again_when_the_back_off_ends() -> None:
    shop = sold_out("m-2x", "m-8x", replicas=3)
    shop.keep(150)
    assert asked_for(shop) == [("m-2x",)] * 3 + [("m-8x",)]
    (outcome,) = shop.passes[-1].plan.demands
    (provisioning,) = [item for item in outcome.conditions if item.type == "Provisioning"]
    assert provisioning.message == (
        "of 3 chunks, 3 without a place; NodePool general: what would do is not available now: m-2x in zone-a as "
        "on-demand and 1 other; tried again at 09:03:05 UTC"
    )
    assert warnings(shop)[-1].split(" (trigger")[0].endswith("tried again at 09:03:05 UTC")
    shop.cluster.set_stock("m-2x", "zone-a", "on-demand", available=True)
    shop.keep(120)
    assert shop.short() == 0


def test_what_is_gone_before_the_next_pass_is_not_asked_for_each_second() -> None:
    """A launch that fails within the quiet time is never seen in a view."""
    shop = sold_out("m-2x", "m-8x")
    shop.keep(170, step=3.0)
    assert asked_for(shop) == [("m-2x",), ("m-8x",)]


def test_a_shortage_by_a_node_pools_limit_is_named_in_the_condition_and_in_an_event() -> None:
    shop = KeptCluster(instance_types=(SMALL,))
    shop.cluster.apply(node_pool(limits={"cpu": "4"}))
    shop.cluster.apply(workload(replicas=0, cpu="1500m"))
    shop.cluster.apply(buffer(replicas=3))
    shop.keep(60)
    (outcome,) = shop.passes[-1].plan.demands
    (provisioning,) = [item for item in outcome.conditions if item.type == "Provisioning"]
    assert provisioning.message == "of 3 chunks, 1 without a place; NodePool general is at its cpu limit of 4"
    assert "NodePoolLimit" in shop.reasons()
