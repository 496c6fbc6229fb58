"""Capacity reservations: used first, counted down, and asked for by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodeClaim,
    NodePool,
    Offering,
)
from reconciler.model.placement import Placement
from reconciler.model.requirements import Requirement
from reconciler.model.view import ClusterView
from tests.builders import demand, instance_type, node_pool, one_of, shape
from tests.unit.placement.worlds import World

ID = "karpenter.k8s.aws/capacity-reservation-id"
PLAIN = instance_type("m-4x", cpu="4", price=0.2, zones=("zone-a", "zone-b"))
ONE_EACH = shape("3", "1Gi")
EMPTY = ClusterView()


def labelled(**labels: str) -> tuple[Requirement, ...]:
    names = {"zone": ZONE_LABEL, "kind": CAPACITY_TYPE_LABEL, "reservation": ID}
    return tuple(one_of(names[key], value) for key, value in labels.items())


def reserved(count: int | None, name: str = "cr-1", zone: str = "zone-b", price: float = 0.0) -> Offering:
    requirements = labelled(zone=zone, kind="reserved", reservation=name)
    return Offering(zone, "reserved", price, True, requirements, reservation_capacity=count)


def with_reserved(*offerings: Offering) -> InstanceType:
    return replace(PLAIN, offerings=(*PLAIN.offerings, *offerings))


def placed(
    kind: InstanceType, *demands: Demand, pools: Sequence[NodePool] = (node_pool(),), view: ClusterView = EMPTY
) -> Placement:
    """Placed and found right by the checker."""
    return World(view, pools, (kind,), demands).placed_rightly()


def kinds_of(placement: Placement) -> list[str]:
    return sorted(kind for node in placement.planned for kind in node.capacity_types)


def test_what_is_reserved_is_used_first_and_no_more_of_it_than_there_is() -> None:
    placement = placed(with_reserved(reserved(2)), demand(count=5, pod_shape=ONE_EACH))
    assert kinds_of(placement) == ["on-demand", "on-demand", "on-demand", "reserved", "reserved"]
    assert sum(node.price for node in placement.planned) == 0.6000000000000001


def test_a_node_asks_for_its_reservation_by_name() -> None:
    (node,) = placed(with_reserved(reserved(2)), demand(count=1)).planned
    assert (node.node_pool, node.zones, node.capacity_types, node.price) == ("general", ("zone-b",), ("reserved",), 0.0)
    asked = {item.key: item.values for item in node.requirements}
    assert asked[ID] == ("cr-1",)
    assert asked[CAPACITY_TYPE_LABEL] == ("reserved",)
    assert asked[NODEPOOL_LABEL] == ("general",)


def test_chunks_may_ask_for_a_reservation_by_name() -> None:
    """A label that only offerings have: the checker sees it on the node too."""
    kind = with_reserved(reserved(2, name="cr-1"), reserved(2, name="cr-2"))
    (node,) = placed(kind, demand(count=1, pod_shape=shape(node_selector={ID: "cr-2"}))).planned
    assert {item.key: item.values for item in node.requirements}[ID] == ("cr-2",)


def test_two_pools_share_a_reservation() -> None:
    pools = (node_pool("general"), node_pool("other"))
    placement = placed(with_reserved(reserved(1)), demand(count=3, pod_shape=ONE_EACH), pools=pools)
    assert kinds_of(placement) == ["on-demand", "on-demand", "reserved"]


def test_a_pools_own_limits_hold_in_its_reservations_too() -> None:
    pools = (node_pool(limits={"cpu": "8"}),)
    placement = placed(with_reserved(reserved(5)), demand(count=3, pod_shape=ONE_EACH), pools=pools)
    assert kinds_of(placement) == ["reserved", "reserved"]
    (left,) = placement.unplaced
    assert left.reasons[0].example == "NodePool general is at its cpu limit of 8"


@pytest.mark.parametrize("asked", [(), ((ZONE_LABEL, "zone-b"),)])
def test_what_only_a_reservation_has_is_said_to_be_used_up(asked: tuple[tuple[str, str], ...]) -> None:
    asked = ((CAPACITY_TYPE_LABEL, "reserved"), *asked)
    placement = placed(with_reserved(reserved(2)), demand(count=3, pod_shape=replace(ONE_EACH, node_selector=asked)))
    assert kinds_of(placement) == ["reserved", "reserved"]
    (left,) = placement.unplaced
    assert left.reasons[0].example == "NodePool general: nothing is left of reservation cr-1"


def test_a_pool_that_wants_no_reserved_capacity_gets_none() -> None:
    pools = (node_pool(requirements=labelled(kind="on-demand")),)
    assert kinds_of(placed(with_reserved(reserved(5)), demand(count=1), pools=pools)) == ["on-demand"]


def test_several_reservations_are_counted_apart() -> None:
    kind = with_reserved(reserved(1, "cr-1"), reserved(1, "cr-2", "zone-a", price=0.01))
    placement = placed(kind, demand(count=3, pod_shape=ONE_EACH))
    names = sorted(item.values[0] for node in placement.planned for item in node.requirements if item.key == ID)
    assert names == ["cr-1", "cr-2"]
    assert kinds_of(placement) == ["on-demand", "reserved", "reserved"]


def test_without_a_name_each_type_and_zone_is_a_reservation() -> None:
    nameless = replace(reserved(1), requirements=labelled(zone="zone-b", kind="reserved"))
    placement = placed(with_reserved(nameless), demand(count=2, pod_shape=ONE_EACH))
    assert kinds_of(placement) == ["on-demand", "reserved"]


def test_a_claim_on_its_way_has_its_share() -> None:
    claim = NodeClaim(
        "general-1",
        labels=((NODEPOOL_LABEL, "general"),),
        requirements=(
            *labelled(kind="reserved", reservation="cr-1"),
            one_of(INSTANCE_TYPE_LABEL, "m-4x"),
        ),
    )
    kind, two = with_reserved(reserved(1)), demand(count=2, pod_shape=shape("3500m", "15Gi"))
    assert kinds_of(placed(kind, two, view=ClusterView(node_claims=(claim,)))) == ["on-demand"]
    launched = replace(claim, conditions=(("Launched", "True"),))
    assert kinds_of(placed(kind, two, view=ClusterView(node_claims=(launched,)))) == ["reserved"]


def test_an_offering_that_does_not_say_how_much_is_left_is_not_planned_with() -> None:
    placement = placed(with_reserved(reserved(None)), demand(count=1))
    assert kinds_of(placement) == ["on-demand"]
    assert placement.assumptions == ("1 reserved offering without ReservationCapacity is not planned with",)
    assert placed(with_reserved(reserved(0)), demand(count=1)).assumptions == ()


@pytest.mark.parametrize("told", [reserved(0), replace(reserved(0), available=False)])
def test_of_two_that_tell_of_a_reservation_the_one_with_less_is_believed(told: Offering) -> None:
    """Also when it says that nothing is left, as Karpenter has it: the other may be older."""
    placement = placed(with_reserved(reserved(2), told), demand(count=1))
    assert kinds_of(placement) == ["on-demand"]


def test_chunks_without_rules_take_turns_at_what_a_limit_leaves_of_the_heaviest_pool() -> None:
    """The heavy pool may make one node, and has a reservation in zone-b only: it is left to the chunk that can go there."""
    bound_to_a = shape("3", "1Gi", node_selector={ZONE_LABEL: "zone-a"})
    on_demand = one_of(CAPACITY_TYPE_LABEL, "on-demand")
    pools = (node_pool("heavy", weight=10, limits={"nodes": "1"}), node_pool("light", requirements=(on_demand,)))

    placement = placed(
        with_reserved(reserved(1)),
        demand("in-a", count=1, pod_shape=bound_to_a),
        demand("in-b", count=1, pod_shape=replace(ONE_EACH, node_selector=((ZONE_LABEL, "zone-b"),))),
        pools=pools,
    )

    assert {node.node_pool: (node.zones, node.capacity_types) for node in placement.planned} == {
        "heavy": (("zone-b",), ("reserved",)),
        "light": (("zone-a",), ("on-demand",)),
    }


def test_a_claim_on_its_way_may_become_what_only_one_place_tells_to_be_used_up() -> None:
    """Whoever launches it may know better, so that it is not sure to be on demand."""
    claim = NodeClaim(
        "general-1",
        labels=((NODEPOOL_LABEL, "general"),),
        requirements=(
            one_of(INSTANCE_TYPE_LABEL, PLAIN.name),
            one_of(ZONE_LABEL, "zone-b"),
        ),
        requests=PLAIN.capacity,
    )
    on_demand = replace(ONE_EACH, node_selector=((CAPACITY_TYPE_LABEL, "on-demand"),))
    waiting = demand(count=1, pod_shape=on_demand, opens_nodes=False)
    view = ClusterView(node_claims=(claim,))

    assert not placed(with_reserved(reserved(0)), waiting, view=view).unplaced
    assert placed(with_reserved(reserved(2), reserved(0)), waiting, view=view).unplaced
