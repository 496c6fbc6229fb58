"""What holds of placement.spotShare, whatever the cluster, the pools and the demands are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from reconciler.model.demand import Demand
from reconciler.model.nodes import InstanceType
from reconciler.model.placement import Placement, PlannedNode, most_on_one_offering
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from tests.builders import demand, instance_type, node_pool, shape
from tests.properties.sampling import sampled_from
from tests.unit.placement.worlds import ZONES, World, carried_out, worlds

Thing = TypeVar("Thing")
SHARES = sampled_from([0.05, 0.2, 0.34, 0.5, 0.75])


def placed(world: World, share: float) -> Placement:
    return world.under(spot_share=share).placed()


def spot_only(world: World) -> World:
    """All types are sold as spot, and as nothing else."""
    kinds = tuple(
        replace(
            kind,
            offerings=instance_type(kind.name, zones=ZONES, capacity_types=("spot",), price=0.1 * number).offerings,
        )
        for number, kind in enumerate(world.instance_types, start=1)
    )
    return replace(world, instance_types=kinds)


def on_demand_only(world: World) -> World:
    kinds = tuple(
        replace(kind, offerings=tuple(item for item in kind.offerings if item.capacity_type == "on-demand"))
        for kind in world.instance_types
    )
    return replace(world, instance_types=kinds)


@settings(max_examples=40, deadline=None)
@given(world=worlds(), share=SHARES, optimal=st.booleans(), only_spot=st.booleans())
def test_breaks_no_rule_and_says_what_it_cannot_keep(
    world: World, share: float, *, optimal: bool, only_spot: bool
) -> None:
    world = (spot_only(world) if only_spot else world).under(optimal=optimal)
    # What goes wrong without a share is for test_placement to find.
    assume(not world.broken_rules(world.placed()))
    world = world.under(spot_share=share)
    placement = world.placed()

    assert world.broken_rules(placement) == ()
    assert {str(item) for item in placement.crowded} <= set(placement.assumptions)


@settings(max_examples=25, deadline=None)
@given(world=worlds(), share=SHARES)
def test_leaves_no_chunk_without_a_place_that_had_one(world: World, share: float) -> None:
    def missing(placement: Placement) -> int:
        return sum(item.count for item in placement.unplaced)

    assert missing(placed(spot_only(world), share)) <= missing(placed(spot_only(world), 1.0))


@settings(max_examples=20, deadline=None)
@given(world=worlds(), share=SHARES)
def test_placements_on_demand_are_the_same_with_and_without(world: World, share: float) -> None:
    world = on_demand_only(world)

    assert placed(world, share) == placed(world, 1.0)


@settings(max_examples=20, deadline=None)
@given(world=worlds(), share=SHARES, turn=st.integers(0, 5))
def test_does_not_depend_on_the_order_of_what_it_is_given(world: World, share: float, turn: int) -> None:
    def turned(things: Sequence[Thing]) -> tuple[Thing, ...]:
        return (*things[turn:], *things[:turn])

    view = replace(world.view, nodes=turned(world.view.nodes), pods=turned(world.view.pods))
    other = World(view, turned(world.node_pools), turned(world.instance_types), turned(world.demands))

    assert placed(other, share) == placed(world, share)


@settings(max_examples=25, deadline=None)
@given(world=worlds(), share=SHARES)
def test_placing_again_over_what_came_of_it_changes_nothing(world: World, share: float) -> None:
    world = replace(spot_only(world), demands=tuple(item for item in world.demands if item.opens_nodes))
    first = placed(world, share)
    after = carried_out(world, first)

    second = placed(after, share)

    assert second.planned == ()
    assert placed(carried_out(after, second), share).occupied == second.occupied


KINDS = tuple(
    instance_type(
        f"m{number:02}",
        cpu=str(2 ** (number % 4 + 1)),
        memory=f"{2 ** (number % 4 + 3)}Gi",
        price=0.1 * 2 ** (number % 4) * (1 + number / 50),
        zones=ZONES,
        capacity_types=("spot", "on-demand"),
    )
    for number in range(24)
)


def plain(demands: tuple[Demand, ...], kinds: tuple[InstanceType, ...] = KINDS) -> World:
    return World(ClusterView(), (node_pool(),), kinds, demands)


@settings(max_examples=25, deadline=None)
@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    sizes=st.lists(sampled_from(["500m", "1", "3"]), min_size=3, max_size=3),
    share=sampled_from([0.1, 0.2, 0.34, 0.5]),
    wishes=st.data(),
)
@example(counts=[10], sizes=["1", "1", "1"], share=0.34, wishes=None)
def test_keeps_the_share_whichever_way_every_launch_goes(
    counts: list[int], sizes: list[str], share: float, wishes: st.DataObject | None
) -> None:
    """With 72 offerings there is room for every share; each node comes to be any one of those it lists."""
    demands = tuple(
        demand(f"web-{number}", count=count, pod_shape=shape(size))
        for number, (count, size) in enumerate(zip(counts, sizes, strict=False))
    )
    placement = placed(plain(demands), share)
    assert placement.crowded == ()

    landed: dict[tuple[ObjectRef, str, str], int] = {}
    for node in placement.planned:
        kind, zone = _launched(node, wishes)
        for holding in node.holdings if "spot" in node.capacity_types else ():
            key = (holding.demand, kind, zone)
            landed[key] = landed.get(key, 0) + holding.count
    totals = {item.ref: item.groups[0].count for item in demands}
    assert all(count <= most_on_one_offering(share, totals[key[0]]) for key, count in landed.items())


def _launched(node: PlannedNode, wishes: st.DataObject | None) -> tuple[str, str]:
    if wishes is None:
        return node.instance_types[0], node.zones[0]
    return wishes.draw(sampled_from(node.instance_types)), wishes.draw(sampled_from(node.zones))


@settings(max_examples=25, deadline=None)
@given(count=st.integers(2, 12), share=sampled_from([0.2, 0.34, 0.5]))
def test_a_refill_goes_where_the_demand_is_thinnest(count: int, share: float) -> None:
    """All but one node of a demand stay where they are; the one in their place takes none of their offerings beyond the share."""
    demands = (demand(count=count, pod_shape=shape("1")),)
    world = plain(demands)
    first = placed(world, share)
    after = carried_out(world, first)
    left = replace(after, view=replace(after.view, node_claims=after.view.node_claims[1:]))

    second = placed(left, share)

    assert second.crowded == ()
    assert left.under(spot_share=share).broken_rules(second) == ()
    kept = {claim.name for claim in left.view.node_claims}
    assert {item.node_claim for item in second.occupied} == kept, "what is there stays"
