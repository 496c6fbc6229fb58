"""minValues together with limits and with capacity reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    InstanceType,
    NodePool,
    Offering,
)
from reconciler.model.placement import Placement
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.problem import Problem
from tests.builders import demand, instance_type, node_pool, one_of, shape
from tests.unit.placement.worlds import World, apart

SIZES = tuple(
    instance_type(f"m{cpus:02}", cpu=str(cpus), memory=f"{4 * cpus}Gi", price=cpus / 20) for cpus in (2, 4, 8, 16)
)
TWO_TYPES = Requirement(INSTANCE_TYPE_LABEL, Operator.EXISTS, (), 2)
RESERVED_OR_NOT = one_of(CAPACITY_TYPE_LABEL, "reserved", "on-demand")
NEARLY_TWO = shape("1500m", "1Gi")


def placed(
    *demands: Demand, pools: Sequence[NodePool], types: Sequence[InstanceType] = SIZES, alone: bool = True
) -> Placement:
    """Placed and found right by the checker. alone: no two chunks of a demand on one node."""
    asked = [apart(item) if alone else item for item in demands]
    return World(ClusterView(), pools, types, asked).placed_rightly()


def missing(placement: Placement) -> Mapping[str, int]:
    return {item.demand.name: item.count for item in placement.unplaced}


def reasons(placement: Placement) -> list[str]:
    return [reason.example for item in placement.unplaced for reason in item.reasons if "NodePool" in reason.example]


def two_types(**limits: str) -> NodePool:
    return node_pool(requirements=[TWO_TYPES], limits=limits)


def test_a_node_counts_as_the_largest_of_the_least_list_that_min_values_ask_for() -> None:
    placement = placed(demand(count=6, pod_shape=NEARLY_TWO), pools=[two_types(cpu="24")])

    assert [item.instance_types for item in placement.planned] == [("m02", "m04")] * 6
    assert missing(placement) == {}


def test_longer_lists_come_where_room_is_left_when_all_is_placed() -> None:
    """Six nodes that count as 4 CPU leave 16 of 40: one may become four times as large, another twice."""
    placement = placed(demand(count=6, pod_shape=NEARLY_TWO), pools=[two_types(cpu="40")])

    lists = sorted((item.instance_types for item in placement.planned), key=len)
    assert lists == [("m02", "m04")] * 4 + [("m02", "m04", "m08"), ("m02", "m04", "m08", "m16")]


@pytest.mark.parametrize("low", [3, 12])
def test_no_chunk_of_high_priority_loses_its_place_to_others(low: int) -> None:
    placement = placed(
        demand("high", count=6, pod_shape=NEARLY_TWO, priority=1000),
        demand("low", count=low, pod_shape=shape("1", "1Gi")),
        pools=[two_types(cpu="24")],
    )

    assert missing(placement) == {"low": low}
    assert reasons(placement) == [
        "NodePool general is at its cpu limit of 24, new nodes counted as the largest type that each lists for minValues"
    ]


def test_the_reason_says_what_one_more_node_would_count_as() -> None:
    """Of a limit of 11 CPUs two nodes leave 3: room for the smallest type, but not for a list of two."""
    placement = placed(demand(count=3, pod_shape=NEARLY_TWO), pools=[two_types(cpu="11")])

    assert missing(placement) == {"web": 1}
    assert reasons(placement) == [
        "NodePool general has used 8 of its cpu limit of 11, and a node that lists enough types for its minValues counts as 4"
    ]


def test_chunks_that_make_a_node_list_larger_types_come_only_where_limits_leave_room() -> None:
    """Each fits beside the first in the cheapest type; with it the node is too full for the second smallest."""
    types = (
        instance_type("wide", cpu="4", memory="32Gi", price=0.1),
        instance_type("narrow", cpu="4", memory="8Gi", price=0.2),
        instance_type("large", cpu="16", memory="64Gi", price=0.8),
    )
    demands = [
        demand("first", count=1, pod_shape=shape("1", "4Gi"), priority=1),
        demand("second", count=1, pod_shape=shape("1", "6Gi")),
    ]

    tight = placed(*demands, pools=[two_types(cpu="7")], types=types)
    roomy = placed(*demands, pools=[two_types(cpu="16")], types=types)

    assert missing(tight) == {"second": 1}
    assert missing(roomy) == {}


def test_nodes_grow_where_limits_leave_room_for_no_more_of_the_cheapest() -> None:
    """The smallest type is the cheapest for a chunk, but beside it a node must list one that is eight times as large. Of the limit two
    such nodes leave 8 CPUs, which would do for the smallest alone."""
    types = (SIZES[0], *(instance_type(name, cpu="16", memory="64Gi", price=2) for name in ("m16", "n16")))

    placement = placed(demand(count=12, pod_shape=NEARLY_TWO), pools=[two_types(cpu="40")], types=types, alone=False)

    assert missing(placement) == {}
    assert len(placement.planned) == 2


def test_heavier_pools_are_filled_up_to_their_limits() -> None:
    """Seven nodes of which each counts as 4 CPU, and the rest in the lighter pool."""
    heavy = replace(two_types(cpu="28"), name="heavy", weight=50)

    placement = placed(demand(count=12, pod_shape=NEARLY_TWO), pools=[heavy, node_pool("light")])

    assert sorted(item.node_pool for item in placement.planned) == ["heavy"] * 7 + ["light"] * 5


def test_limits_of_several_resources_hold_together() -> None:
    """The second type of a list may be large in one resource or in the other."""
    types = (
        instance_type("even", cpu="2", memory="4Gi", price=0.1),
        instance_type("cores", cpu="8", memory="4Gi", price=0.2),
        instance_type("memory", cpu="2", memory="16Gi", price=0.2),
    )
    placement = placed(demand(count=4, pod_shape=NEARLY_TWO), pools=[two_types(cpu="8", memory="100Gi")], types=types)

    assert [item.instance_types for item in placement.planned] == [("even", "memory")] * 4


def test_zones_are_chosen_so_that_there_are_enough_types() -> None:
    """The cheapest is sold in one zone; two zones and two types there are only of others."""
    zones = Requirement(ZONE_LABEL, Operator.EXISTS, (), 2)
    types = (
        instance_type("cheap", price=0.1, zones=("zone-a",)),
        instance_type("one", price=0.2),
        instance_type("other", price=0.3),
    )
    pool = node_pool(requirements=[TWO_TYPES, zones])

    (node,) = placed(demand(count=1), pools=[pool], types=types).planned

    assert (node.instance_types, node.zones) == (("one", "other"), ("zone-a", "zone-b"))


def with_reserved(kind: InstanceType, count: int) -> InstanceType:
    asked = (
        one_of(ZONE_LABEL, "zone-a"),
        one_of(CAPACITY_TYPE_LABEL, "reserved"),
        one_of("example.com/reservation-id", f"cr-{kind.name}"),
    )
    offering = Offering("zone-a", "reserved", 0.0, True, asked, reservation_capacity=count)
    return replace(kind, offerings=(*kind.offerings, offering))


SOME_RESERVED = (with_reserved(SIZES[0], 2), *SIZES[1:])


def how(placement: Placement) -> list[tuple[str, ...]]:
    return sorted((*item.capacity_types, *item.instance_types) for item in placement.planned)


def test_of_capacity_types_what_the_types_are_sold_as_counts_reserved_too() -> None:
    """A node on demand lists the type that is also reserved; a node of the reservation lists nothing beside it."""
    pool = node_pool(requirements=[replace(RESERVED_OR_NOT, min_values=2)])

    placement = placed(demand(count=3, pod_shape=NEARLY_TWO), pools=[pool], types=SOME_RESERVED)

    assert how(placement) == [("on-demand", "m02", "m04", "m08", "m16"), ("reserved", "m02"), ("reserved", "m02")]


def test_node_claims_ask_for_no_more_values_than_they_list() -> None:
    """The API server refuses `In` with fewer values than minValues."""
    pool = node_pool(requirements=[replace(RESERVED_OR_NOT, min_values=2), replace(TWO_TYPES, min_values=3)])

    placement = placed(demand(count=3, pod_shape=NEARLY_TWO), pools=[pool], types=SOME_RESERVED)

    asked = [item for node in placement.planned for item in node.requirements if item.min_values is not None]
    assert [(item.key, len(item.values), item.min_values) for item in asked] == [(INSTANCE_TYPE_LABEL, 4, 3)]


def test_the_checker_finds_node_claims_that_the_api_server_would_refuse() -> None:
    pool, demands = node_pool(requirements=[replace(RESERVED_OR_NOT, min_values=2)]), [demand(count=1)]
    placement = placed(*demands, pools=[pool], types=SOME_RESERVED)
    (node,) = placement.planned
    asked = tuple(
        replace(item, min_values=2) if item.key == CAPACITY_TYPE_LABEL else item for item in node.requirements
    )
    broken = replace(placement, planned=(replace(node, requirements=asked),))

    found = violations(Problem(ClusterView(), [pool], SOME_RESERVED, demands), broken)

    assert [f"asks for 2 values of {CAPACITY_TYPE_LABEL} and lists 1" in words for words in found] == [True]


def test_a_reservation_is_used_whatever_else_its_pool_could_have_bought() -> None:
    """Four types hold a small chunk; only one, which is reserved, holds the largest."""
    types = (*SIZES[:3], with_reserved(SIZES[3], 2))
    pool = node_pool(requirements=[RESERVED_OR_NOT, TWO_TYPES])

    small = placed(demand(count=1, pod_shape=NEARLY_TWO), pools=[pool], types=types)
    large = placed(demand(count=1, pod_shape=shape("12", "1Gi")), pools=[pool], types=types)

    assert how(small) == how(large) == [("reserved", "m16")]


def test_a_type_that_is_never_reserved_is_not_enough_by_itself() -> None:
    pool = node_pool(requirements=[replace(RESERVED_OR_NOT, min_values=2)])

    placement = placed(demand(count=1, pod_shape=shape("3", "1Gi")), pools=[pool], types=SOME_RESERVED)

    assert reasons(placement) == [
        f"NodePool general: its minValues asks for 2 values of {CAPACITY_TYPE_LABEL}, and what is large enough has 1 value"
    ]
