"""The optimal mode: what it saves, what it says of it, and when the fast placement stands."""

from __future__ import annotations

import sys
from functools import cache
from unittest.mock import patch

import pytest

from reconciler.manifests.instance_types import synthetic_instance_types
from reconciler.model.demand import Demand
from reconciler.model.errors import Invalid
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, InstanceType, NodePool
from reconciler.model.placement import Placement
from reconciler.model.quantity import CPU
from reconciler.model.view import ClusterView
from reconciler.optimizer.bound import lower_bound, relaxation_of
from reconciler.optimizer.solver import WorkBudget
from reconciler.placement.cache import Cache
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import solve
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, shape, spread, term, web
from tests.perf.pod_mix import decoded, demands_of, pod_manifests, pool, priced_by_zone
from tests.unit.placement.worlds import place_in_mode

FAST = PlacementOptions(include_pending=True)
OPTIMAL = PlacementOptions(include_pending=True, optimal=True)
MIX = demands_of(decoded(pod_manifests(150)))
"""Pods of all kinds: spread, together and apart, over zones and hosts."""
BOX = instance_type("box", cpu="11", memory="100Gi", price=1.0)
PAIRS = (demand("a", count=120, pod_shape=shape("4", "1Gi")), demand("b", count=120, pod_shape=shape("6", "1Gi")))
"""The fast mode packs the first demand by itself, two to a node, before it looks at the second; there are too many chunks for it to try
other orders."""


def placed(
    *demands: Demand,
    types: tuple[InstanceType, ...] = synthetic_instance_types(),
    pools: tuple[NodePool, ...] = (pool(),),
    view: ClusterView = ClusterView(),  # noqa: B008 - immutable
    options: PlacementOptions = OPTIMAL,
) -> Placement:
    return place_in_mode(Problem(view, pools, types, demands, options=options))


@cache
def mixed(options: PlacementOptions = OPTIMAL) -> Placement:
    """Where the mix is placed, which many tests look at."""
    return placed(*MIX, options=options)


def boxes(options: PlacementOptions = OPTIMAL, view: ClusterView = ClusterView()) -> Placement:  # noqa: B008 - immutable
    """Where the pairs are placed."""
    return placed(*PAIRS, types=(BOX,), pools=(node_pool(),), view=view, options=options)


def price(placement: Placement) -> float:
    return sum(item.price for item in placement.planned)


def said(placement: Placement) -> str:
    return next(item for item in placement.assumptions if item.startswith("placement.mode optimal"))


def broken(placement: Placement) -> tuple[str, ...]:
    return violations(Problem(ClusterView(), (pool(),), synthetic_instance_types(), MIX), placement)


def test_where_prices_differ_by_zone_chunks_are_packed_anew_in_their_zones() -> None:
    """Most of them are in the cheapest one, where the fast placement has them."""
    types = priced_by_zone(synthetic_instance_types())

    optimal = placed(*MIX, types=types)

    assert price(optimal) < 2.02
    assert violations(Problem(ClusterView(), (pool(),), types, MIX), optimal) == ()


def test_says_what_was_saved_and_how_far_it_is_from_the_least_possible() -> None:
    optimal = mixed()

    sentence = said(optimal)
    assert sentence.startswith(f"placement.mode optimal: new nodes cost ${price(optimal):.2f}/h instead of $")
    assert "over the least possible (not under $" in sentence


def test_puts_together_what_the_fast_mode_keeps_apart() -> None:
    fast, optimal = boxes(FAST), boxes()

    assert len(fast.planned) == 180
    assert len(optimal.planned) == 120
    assert all(len(item.holdings) == 2 for item in optimal.planned)
    assert said(optimal) == (
        "placement.mode optimal: new nodes cost $120.00/h instead of $180.00/h, the least possible"
    )


def test_what_is_on_nodes_that_are_there_stays() -> None:
    view = ClusterView(nodes=(node("there", cpu="9", memory="32Gi"),))

    optimal = boxes(view=view)

    assert optimal.occupied
    assert optimal.occupied == boxes(FAST, view).occupied
    assert len(optimal.planned) < len(boxes(FAST, view).planned)


def test_the_fast_placement_stands_when_the_time_is_over() -> None:
    late = place_in_mode(
        Problem(ClusterView(), (pool(),), synthetic_instance_types(), MIX, options=OPTIMAL), seconds_left=lambda: 0.0
    )

    assert late.planned == mixed(FAST).planned
    assert "the time for it was over: the fast placement stands" in said(late)


@pytest.mark.parametrize("looks", [3, 30, 700])
def test_the_best_that_was_found_is_used_when_the_time_is_over_in_the_middle(looks: int) -> None:
    """A clock that is looked at so many times before it strikes."""
    left = iter([60.0] * looks)
    late = place_in_mode(
        Problem(ClusterView(), (pool(),), synthetic_instance_types(), MIX, options=OPTIMAL),
        seconds_left=lambda: next(left, 0.0),
    )

    assert price(late) <= price(mixed(FAST))
    assert "the time for it was over" in said(late)
    assert not broken(late)
    if looks == 700:
        assert price(late) < price(mixed(FAST))
        assert said(late).endswith("before all was tried, and another run may find more")


