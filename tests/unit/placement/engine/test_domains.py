"""Where prices differ between zones: which zone those go to who want to be together, and what is said to be the least possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, InstanceType, NodePool
from reconciler.model.placement import Placement
from reconciler.model.pods import PodShape
from reconciler.model.view import ClusterView
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, one_of, shape, spread, term
from tests.unit.placement.worlds import place_in_mode

FAST, OPTIMAL = PlacementOptions(), PlacementOptions(optimal=True)


def sold(name: str, cpu: int, prices: Mapping[str, float]) -> InstanceType:
    """4 GiB for each CPU; prices: by zone."""
    kind = instance_type(name, cpu=str(cpu), memory=f"{4 * cpu}Gi", price=1.0, zones=tuple(prices))
    return replace(kind, offerings=tuple(replace(item, price=prices[item.zone]) for item in kind.offerings))


MARKET = (
    sold("large", 2, {"a": 0.035, "b": 0.036, "c": 0.037}),
    sold("xlarge", 4, {"a": 0.074, "b": 0.062, "c": 0.07}),
    sold("2xlarge", 8, {"a": 0.16, "b": 0.118, "c": 0.15}),
    sold("4xlarge", 16, {"a": 0.33, "b": 0.23, "c": 0.31}),
)
"""The smallest is cheapest in a, all others in b."""


def near_its_like(cpu: str, app: str = "web") -> PodShape:
    return shape(cpu, "1Gi", labels={"app": app}, pod_affinity=(term(ZONE_LABEL, app),))


def placed(
    *demands: Demand,
    types: tuple[InstanceType, ...] = MARKET,
    options: PlacementOptions = OPTIMAL,
    pools: tuple[NodePool, ...] = (node_pool(),),
    view: ClusterView = ClusterView(),  # noqa: B008 - immutable
) -> Placement:
    return place_in_mode(Problem(view, pools, types, demands, options=options))


def price(placement: Placement) -> float:
    return round(sum(item.price for item in placement.planned), 4)


def zones(placement: Placement) -> set[str]:
    return {zone for item in placement.planned for zone in item.zones}


def said(placement: Placement) -> str:
    return next((item for item in placement.assumptions if item.startswith("placement.mode optimal")), "")


@pytest.mark.parametrize("options", [FAST, OPTIMAL])
def test_a_group_goes_where_all_of_it_costs_least(options: PlacementOptions) -> None:
    """One alone would be cheaper in a."""
    placement = placed(demand("web", count=60, pod_shape=near_its_like("1")), options=options)

    assert zones(placement) == {"b"}
    assert price(placement) == 0.92
    assert options == FAST or said(placement).endswith("the least possible")


def test_where_many_more_are_placed_a_zone_counts_with_the_room_that_is_left_there() -> None:
    """Each by itself would be cheaper in a, on a node that it fills."""
    types = (sold("small", 2, {"a": 1.0, "b": 1.1}), sold("large", 4, {"a": 2.0, "b": 1.4}))
    sizes = [shape(f"{1000 + 20 * number}m", topology_spread=(spread(ZONE_LABEL),)) for number in range(20)]
    demands = [demand(f"of-{number}", count=1, pod_shape=item) for number, item in enumerate(sizes)]

    assert zones(placed(*demands, types=types, options=FAST)) == {"b"}


def test_one_alone_goes_where_it_costs_least_by_itself() -> None:
    placement = placed(demand("web", count=1, pod_shape=near_its_like("1")))

    assert (zones(placement), price(placement)) == ({"a"}, 0.035)


@pytest.mark.parametrize("options", [FAST, OPTIMAL])
def test_those_who_follow_are_reckoned_with_by_the_first(options: PlacementOptions) -> None:
    """Pods of several sizes, each few enough to be cheapest in a by itself."""
    sizes = ("1", "900m", "800m", "700m", "1100m", "1200m", "600m", "500m", "1500m", "400m", "1300m")
    demands = [demand(f"web-{cpu}", count=1, pod_shape=near_its_like(cpu)) for cpu in sizes]

    assert zones(placed(*demands, options=options)) == {"b"}


def test_the_zone_is_that_where_whole_nodes_cost_least() -> None:
    """10 CPUs: five small nodes in either zone, or one large one, which is dear in a."""
    types = (
        sold("m2", 2, {"a": 0.10, "b": 0.11}),
        sold("m8", 8, {"a": 0.45, "b": 0.22}),
        sold("m16", 16, {"a": 0.9, "b": 0.3}),
    )
    placement = placed(demand("web", count=20, pod_shape=near_its_like("500m")), types=types)

    assert price(placement) == 0.3
    assert "the least possible" in said(placement)


def test_of_groups_that_keep_apart_the_larger_has_the_cheaper_zone() -> None:
    types = (sold("m2", 2, {"a": 0.10, "b": 0.11}), sold("m16", 16, {"a": 0.9, "b": 0.3}))
    few = shape("500m", "1Gi", labels={"app": "few"}, pod_anti_affinity=(term(ZONE_LABEL, "many"),))
    many = shape("1", "1Gi", labels={"app": "many"}, pod_anti_affinity=(term(ZONE_LABEL, "few"),))

    placement = placed(
        *(demand("many", count=30, pod_shape=many), demand("few", count=3, pod_shape=few)), types=types, options=FAST
    )

    assert price(placement) == 0.7  # two of 16 CPUs in b, one of 2 CPUs in a


def test_where_all_zones_cost_the_same_the_first_is_taken() -> None:
    types = (sold("m2", 2, {"a": 0.1, "b": 0.1}), sold("m16", 16, {"a": 0.8, "b": 0.8}))

    assert zones(placed(demand("web", count=20, pod_shape=near_its_like("1")), types=types, options=FAST)) == {"a"}


def test_a_heavier_pool_comes_before_a_cheaper_zone() -> None:
    dear = node_pool("dear", weight=10, requirements=[one_of(ZONE_LABEL, "a")])
    placement = placed(demand("web", count=60, pod_shape=near_its_like("1")), pools=(dear, node_pool()), options=FAST)

    assert {item.node_pool for item in placement.planned} == {"dear"}


def test_free_room_is_reckoned_with_in_the_least_possible() -> None:
    """On the node that is there eight of ten could be: what the two others cost is what cannot be undercut."""
    there = ClusterView(nodes=(node("there", cpu="8", memory="32Gi", zone="b"),))

    placement = placed(demand("web", count=10, pod_shape=shape("1", "1Gi")), view=there)

    assert said(placement).endswith("the least possible")


EVEN = tuple(sold(f"m{cpu}", cpu, {"a": cpu * 0.05, "b": cpu * 0.05}) for cpu in (2, 4, 8, 16))


def brokers(names: tuple[str, str, str]) -> list[Demand]:
    """Brokers apart from each other, keepers too, and readers who want a broker on their host and no keeper."""
    broker = shape("1", "256Mi", labels={"app": "broker"}, pod_anti_affinity=(term(HOSTNAME_LABEL, "broker"),))
    keeper = shape("500m", "256Mi", labels={"app": "keeper"}, pod_anti_affinity=(term(HOSTNAME_LABEL, "keeper"),))
    reader = shape(
        "500m",
        "256Mi",
        labels={"app": "reader"},
        pod_affinity=(term(HOSTNAME_LABEL, "broker"),),
        pod_anti_affinity=(term(HOSTNAME_LABEL, "keeper"),),
    )
    shapes = ((broker, 5), (keeper, 3), (reader, 4))
    return [demand(name, count=count, pod_shape=item) for name, (item, count) in zip(names, shapes, strict=True)]


@pytest.mark.parametrize("names", [*permutations(("a", "b", "c"))])
def test_what_shares_a_host_does_not_depend_on_names(names: tuple[str, str, str]) -> None:
    placement = placed(*brokers(names), types=EVEN)

    assert price(placement) == 0.6
    assert not placement.unplaced
    assert "(not under $0.55/h, which may be out of reach)" in said(placement)
