"""Instance types without a known price: never free, never guessed at in the cost."""

from dataclasses import replace
from datetime import UTC, datetime

from reconciler.model.nodes import InstanceType
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.plan.plan import PlanInputs, make_plan
from tests.builders import demand, instance_type, node_pool


def unpriced(kind: InstanceType) -> InstanceType:
    offerings = tuple(replace(offering, price=0.0, price_known=False) for offering in kind.offerings)
    return replace(kind, offerings=offerings)


SMALL, LARGE = instance_type("m-4x", cpu="4", memory="16Gi"), instance_type("m-64x", cpu="64", memory="256Gi")


def test_the_smaller_type_is_taken_where_no_price_is_known() -> None:
    types = (unpriced(SMALL), unpriced(LARGE))
    found = place(ClusterView(), node_pools=(node_pool(),), instance_types=types, demands=(demand(count=3),))
    assert "2 instance types have no known price: they were chosen by CPU and memory" in found.assumptions
    (node,) = found.planned
    assert node.instance_types[0] == "m-4x"
    assert not node.price_known


def test_a_single_type_without_a_price_is_spoken_of_as_one() -> None:
    types = (unpriced(SMALL), LARGE)
    found = place(ClusterView(), node_pools=(node_pool(),), instance_types=types, demands=(demand(count=3),))
    assert "1 instance type has no known price: it was chosen by CPU and memory" in found.assumptions


def test_an_unknown_price_is_named_and_not_counted() -> None:
    types = (unpriced(SMALL),)
    demands = (demand(count=3),)
    found = place(ClusterView(), node_pools=(node_pool(),), instance_types=types, demands=demands)
    inputs = PlanInputs(
        None,
        datetime(2026, 11, 21, tzinfo=UTC),
        ClusterView(),
        demands=demands,
        placement=found,
        node_pools=(node_pool(),),
        instance_types=types,
    )
    plan = make_plan(inputs)
    assert plan.cost.per_hour_after == 0
    assert any(plan.node_claims.create[0].name in note for note in plan.cost.assumptions)


def test_known_prices_are_as_before() -> None:
    found = place(ClusterView(), node_pools=(node_pool(),), instance_types=(SMALL, LARGE), demands=(demand(count=3),))
    (node,) = found.planned
    assert node.price_known
    assert node.price == 0.2
