"""Where few chunks move, the best of all ways is taken; where some more do, the best of a few orders."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import ZONE_LABEL, InstanceType
from reconciler.model.placement import Placement
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import demand, instance_type, node, node_pool, shape

ZONES = ("zone-a", "zone-b")
SMALL = instance_type("small", cpu="2", memory="4Gi", price=0.1, zones=ZONES)
LARGE = instance_type("large", cpu="8", memory="16Gi", price=0.36, zones=ZONES)

SIZES = ("1300m", "900m", "700m", "1700m", "3100m", "1100m", "2500m")


def placed(
    *demands: Demand,
    view: ClusterView = ClusterView(),  # noqa: B008 - immutable
    types: tuple[InstanceType, ...] = (SMALL, LARGE),
) -> Placement:
    return place(Problem(view, (node_pool(),), types, demands))


@pytest.mark.parametrize("count", [30, 400])
def test_what_gets_no_place_makes_nobody_elses_placement_dearer(count: int) -> None:
    """Its chunks counted among those that move, so that no other orders were tried, or not all ways, for the few that remain."""
    demands = [demand(f"d{number}", count=1, pod_shape=shape(cpu, "256Mi")) for number, cpu in enumerate(SIZES)]
    refused = demand("refused", count=count, pod_shape=shape("4", "256Mi"), whole=True)
    limited = node_pool(limits={"cpu": "100"})
    types = (SMALL, LARGE)

    def price(*wanted: Demand) -> float:
        found = place(Problem(ClusterView(), (limited,), types, wanted))
        assert sum(item.count for item in found.unplaced) == (count if refused in wanted else 0)
        return sum(item.price for item in found.planned)

    assert price(*demands, refused) == price(*demands)


def test_what_found_no_place_is_tried_first_where_there_are_too_many_ways() -> None:
    view = ClusterView(
        nodes=(
            node("a", cpu="2", memory="16Gi", zone="zone-a"),
            node("b", cpu="2", memory="16Gi", zone="zone-b"),
            node("c", cpu="10", memory="16Gi", zone="zone-c"),
        )
    )
    anywhere = demand("a-anywhere", count=2, pod_shape=shape("1", "256Mi"), opens_nodes=False)
    bound_to_a = demand(
        "b-zone-a", count=2, pod_shape=shape("1", "256Mi", node_selector={ZONE_LABEL: "zone-a"}), opens_nodes=False
    )
    rest = demand(
        "c-zone-c", count=10, pod_shape=shape("1", "256Mi", node_selector={ZONE_LABEL: "zone-c"}), opens_nodes=False
    )

    placement = placed(anywhere, bound_to_a, rest, view=view)

    assert placement.unplaced == ()
    assert {item.node: item.holdings[0].demand.name for item in placement.occupied} == {
        "a": "b-zone-a",
        "b": "a-anywhere",
        "c": "c-zone-c",
    }


def test_a_trial_finds_the_best_way_unless_that_costs_more_than_the_trial_is_of_use_for() -> None:
    demands = [demand(f"d{number}", count=1, pod_shape=shape(cpu, "256Mi")) for number, cpu in enumerate(SIZES)]

    def price(most_price: float) -> float:
        problem = Problem(ClusterView(), (node_pool(),), (SMALL, LARGE), demands)
        options = replace(problem.options, most_price=most_price)
        return sum(item.price for item in place(replace(problem, options=options)).planned)

    best = price(inf)
    assert price(best) == best
    assert price(best - 0.01) > best
