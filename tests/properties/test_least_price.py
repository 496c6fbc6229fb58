"""What the optimal mode says cannot be undercut, beside the cheapest of all ways there are (brute force).

Zones have prices of their own here, and many pods want to be in one zone or on one host with their like: who decides such things
before the least price is reckoned, and reckons only with what was decided, says too much.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace
from random import Random
from unittest.mock import patch

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, InstanceType
from reconciler.model.placement import Placement
from reconciler.model.pods import PodShape
from reconciler.model.view import ClusterView
from reconciler.optimizer.bound import lower_bound, relaxation_of
from reconciler.optimizer.solver import WorkBudget
from reconciler.placement.cache import Cache
from reconciler.placement.place import solve
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, node, node_pool, pod, shape, spread, term
from tests.properties.brute_force import cheapest_way
from tests.properties.crowded_worlds import crowded_worlds
from tests.properties.small_scenarios import Scenario, scenario
from tests.properties.test_brute_force import spots_of
from tests.properties.wide_worlds import wide_worlds
from tests.unit.placement.worlds import APPS, ZONES, World, catalogue, place_in_mode, priced_by_zone, worlds

SCENARIOS = int(os.environ.get("HEADROOM_SCENARIOS", "60"))
DOLLARS = 100
"""Times the usual price, since what is said is rounded to cents."""


def market(number: int) -> Scenario:
    """A few pods that mostly want their like near, where each zone has prices of its own."""
    drawn, random = scenario(number), Random(number)
    sizes = [shape(cpu, "1Gi", labels={"app": "web"}) for cpu in random.sample(("250m", "700m", "1", "1900m"), 2)]
    demands = tuple(
        demand(f"demand-{index}", count=random.randint(1, 2), pod_shape=_sociable(random.choice(sizes), random))
        for index in range(random.randint(1, 2))
    )
    return replace(drawn, demands=demands, instance_types=tuple(_priced(kind, random) for kind in drawn.instance_types))


def _sociable(plain: PodShape, random: Random) -> PodShape:
    like = term(random.choice((ZONE_LABEL, ZONE_LABEL, HOSTNAME_LABEL)))
    return replace(plain, pod_affinity=(like,)) if random.random() < 0.8 else plain


def _priced(kind: InstanceType, random: Random) -> InstanceType:
    offerings = tuple(
        replace(item, price=round(item.price * DOLLARS * random.choice((0.4, 1.0, 1.0, 1.5)), 2))
        for item in kind.offerings
    )
    return replace(kind, offerings=offerings)


def said(placement: Placement) -> float | None:
    """USD an hour that the plan says it cannot cost less than."""
    if any(item.endswith(", the least possible") for item in placement.assumptions):
        return sum(node.price for node in placement.planned)
    found = [re.search(r"not under \$([0-9.]+)/h", item) for item in placement.assumptions]
    return next((float(item[1]) for item in found if item), None)


def placed(world: Scenario) -> Placement:
    """As where there are too many chunks to look at every way, so that the fast placement may choose badly."""
    with (
        patch("reconciler.placement.engine.best.MOST_CHUNKS", 0),
        patch("reconciler.placement.engine.best.MOST_ORDERED", 0),
    ):
        return place_in_mode(
            Problem(
                world.view, (node_pool(),), world.instance_types, world.demands, options=PlacementOptions(optimal=True)
            )
        )


def test_nothing_is_cheaper_than_what_is_said_to_be_the_least_possible() -> None:
    told, wrong = 0, []
    for number in range(SCENARIOS):
        world = market(number)
        placement = placed(world)
        least = said(placement)
        if least is None or placement.unplaced:
            continue
        told += 1
        way = cheapest_way(world.shapes, spots_of(world), world.instance_types)
        ours = sum(item.price for item in placement.planned)
        possible = min(ours, way.price if way is not None else ours)
        if least > possible + 1e-6:
            wrong.append((number, least, possible, ours))

    assert told > SCENARIOS / 4
    assert wrong == []


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(world=st.one_of(wide_worlds(), crowded_worlds()))
def test_no_plan_that_the_checker_passes_costs_less_than_is_said_to_be_possible(world: World) -> None:
    fast, optimal = world.under(optimal=False).placed(), world.under(optimal=True).placed()

    for placement in (fast, optimal):
        assert world.broken_rules(placement) == ()
        assert (said(optimal) or 0.0) <= sum(item.price for item in placement.planned) + 1e-6


@st.composite
def spread_worlds(draw: st.DrawFn) -> World:
    """Pods over zones that differ much in price, most of them under a constraint that counts them or others; some nodes are there."""
    bound = [
        pod(f"there-{number}", node=f"node-{number}", pod_shape=_over_zones(draw, "100m"))
        for number in range(draw(st.integers(0, 3)))
    ]
    nodes = tuple(node(item.node_name or "", cpu="1", zone=draw(st.sampled_from(ZONES))) for item in bound)
    demands = tuple(
        demand(f"demand-{number}", count=draw(st.integers(1, 9)), pod_shape=_over_zones(draw, cpu))
        for number, cpu in enumerate(draw(st.lists(st.sampled_from(["300m", "1", "1900m"]), min_size=1, max_size=4)))
    )
    factors = draw(st.sampled_from([(1.0, 0.7, 1.3), (1.0, 2.0, 4.0), (1.0, 1.0, 1.0)]))
    view = ClusterView(nodes=nodes, pods=tuple(bound))
    return priced_by_zone(World(view, (node_pool(),), catalogue(ZONES), demands), factors)


def _over_zones(draw: st.DrawFn, cpu: str) -> PodShape:
    own, counted, skew = draw(st.sampled_from(APPS)), draw(st.sampled_from(APPS)), draw(st.sampled_from((1, 1, 2)))
    constraint = spread(ZONE_LABEL, skew, app=counted)
    plain = shape(cpu, "256Mi", labels={"app": own})
    return replace(plain, topology_spread=(constraint,)) if draw(st.integers(0, 3)) else plain


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(world=st.one_of(spread_worlds(), worlds().map(lambda world: priced_by_zone(world, (1.0, 0.7, 1.3)))))
def test_no_placement_over_zones_is_under_the_bound(world: World) -> None:
    """The bound knows of spread over zones where prices differ by zone, or nodes are few."""
    fast, optimal = world.under(include_pending=True).placed(), world.under(include_pending=True, optimal=True).placed()
    assume(fast.planned)
    problem = world.under(include_pending=True)
    bound = lower_bound(relaxation_of(solve(problem, Cache()).state), WorkBudget(lambda: math.inf)) or 0.0

    for placement in (fast, optimal):
        price = sum(item.price for item in placement.planned)
        assert bound <= price * (1 + 1e-6) + 1e-9
        assert (said(optimal) or 0.0) <= price + 1e-6
