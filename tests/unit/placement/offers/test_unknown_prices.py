"""Instance types without a known price: never free, never guessed at in the cost."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.model.declared import Declared
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, InstanceType, NodePool
from reconciler.model.placement import Placement
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.facts import Facts
from reconciler.plan.plan import make_plan
from tests.builders import demand, instance_type, node_pool, one_of, overlay, shape
from tests.unit.placement.worlds import World


def unpriced(kind: InstanceType) -> InstanceType:
    offerings = tuple(replace(offering, price=0.0, price_known=False) for offering in kind.offerings)
    return replace(kind, offerings=offerings)


def at_price(kind: InstanceType, dollars: float) -> InstanceType:
    return replace(kind, offerings=tuple(replace(offering, price=dollars) for offering in kind.offerings))


POOL = node_pool()
SMALL, LARGE = instance_type("m-4x", cpu="4", memory="16Gi"), instance_type("m-64x", cpu="64", memory="256Gi")


WORDS = "taken only where no type that has one will do, the smaller in CPU and memory first"


def placed(types: tuple[InstanceType, ...], *, cpu: str = "1", pool: NodePool = POOL, price: str = "") -> Placement:
    """Three chunks. price: what an overlay says of m-4x."""
    overlays = (overlay("told", one_of(INSTANCE_TYPE_LABEL, "m-4x"), price=price),) if price else ()
    demands = (demand(count=3, pod_shape=shape(cpu)),)
    return World(ClusterView(), (pool,), types, demands, overlays).placed_rightly()


def test_the_smaller_type_is_taken_where_no_price_is_known() -> None:
    found = placed((unpriced(SMALL), unpriced(LARGE)))
    assert f"2 instance types have no price in the catalog: they are {WORDS}" in found.assumptions
    (node,) = found.planned
    assert node.instance_types == ("m-4x", "m-64x")
    assert not node.price_known


def test_a_single_type_without_a_price_is_spoken_of_as_one() -> None:
    found = placed((unpriced(SMALL), LARGE))
    assert f"1 instance type has no price in the catalog: it is {WORDS}" in found.assumptions


@pytest.mark.parametrize("dollars", [0.2, 3.2, 200.0])
def test_a_known_price_is_preferred_to_one_that_is_not(dollars: float) -> None:
    """However small the type without a price is; and it is not listed either, since nobody knows what a launch would then cost."""
    (node,) = placed((unpriced(SMALL), at_price(LARGE, dollars))).planned
    assert (node.instance_types, node.price, node.price_known) == (("m-64x",), dollars, True)


def test_a_type_without_a_price_is_taken_where_nothing_else_holds_the_chunks() -> None:
    found = placed((SMALL, unpriced(LARGE)), cpu="8")
    assert [node.instance_types for node in found.planned] == [("m-64x",)]
    assert not found.planned[0].price_known
    assert found.unplaced == ()


def test_a_type_without_a_price_is_listed_where_minvalues_ask_for_it() -> None:
    two = Requirement(INSTANCE_TYPE_LABEL, Operator.EXISTS, (), 2)
    pool = replace(POOL, template=replace(POOL.template, requirements=(two,)))
    (node,) = placed((SMALL, unpriced(LARGE)), pool=pool).planned
    assert node.instance_types == ("m-4x", "m-64x")
    assert not node.price_known


def test_a_price_that_an_overlay_tells_is_known_and_not_said_to_be_missing() -> None:
    found = placed((unpriced(SMALL), at_price(LARGE, 0.2)), price="0.15")
    assert not [item for item in found.assumptions if "price" in item and "overlay" not in item]
    (node,) = found.planned
    assert (node.instance_types, node.price, node.price_known) == (("m-4x", "m-64x"), 0.15, True)


def test_a_type_that_no_pool_may_buy_is_not_spoken_of() -> None:
    only_large = one_of(INSTANCE_TYPE_LABEL, "m-64x")
    pool = replace(POOL, template=replace(POOL.template, requirements=(only_large,)))
    assert placed((unpriced(SMALL), LARGE), pool=pool).assumptions == ()


def test_a_type_with_a_price_in_one_zone_only_is_taken_there() -> None:
    first, second = SMALL.offerings
    found = placed((replace(SMALL, offerings=(replace(first, price=0.0, price_known=False), second)),))
    (node,) = found.planned
    assert (node.zones, node.price, node.price_known) == ((second.zone,), 0.2, True)
    words = "1 instance type has a price for some of its offerings only: the others are taken only where no offering that has one will do"
    assert found.assumptions == (words,)


def test_an_unknown_price_is_named_and_not_counted() -> None:
    types = (unpriced(SMALL),)
    demands = (demand(count=3),)
    found = place(Problem(ClusterView(), (node_pool(),), types, demands))
    now, effective = datetime(2026, 11, 21, tzinfo=UTC), Declared(node_pools=(node_pool(),))
    plan = make_plan(Facts(now, effective=effective, demands=demands, placement=found, instance_types=types))
    assert plan.cost.per_hour_after == 0
    assert any(plan.node_claims.create[0].name in note for note in plan.cost.assumptions)
