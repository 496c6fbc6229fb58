"""Nodes to be made: which pool, which sizes, what they are asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, InstanceType, NodeOverlay, NodePool
from reconciler.model.placement import Holding, Placement
from reconciler.model.pods import DaemonSet
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.offerings import overlaid_price
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import buffer_ref, demand, instance_type, node, node_pool, one_of, overlay, resources, shape

SMALL = instance_type("small", cpu="2", memory="8Gi", price=0.1)
LARGE = instance_type("large", cpu="8", memory="32Gi", price=0.36)
TYPES = (SMALL, LARGE)


def placed(
    *demands: Demand,
    pools: tuple[NodePool, ...] = (node_pool(),),
    types: tuple[InstanceType, ...] = TYPES,
    view: ClusterView = ClusterView(),  # noqa: B008 - immutable
    overlays: tuple[NodeOverlay, ...] = (),
    options: PlacementOptions = PlacementOptions(),  # noqa: B008 - immutable
) -> Placement:
    return place(Problem(view, pools, types, demands, overlays=overlays, options=options))


def reasons(placement: Placement) -> list[str]:
    return [reason.example for item in placement.unplaced for reason in item.reasons]


def test_asks_for_what_it_holds_and_for_daemons() -> None:
    agent = DaemonSet("system", "agent", shape("100m", "64Mi", namespace="system"))

    node_made = placed(demand(count=1), view=ClusterView(daemon_sets=(agent,))).planned[0]

    assert node_made.requests == resources("1100m", "1088Mi", pods="2")
    assert node_made.holdings == (Holding(buffer_ref(), 0, 1),)


def test_lists_spot_and_on_demand_together_where_the_cheapest_is_sold_as_both() -> None:
    both = instance_type("both", cpu="2", memory="8Gi", price=0.1, capacity_types=("on-demand", "spot"))

    node_made = placed(demand(count=1), types=(both,)).planned[0]

    assert node_made.capacity_types == ("on-demand", "spot")
    assert node_made.price == pytest.approx(0.05)


def test_lists_no_more_types_than_wanted_cheapest_first() -> None:
    types = tuple(instance_type(f"t{number}", price=0.1 + number / 100) for number in range(9))

    node_made = placed(demand(count=1), types=types, options=PlacementOptions(instance_types=3)).planned[0]

    assert node_made.instance_types == ("t0", "t1", "t2")


def test_types_without_the_label_add_no_value_to_what_min_values_count() -> None:
    family = Requirement("example.com/family", Operator.NOT_IN, ("x",), 2)
    types = tuple(
        replace(kind, labels=(*kind.labels, *(("example.com/family", name) for name in names)))
        for kind, names in ((SMALL, ["s"]), (LARGE, []))
    )

    assert placed(demand(count=1), pools=(node_pool(requirements=[family]),), types=types).planned == ()


def test_min_values_are_met_where_the_cheapest_is_sold_another_way_than_the_rest() -> None:
    medium = instance_type("medium", price=0.2, zones=("zone-a",), capacity_types=("on-demand", "spot"))
    large = instance_type("large", cpu="16", memory="64Gi", price=0.8, zones=("zone-a",))
    pool = node_pool(requirements=(Requirement("node.kubernetes.io/instance-type", Operator.EXISTS, (), 2),))

    placement = placed(demand(count=1), pools=(pool,), types=(medium, large))

    planned = placement.planned[0]
    assert planned.instance_types == ("medium", "large")
    assert planned.capacity_types == ("on-demand",)
    assert planned.price == pytest.approx(0.2)
    assert placement.assumptions == ()


def test_a_custom_requirement_gets_one_concrete_label() -> None:
    pool = node_pool(
        requirements=[
            one_of("team", "red", "blue"),
            Requirement("tier", Operator.EXISTS),
            Requirement("generation", Operator.GT, ("4",)),
        ]
    )

    node_made = placed(demand(count=1, pod_shape=shape(node_selector={"team": "red"})), pools=(pool,)).planned[0]

    assert node_made.labels == (("generation", "5"), ("team", "red"), ("tier", "true"))
    assert one_of("team", "red") in node_made.requirements


def test_chunks_that_want_different_values_do_not_share_a_node() -> None:
    pool = node_pool(requirements=[one_of("team", "red", "blue")])

    placement = placed(
        demand("a", count=1, pod_shape=shape("100m", node_selector={"team": "red"})),
        demand("b", count=1, pod_shape=shape("100m", node_selector={"team": "blue"})),
        pools=(pool,),
    )

    assert sorted(dict(item.labels)["team"] for item in placement.planned) == ["blue", "red"]


@pytest.mark.parametrize("change", [{"replicas": 1}, {"deleting": True}, {"unready": "no node class"}])
def test_pools_that_make_no_nodes_for_others_are_left_alone(change: dict[str, object]) -> None:
    placement = placed(demand(count=1), pools=(node_pool(**change),))  # type: ignore[arg-type]

    assert placement.planned == ()
    assert len(reasons(placement)) == 1
    assert reasons(placement)[0].startswith("NodePool general is ")


def test_limits_count_existing_nodes_by_the_capacity_of_their_type() -> None:
    full = node("one", cpu="1", memory="1Gi", instance_type="large")

    placement = placed(
        demand(count=3, pod_shape=shape("1500m")),
        pools=(node_pool(limits={"cpu": "11"}),),
        view=ClusterView(nodes=(full,)),
    )

    assert [item.instance_types for item in placement.planned] == [("small",)]
    assert placement.unplaced[0].count == 2
    assert (
        "NodePool general has used 10 of its cpu limit of 11, and small, the smallest that would do, has 2"
        in reasons(placement)
    )


def test_of_two_overlays_of_equal_weight_that_may_set_the_same_a_plan_says_that_it_does_not_judge_them() -> None:
    small, large = (one_of(INSTANCE_TYPE_LABEL, name) for name in ("small", "large"))
    price, gpus = {"price": "0.1"}, {"capacity": Resources.parse({"example.com/gpu": "1"})}

    def said(*overlays: NodeOverlay) -> list[str]:
        return [words for words in placed(demand(count=1), overlays=overlays).assumptions if "NodeOverlay" in words]

    both = "NodeOverlay/b and NodeOverlay/a are of equal weight: whether Karpenter ignores one of them is not judged"
    assert said(overlay("a", **price), overlay("b", large, **price)) == [both]
    assert said(overlay("a", **gpus), overlay("b", **gpus)) == [both]
    assert said(overlay("a", **price), overlay("b", **gpus)) == []
    assert said(overlay("a", small, **price), overlay("b", large, **price)) == []
    assert said(overlay("a", **price), overlay("b", weight=1, **price)) == []


@pytest.mark.parametrize(
    ("changed", "price"),
    [
        ({"price": "1e15"}, 1_000_000),
        ({"price": "Infinity"}, 1_000_000),
        ({"price": "NaN"}, 0.1),
        ({"price": "-3"}, 0),
        ({"price_adjustment": "+99999999999999"}, 1_000_000),
        ({"price_adjustment": "+999999999999999999%"}, 1_000_000),
        ({"price_adjustment": "+NaN%"}, 0.1),
    ],
)
def test_a_price_in_the_cluster_that_is_none_ends_no_plan(changed: dict[str, str], price: float) -> None:
    """A snapshot may say anything, and the cluster's schema bounds no price."""
    dear = overlay("dear", **changed)
    assert placed(demand(count=1), overlays=(dear,)).planned[0].price == pytest.approx(price)
    assert overlaid_price((dear,), {}, 0.1) == pytest.approx(price)


def test_the_heaviest_overlay_counts_and_of_equal_weight_the_last_by_name_as_karpenter_orders_them() -> None:
    dear, cheap, heavy = (
        overlay(name, weight=weight, price=price)
        for name, weight, price in (("b", 0, "0.09"), ("c", 0, "0.01"), ("a", 1, "0.05"))
    )
    for overlays, price in (
        ((dear, cheap), 0.01),
        ((cheap, dear), 0.01),
        ((cheap, heavy), 0.05),
        ((heavy, dear), 0.05),
    ):
        assert placed(demand(count=1), overlays=overlays).planned[0].price == pytest.approx(price)