@pytest.mark.parametrize("most", [1, 100_000])
def test_when_the_work_is_over_the_answer_is_still_one_and_the_same(most: int) -> None:
    with patch("reconciler.optimizer.place_in_mode.WorkBudget", lambda left, **_named: WorkBudget(left, most=most)):
        one, other = placed(*MIX), placed(*MIX)

    assert one == other
    assert price(one) <= price(mixed(FAST))
    assert not broken(one)
    assert "the time for it" not in said(one)


def test_in_a_pool_with_limits_too_the_same_alternatives_are_listed_when_the_fast_placement_stands() -> None:
    roomy = mixed(FAST)
    cores = sum(item.requests.get(CPU) for item in roomy.planned) // 1000
    limited = node_pool("general", requirements=pool().template.requirements, limits={"cpu": str(cores * 4)})

    late = place_in_mode(
        Problem(ClusterView(), (limited,), synthetic_instance_types(), MIX, options=OPTIMAL), seconds_left=lambda: 0.0
    )

    assert late.planned == placed(*MIX, pools=(limited,), options=FAST).planned


def test_what_breaks_a_rule_is_not_used() -> None:
    with patch("reconciler.optimizer.place_in_mode.violations", lambda *_args, **_named: ("node-1: broken",)):
        placement = boxes()

    assert placement.planned == boxes(FAST).planned
    assert "what was cheaper broke a rule: the fast placement stands" in said(placement)


def test_without_the_solver_says_what_to_do() -> None:
    with patch.dict(sys.modules, {"highspy": None}), pytest.raises(Invalid) as caught:
        placed(*MIX)

    assert "highspy cannot be loaded" in str(caught.value)
    assert caught.value.hint == "install it (pip install highspy), or set placement.mode: fast"


def test_the_fast_mode_needs_no_solver() -> None:
    with patch.dict(sys.modules, {"highspy": None}):
        assert placed(*MIX, options=FAST).planned


def test_the_least_possible_knows_of_spread_over_zones_where_nodes_are_few() -> None:
    even = web("1", "1Gi", topology_spread=(spread(ZONE_LABEL),))
    box = instance_type("box", cpu="11", memory="100Gi", price=1.0)

    placement = placed(demand(count=2, pod_shape=even), types=(box,), pools=(node_pool(),))

    assert said(placement).endswith("the least possible")


def test_a_large_gap_may_be_out_of_reach() -> None:
    """The least possible price knows nothing of anti-affinity over zones, for which there are two nodes."""
    apart = web("1", "1Gi", pod_anti_affinity=(term(ZONE_LABEL),))
    box = instance_type("box", cpu="11", memory="100Gi", price=1.0)

    placement = placed(demand(count=2, pod_shape=apart), types=(box,), pools=(node_pool(),))

    assert said(placement).endswith(
        "at most 100.0% over the least possible (not under $1.00/h, which may be out of reach)"
    )


def test_the_least_possible_is_none_that_nodes_undercut_which_fill_up_evenly() -> None:
    """Spread over hosts allows one more than on the emptiest of them. All are new here, and the limit leaves four, so that each takes three."""
    even = web("500m", "1Gi", topology_spread=(spread(HOSTNAME_LABEL),))
    box = instance_type("box", cpu="1900m", memory="8Gi", price=1.0)

    placement = placed(demand(count=12, pod_shape=even), types=(box,), pools=(node_pool(limits={"cpu": "8"}),))

    assert len(placement.planned) == 4
    assert not placement.unplaced
    assert said(placement).endswith("the least possible")


@pytest.mark.parametrize("each", [0.335, 0.339996, 0.1, 0.0567, 1.005, 7.0])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_a_price_that_cannot_be_undercut_is_said_to_be_the_least(each: float, count: int) -> None:
    """Boxes of one chunk. Solvers are exact to so many digits only."""
    box = instance_type("box", cpu="2", memory="8Gi", price=each)
    placement = placed(demand(count=count, pod_shape=shape("1500m", "1Gi")), types=(box,), pools=(node_pool(),))
    assert said(placement).endswith(f"${each * count:.2f}/h, the least possible")


def test_the_bound_is_nothing_where_no_node_can_be_bought() -> None:
    """The only chunk is on a node that is there, and no type on offer would hold it."""
    types, demands = (instance_type(cpu="1"),), (demand(count=1, pod_shape=shape("2")),)
    state = solve(Problem(ClusterView(nodes=(node(),)), (node_pool(),), types, demands), Cache()).state

    assert lower_bound(relaxation_of(state), WorkBudget(lambda: 1.0)) == 0.0
