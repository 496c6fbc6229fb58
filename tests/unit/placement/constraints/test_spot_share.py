"""placement.spotShare by example: how lists become disjoint, what counts already, and what is said where it cannot be kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.demand import Demand
from reconciler.model.nodes import (
    HELD_ANNOTATION,
    HOLDS_ANNOTATION,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    ZONE_LABEL,
    InstanceType,
    Node,
    NodePool,
)
from reconciler.model.placement import Crowding, Holding, Placement, most_on_one_offering, words_of_holdings
from reconciler.model.pods import NodeSelectorTerm, PodAffinityTerm, PreferredNodeTerm
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.optimizer.place_in_mode import place_in_mode
from reconciler.placement.checker.violations import violations
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import buffer_ref, demand, instance_type, node, node_pool, shape
from tests.perf.decoded_cluster import buffers
from tests.unit.placement.worlds import World

SPOT = ("spot",)
ZONES = ("zone-a", "zone-b")
ONE_A_NODE = shape("3")
EMPTY = ClusterView()


def kinds(*names: str, zones: Sequence[str] = ("zone-a", "zone-b")) -> tuple[InstanceType, ...]:
    """Of four CPUs each, sold as spot only, the first cheapest."""
    return tuple(
        instance_type(name, zones=zones, capacity_types=SPOT, price=0.2 + number / 100)
        for number, name in enumerate(names)
    )


def placed(
    *demands: Demand,
    types: Sequence[InstanceType],
    share: float,
    view: ClusterView = EMPTY,
    pool: NodePool = node_pool(),  # noqa: B008 - immutable
) -> Placement:
    """Placed and found right by the checker."""
    options = PlacementOptions(spot_share=share)
    return World(view, (pool,), types, demands, options=options).placed_rightly()


def lists(placement: Placement) -> list[tuple[tuple[str, ...], tuple[str, ...], int]]:
    """Types, zones and chunks of each new node."""
    return sorted(
        (item.instance_types, item.zones, sum(holding.count for holding in item.holdings)) for item in placement.planned
    )


@pytest.mark.parametrize(
    ("share", "chunks", "most"),
    [(0.34, 10, 3), (0.29, 100, 29), (0.1, 30, 3), (0.7, 10, 7), (0.34, 2, 1), (0.05, 1, 1), (1.0, 7, 7)],
)
def test_the_share_of_a_count_is_rounded_down_to_one_at_least(share: float, chunks: int, most: int) -> None:
    assert most_on_one_offering(share, chunks) == most


def test_without_a_bound_every_node_lists_everything() -> None:
    placement = placed(demand(count=2, pod_shape=ONE_A_NODE), types=kinds("m1", "m2"), share=1.0)
    assert lists(placement) == [(("m1", "m2"), ("zone-a", "zone-b"), 1)] * 2


def test_two_halves_take_a_zone_each_and_all_types_in_it() -> None:
    placement = placed(demand(count=2, pod_shape=ONE_A_NODE), types=kinds("m1", "m2"), share=0.5)
    assert lists(placement) == [(("m1", "m2"), ("zone-a",), 1), (("m1", "m2"), ("zone-b",), 1)]


def test_four_quarters_in_two_zones_share_out_the_types() -> None:
    placement = placed(demand(count=4, pod_shape=ONE_A_NODE), types=kinds("m1", "m2", "m3", "m4"), share=0.25)
    assert lists(placement) == [
        (("m1", "m3"), ("zone-a",), 1),
        (("m1", "m3"), ("zone-b",), 1),
        (("m2", "m4"), ("zone-a",), 1),
        (("m2", "m4"), ("zone-b",), 1),
    ]


def test_nodes_within_the_share_may_become_the_same() -> None:
    placement = placed(demand(count=4, pod_shape=ONE_A_NODE), types=kinds("m1"), share=0.5)
    assert lists(placement) == [(("m1",), ("zone-a",), 1)] * 2 + [(("m1",), ("zone-b",), 1)] * 2


def test_nodes_on_demand_are_not_looked_at() -> None:
    on_demand = (instance_type("m1"), instance_type("m2"))
    asked = demand(count=6, pod_shape=shape("500m"))
    assert placed(asked, types=on_demand, share=0.1) == placed(asked, types=on_demand, share=1.0)


def both(cpu: str, price: float) -> InstanceType:
    """In two zones, as spot for half the price."""
    return instance_type(f"m-{cpu}x", cpu=cpu, capacity_types=("on-demand", "spot"), zones=ZONES, price=price)


def bought(placement: Placement) -> list[tuple[tuple[str, ...], tuple[str, ...], float]]:
    return [(node.instance_types, node.capacity_types, node.price) for node in placement.planned]


def test_one_node_on_demand_is_taken_where_many_on_spot_cost_more() -> None:
    types = tuple(both(str(cpu), cpu / 20) for cpu in (2, 4, 8, 16))
    placement = placed(demand(count=12, pod_shape=shape("1")), types=types, share=0.1)
    assert bought(placement) == [(("m-16x",), ("on-demand",), 0.8)]
    assert placement.crowded == ()


def test_nodes_that_only_dear_spot_is_left_for_are_bought_on_demand() -> None:
    """Two of the small ones on spot, one in each zone; a third on demand costs less than a large one on spot."""
    types = (both("4", 0.2), both("16", 0.8))
    apart = PodAffinityTerm(HOSTNAME_LABEL, LabelSelector((("app", "web"),)))
    asked = demand(count=3, pod_shape=replace(shape("3", labels={"app": "web"}), pod_anti_affinity=(apart,)))
    placement = placed(asked, types=types, share=0.34)
    assert sorted(kinds for _, kinds, _ in bought(placement)) == [
        ("on-demand",),
        ("on-demand", "spot"),
        ("on-demand", "spot"),
    ]
    assert sum(price for _, _, price in bought(placement)) == pytest.approx(0.1 + 0.1 + 0.2)


def on_spot(name: str, held: int, zone: str = "zone-a", kind: str = "m1") -> Node:
    """A spot node that holds so many chunks of buffer web."""
    words = words_of_holdings([Holding(buffer_ref(), 0, held)]) if held else ""
    marks = {HELD_ANNOTATION: "true", HOLDS_ANNOTATION: words} if held else {}
    return node(name, zone=zone, instance_type=kind, capacity_type="spot", annotations=marks)


def test_a_refill_goes_where_the_demand_is_thinnest() -> None:
    view = ClusterView(nodes=(on_spot("a", 1),))
    placement = placed(demand(count=2, pod_shape=ONE_A_NODE), types=kinds("m1"), share=0.5, view=view)
    assert [item.node for item in placement.occupied] == ["a"]
    assert lists(placement) == [(("m1",), ("zone-b",), 1)]


def test_what_stands_stays_though_it_is_more_than_the_share() -> None:
    view = ClusterView(nodes=(on_spot("a", 4),))
    placement = placed(demand(count=4, pod_shape=shape("500m")), types=kinds("m1", "m2"), share=0.5, view=view)
    assert placement.planned == ()
    assert placement.crowded == (Crowding(buffer_ref(), "m1", ("zone-a",), 4, 2, 4),)
    (sentence,) = placement.assumptions
    assert sentence == (
        "CapacityBuffer/shop/web: 4 of 4 chunks may end up on spot m1 in zone-a, where placement.spotShare allows 2: its nodes, "
        "its constraints and the pool's types and zones leave no better choice"
    )


def test_all_zones_that_may_come_to_be_as_full_are_named() -> None:
    view = ClusterView(nodes=(on_spot("a", 2), on_spot("b", 2, "zone-b"), on_spot("c", 1, "zone-c")))
    placement = placed(demand(count=5, pod_shape=shape("500m")), types=kinds("m1"), share=0.2, view=view)
    assert placement.crowded == (Crowding(buffer_ref(), "m1", ("zone-a", "zone-b"), 2, 1, 5),)
    (sentence,) = placement.assumptions
    assert sentence.startswith(
        "CapacityBuffer/shop/web: 2 of 5 chunks may end up on spot m1 in one of zone-a and zone-b, where "
        "placement.spotShare allows 1: "
    )


def test_with_too_few_offerings_all_are_used_evenly_and_it_is_said() -> None:
    placement = placed(demand(count=5, pod_shape=ONE_A_NODE), types=kinds("m1"), share=0.2)
    assert not placement.unplaced
    assert [zones for _, zones, _ in lists(placement)] == [("zone-a",)] * 3 + [("zone-b",)] * 2
    assert [(item.chunks, item.allowed, item.total) for item in placement.crowded] == [(3, 1, 5)]


IN_A = {ZONE_LABEL: "zone-a"}


def test_nodes_that_would_stand_on_one_offering_all_the_same_are_not_split() -> None:
    asked = demand(count=5, pod_shape=shape("500m", node_selector=IN_A))
    placement = placed(asked, types=kinds("m1"), share=0.2)
    assert lists(placement) == [(("m1",), ("zone-a",), 5)]
    assert placement.crowded == (Crowding(buffer_ref(), "m1", ("zone-a",), 5, 1, 5),)


def test_a_demand_that_can_spread_does_so_beside_one_that_cannot() -> None:
    there_only = shape("500m", node_selector={**IN_A, INSTANCE_TYPE_LABEL: "m1"})
    free, bound = demand("free", count=4, pod_shape=shape("1800m")), demand(count=4, pod_shape=there_only)
    placement = placed(free, bound, types=kinds("m1", "m2", "m3", "m4"), share=0.5)
    assert placement.crowded == (Crowding(buffer_ref(), "m1", ("zone-a",), 4, 2, 4),)
    assert len(placement.planned) == 3


def test_a_wish_that_leaves_one_offering_does_not_split_nodes_either() -> None:
    wish = PreferredNodeTerm(1, NodeSelectorTerm(expressions=(Requirement(ZONE_LABEL, Operator.IN, ("zone-a",)),)))
    asked = demand(count=5, pod_shape=replace(shape("500m"), preferred_node_terms=(wish,)))
    assert lists(placed(asked, types=kinds("m1"), share=0.2)) == [(("m1",), ("zone-a",), 5)]


def test_free_room_is_used_where_new_nodes_would_stand_on_the_same_offering() -> None:
    view = ClusterView(nodes=(on_spot("a", 2),))
    asked = demand(count=5, pod_shape=shape("500m", node_selector=IN_A))
    placement = placed(asked, types=kinds("m1"), share=0.2, view=view)
    assert placement.planned == ()
    assert [item.chunks for item in placement.crowded] == [5]


def test_a_zone_that_chunks_ask_for_is_kept() -> None:
    in_a = shape("3", node_selector={"topology.kubernetes.io/zone": "zone-a"})
    placement = placed(demand(count=2, pod_shape=in_a), types=kinds("m1", "m2", "m3", "m4"), share=0.5)
    assert lists(placement) == [(("m1", "m3"), ("zone-a",), 1), (("m2", "m4"), ("zone-a",), 1)]


def test_min_values_come_before_the_share() -> None:
    both = Requirement(INSTANCE_TYPE_LABEL, Operator.EXISTS, (), min_values=2)
    pool = node_pool(requirements=(both,))
    asked = demand(count=4, pod_shape=ONE_A_NODE)
    placement = placed(asked, types=kinds("m1", "m2"), share=0.25, pool=pool)
    assert all(len(types) == 2 for types, _, _ in lists(placement))
    assert placement.crowded, "with two types on every list, two zones hold two of four chunks each at least"
    enough = placed(asked, types=kinds("m1", "m2", "m3", "m4"), share=0.25, pool=pool)
    assert enough.crowded == ()


def test_no_chunk_goes_without_for_it() -> None:
    pool = node_pool(limits={"nodes": "1"})
    placement = placed(demand(count=4, pod_shape=shape("500m")), types=kinds("m1"), share=0.25, pool=pool)
    assert not placement.unplaced
    assert [item.chunks for item in placement.crowded] == [4]


def test_demands_that_share_nodes_are_kept_apart_together() -> None:
    """Twenty buffers over 144 types in four zones: there is room for all of them."""
    placement = placed(*buffers(20, chunks=20), types=synthetic_instance_types(), share=0.5)
    assert placement.crowded == ()
    assert len(placement.planned) > 1


def test_the_checker_finds_what_is_over_the_share_and_not_said() -> None:
    types, asked = kinds("m1"), (demand(count=2, pod_shape=ONE_A_NODE),)
    wide = place_in_mode(Problem(EMPTY, (node_pool(),), types, asked))

    def found(placement: Placement) -> tuple[str, ...]:
        options = PlacementOptions(spot_share=0.5)
        return violations(Problem(EMPTY, (node_pool(),), types, asked, options=options), placement)

    web = "CapacityBuffer/shop/web"
    assert found(wide) == (f"{web}: 2 of 2 chunks may end up on one spot offering, 1 are allowed",)
    assert found(replace(wide, crowded=(Crowding(buffer_ref(), "m1", ("zone-a", "zone-b"), 2, 1, 2),))) == ()
    (in_part,) = found(replace(wide, crowded=(Crowding(buffer_ref(), "m1", ("zone-a",), 2, 1, 2),)))
    assert in_part.startswith(f"{web}: 2 chunks are said to crowd m1 in ('zone-a',), which is ")
    narrow = placed(*asked, types=types, share=0.5)
    wrong = replace(narrow, crowded=(Crowding(buffer_ref(), "m1", ("zone-a",), 2, 1, 2),))
    assert found(wrong) == (f"{web}: 2 chunks are said to crowd one spot offering, which they do not",)
    unheard_of = replace(narrow, crowded=(Crowding(buffer_ref("other"), "m1", ("zone-a",), 2, 1, 2),))
    assert found(unheard_of) == ("CapacityBuffer/shop/other: is said to crowd one spot offering, and does not exist",)
