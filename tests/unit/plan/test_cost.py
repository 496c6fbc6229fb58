"""What the cluster costs before and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from reconciler.model.changes import Cost, NodeClaimAction, NodeClaimChanges
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, ZONE_LABEL, Offering
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.plan.bins import all_bins
from reconciler.plan.cost import Prices, cost_of
from reconciler.plan.launching.creations import creations
from tests.builders import instance_type, node, pod
from tests.unit.plan.worlds import claim, planned, pool_node, together, with_node

CATALOG = (
    instance_type("m-4x", price=0.2, capacity_types=("on-demand", "spot")),
    instance_type("m-8x", price=0.4),
)


def cost(
    view: ClusterView,
    *,
    created: int = 0,
    deleted: Iterable[str] = (),
    released: Iterable[str] = (),
) -> Cost:
    def actions(names: Iterable[str]) -> tuple[NodeClaimAction, ...]:
        return tuple(NodeClaimAction(f"claim-of-{name}", name, "general", "") for name in names)

    return cost_of(
        all_bins(view),
        Prices(CATALOG),
        NodeClaimChanges(
            tuple(creations([planned(price=0.3)] * created, ())),
            delete=actions(deleted),
            release=actions(released),
        ),
        assumptions=("prices of a test",),
    )


def test_nodes_cost_what_their_labels_say() -> None:
    view = ClusterView(nodes=(pool_node("a"), pool_node("b", capacity_type="spot"), node("c", instance_type="m-8x")))
    answer = cost(view)
    assert answer.per_hour_before == answer.per_hour_after == pytest.approx(0.2 + 0.1 + 0.4)
    assert answer.assumptions == ("prices of a test", "spot prices are those of the price source; they change")


def test_new_nodes_are_added_at_their_planned_price_and_deleted_ones_go() -> None:
    view = together(with_node("a"), with_node("b"))
    answer = cost(view, created=2, deleted=["a"])
    assert answer.per_hour_before == pytest.approx(0.4)
    assert answer.per_hour_after == pytest.approx(0.2 + 0.6)


def test_released_empty_placeholders_count_as_gone_and_that_is_said() -> None:
    answer = cost(with_node("a"), released=["a"])
    assert (answer.per_hour_before, answer.per_hour_after) == pytest.approx((0.2, 0.0))
    assert answer.assumptions[1:] == (
        "1 node released and empty: counted as gone, paid for until Karpenter removes it",
    )


def test_released_nodes_that_are_in_use_stay() -> None:
    view = replace(with_node("a"), pods=(pod(node="a"),))
    assert cost(view, released=["a"]).per_hour_after == pytest.approx(0.2)
    karpenters = ClusterView(nodes=(node("a"),), node_claims=(claim("claim-of-a", node_name="a", placeholder=False),))
    assert cost(karpenters, released=["a"]).per_hour_after == pytest.approx(0.2)


def test_nodes_already_on_the_way_out_count_only_before() -> None:
    answer = cost(with_node("a", deleting=True))
    assert (answer.per_hour_before, answer.per_hour_after) == pytest.approx((0.2, 0.0))
    assert "already on the way out" in answer.assumptions[1]


def test_labels_that_leave_one_price_open_are_enough() -> None:
    kind = replace(CATALOG[1], offerings=(Offering("zone-a", "on-demand", 0.4), Offering("zone-b", "on-demand", 0.5)))
    bare = claim(node_name=None, labels={INSTANCE_TYPE_LABEL: "m-8x"})
    zoned = claim(node_name=None, labels={INSTANCE_TYPE_LABEL: "m-8x", ZONE_LABEL: "zone-b"})
    prices = Prices([kind])
    (first,), (second,) = (all_bins(ClusterView(node_claims=(item,))) for item in (bare, zoned))
    assert prices.of(first) is None
    assert prices.of(second) == 0.5


def test_a_node_on_its_way_costs_the_cheapest_of_what_it_asks_for() -> None:
    asked = (
        Requirement(INSTANCE_TYPE_LABEL, Operator.IN, ("m-8x", "m-4x")),
        Requirement("karpenter.sh/capacity-type", Operator.IN, ("on-demand",)),
    )
    (item,) = all_bins(ClusterView(node_claims=(claim(node_name=None, requirements=asked),)))
    assert Prices(CATALOG).of(item) == 0.2
