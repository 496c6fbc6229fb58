"""Pods under spread constraints, where prices differ by zone: who comes when, where all can be bound, and what they cost at least."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import HELD_ANNOTATION, HOLDS_ANNOTATION, ZONE_LABEL
from reconciler.model.placement import Holding, Placement, words_of_holdings
from reconciler.model.pods import PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import demand, instance_type, node, node_pool, shape, spread
from tests.unit.placement.worlds import place_in_mode

DEAR = instance_type("box", cpu="4", memory="16Gi", price=1.0, zones=("cheap", "dear"))
BOX = replace(DEAR, offerings=tuple(replace(item, price=1.0 + (item.zone == "dear") / 2) for item in DEAR.offerings))
"""Half as dear again in one of two zones."""


def counting(counted: str, *, own: str, cpu: str) -> PodShape:
    """Of an app of its own, it must not come to a zone where many more pods of another one are than elsewhere."""
    constraint = spread(ZONE_LABEL, app=counted)
    return shape(cpu, "1Gi", labels={"app": own}, topology_spread=(constraint,))


def pods(name: str, pod_shape: PodShape, count: int) -> list[Demand]:
    return [
        demand(pod_shape=pod_shape, count=1, ref=ObjectRef("", "Pod", "shop", f"{name}-{number}"))
        for number in range(count)
    ]


EVEN = pods("even", counting("even", own="even", cpu="1"), 2)
"""One in each zone, whoever else there is."""


def placed(*demands: list[Demand], optimal: bool = False) -> Placement:
    every = (*EVEN, *(item for some in demands for item in some))
    options = PlacementOptions(include_pending=True, optimal=optimal)
    with pytest.MonkeyPatch.context() as few:
        few.setattr("reconciler.placement.engine.best.MOST_ORDERED", 0)
        few.setattr("reconciler.placement.engine.best.MOST_CHUNKS", 0)
        return place_in_mode(Problem(ClusterView(), (node_pool(),), (BOX,), every, options=options))


def by_zone(placement: Placement) -> dict[str, Counter[str]]:
    """How many pods of which name."""
    found: dict[str, Counter[str]] = {}
    for made in placement.planned:
        for item in made.holdings:
            found.setdefault(made.zones[0], Counter())[item.demand.name.partition("-")[0]] += item.count
    return found


def test_those_come_first_who_could_not_be_in_the_cheap_zone_after_others() -> None:
    """Pods of api come first by their size. After them those that count api would have to be in the dear zone."""
    web = pods("web", counting("api", own="web", cpu="500m"), 6)
    api = pods("api", counting("other", own="api", cpu="1"), 6)

    assert by_zone(placed(web, api)) == {"cheap": Counter(web=6, api=6, even=1), "dear": Counter(even=1)}


def test_no_pod_of_a_chain_comes_after_those_that_it_counts() -> None:
    """Most requests are of api, which comes before those that it counts, and yet must not come before the few that count api."""
    web = pods("web", counting("api", own="web", cpu="500m"), 2)
    api = pods("api", counting("db", own="api", cpu="1"), 6)
    db = pods("db", counting("other", own="db", cpu="500m"), 6)

    assert by_zone(placed(web, api, db)) == {"cheap": Counter(web=2, api=6, db=6, even=1), "dear": Counter(even=1)}


@pytest.mark.parametrize("optimal", [False, True])
def test_of_those_that_count_each_other_some_go_to_the_dear_zone(optimal: bool) -> None:  # noqa: FBT001 - a parameter
    """Six of each in one zone: whoever comes last finds more of the others there than maxSkew lets it."""
    web = pods("web", counting("api", own="web", cpu="1"), 6)
    api = pods("api", counting("web", own="api", cpu="1"), 6)

    for held in by_zone(placed(web, api, optimal=optimal)).values():
        assert min(held["web"], held["api"]) <= 1


def test_the_least_possible_price_knows_that_pods_are_spread_over_zones() -> None:
    """Three to a node. Were they all in the cheap zone, four nodes would cost $4.00."""
    web = pods("web", counting("web", own="web", cpu="1200m"), 10)

    (said,) = (item for item in placed(web, optimal=True).assumptions if item.startswith("placement.mode optimal"))

    assert said.endswith("the least possible")


# Who gets the room, where it is too little for all.

SMALL = instance_type("small", cpu="2", memory="4Gi", price=0.1)
ONE_FITS = shape("1500m", "256Mi")
YOUNG = demand("young", count=1, pod_shape=ONE_FITS, created="2026-11-20T08:00:00Z")
OLD = demand("zz-old", count=1, pod_shape=ONE_FITS, created="2025-11-20T08:00:00Z")
REQUEST = replace(YOUNG, ref=ObjectRef("autoscaling.x-k8s.io", "ProvisioningRequest", "shop", "train"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (OLD, YOUNG),
        (replace(YOUNG, declared_priority=1), OLD),
        (replace(YOUNG, priority=OLD.priority + 1), replace(OLD, declared_priority=9)),
        (REQUEST, OLD),
        (replace(YOUNG, booked=True), replace(OLD, priority=1000)),
    ],
)
def test_the_limit_of_a_pool_is_used_up_in_order(first: Demand, second: Demand) -> None:
    for demands in ((first, second), (second, first)):
        problem = Problem(ClusterView(), (node_pool(limits={"nodes": "1"}),), (SMALL,), demands)
        assert [item.demand for item in place(problem).unplaced] == [second.ref]


def held_for(of: Demand) -> ClusterView:
    holds = ((HELD_ANNOTATION, "true"), (HOLDS_ANNOTATION, words_of_holdings((Holding(of.ref, 0, 1),))))
    return ClusterView(nodes=(replace(node("there", cpu="2"), annotations=holds),))


def test_room_that_is_held_goes_to_those_of_a_higher_priority() -> None:
    weighty = replace(YOUNG, declared_priority=1)
    placement = place(Problem(held_for(OLD), demands=(OLD, weighty)))
    assert [item.demand for item in placement.unplaced] == [OLD.ref]


def test_nobody_moves_for_another_that_is_only_older() -> None:
    placement = place(Problem(held_for(YOUNG), demands=(OLD, YOUNG)))
    assert [item.demand for item in placement.unplaced] == [OLD.ref]
