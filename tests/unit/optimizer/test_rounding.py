"""From fractions of nodes to whole ones, and what the least possible price knows of spread."""

from __future__ import annotations

import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reconciler.model.demand import Demand
from reconciler.model.nodes import ZONE_LABEL, InstanceType, NodePool
from reconciler.model.pods import PodShape, TopologySpread
from reconciler.model.requirements import Taint, Toleration
from reconciler.model.view import ClusterView
from reconciler.optimizer.bound import lower_bound, relaxation_of
from reconciler.optimizer.columns import ColumnGeneration, MasterSolution
from reconciler.optimizer.packing import BinTypes, NodeRules, Packing, Pattern
from reconciler.optimizer.place_in_mode import improved, rounded
from reconciler.optimizer.solver import WorkBudget
from reconciler.placement.cache import Cache
from reconciler.placement.place import solve
from reconciler.placement.problem import Problem
from tests.builders import demand, instance_type, node, node_pool, selects, shape
from tests.properties.brute_force import cheapest_way

# From fractions of nodes to whole ones.

LARGE, SMALL = 5.0, 1.0
"""USD an hour of a node for ten chunks, and of one for a single chunk."""


def packing(chunks: int) -> Packing:
    """Equal chunks of one CPU, and two bin types."""
    bin_types = BinTypes(
        capacity=np.array([[10], [1]]),
        prices=np.array([int(LARGE * 1e9), int(SMALL * 1e9)]),
        admits=np.ones((2, 1), dtype=np.bool_),
        pools=np.zeros(2, dtype=np.int64),
    )
    rules = NodeRules(np.array([[1]]), np.zeros(0, dtype=np.int64), np.zeros((1, 1), dtype=np.bool_))
    return Packing(np.array([chunks]), bin_types, rules)


def solved(chunks: int, *known: Pattern) -> tuple[ColumnGeneration, MasterSolution]:
    columns = ColumnGeneration(packing(chunks), known, WorkBudget(lambda: math.inf))
    solution = columns.solve(rounds=10)
    assert solution is not None
    return columns, solution


def nodes(patterns: list[Pattern] | None) -> list[tuple[float, int]]:
    """Price and chunks of each."""
    assert patterns is not None
    return [(pattern.price, sum(count for _, count in pattern.items)) for pattern in patterns]


def test_what_is_left_for_a_node_gets_the_cheapest_that_holds_it() -> None:
    """By the linear program the eleventh chunk costs a tenth of a large node, so that a small one saves nothing."""
    columns, solution = solved(11, Pattern(((0, 10),), LARGE, 0))

    assert nodes(rounded(columns, solution)) == [(LARGE, 10), (SMALL, 1)]


def test_nodes_that_cost_more_than_they_need_are_packed_anew() -> None:
    columns, solution = solved(11, Pattern(((0, 10),), LARGE, 0))
    dear = [Pattern(((0, 6),), LARGE, 0), Pattern(((0, 5),), LARGE, 0)]

    assert sorted(nodes(improved(columns, solution, dear))) == [(SMALL, 1), (LARGE, 10)]


# What the least possible price knows of spread constraints, beside the cheapest way to bind a few pods in some order (brute force).

PRICES = {"zone-a": 1.0, "zone-b": 2.0, "zone-c": 4.0}
APPS = ("web", "api", "db")
FULL = ClusterView(nodes=tuple(node(f"full-{zone}", cpu="100m", zone=zone) for zone in PRICES))
"""A node in each zone, with room for none of the pods: spread looks at all three."""


def box(cpu: str = "2") -> InstanceType:
    """A node that costs more in some zones than in others."""
    plain = instance_type("box", cpu=cpu, memory="8Gi", price=1.0, zones=tuple(PRICES), capacity_types=("on-demand",))
    offerings = tuple(replace(item, price=PRICES[item.zone]) for item in plain.offerings)
    return replace(plain, offerings=offerings)


def spread(app: str, *, over: str, skew: int = 1, cpu: str = "1500m", zone: str = "") -> PodShape:
    """A pod of an app that is evenly among the pods of another one."""
    constraint = TopologySpread(ZONE_LABEL, skew, "DoNotSchedule", selects(over))
    plain = shape(cpu, "256Mi", labels={"app": app})
    return replace(plain, topology_spread=(constraint,), node_selector=((ZONE_LABEL, zone),) if zone else ())


def bound(*demands: Demand, pools: tuple[NodePool, ...] = (node_pool(),)) -> float:
    problem = Problem(FULL, pools, (box(),), demands)
    return lower_bound(relaxation_of(solve(problem, Cache()).state), WorkBudget(lambda: math.inf)) or 0.0


def least(*demands: Demand) -> float | None:
    """The price of the cheapest nodes for which there is an order that kube-scheduler would bind all pods in."""
    pods = [group.shape for item in demands for group in item.groups for _ in range(group.count)]
    way = cheapest_way(pods, [], (box(),))
    return None if way is None else way.price


@pytest.mark.parametrize(
    ("apps", "price"),
    [
        # When the last web comes there is one api in its zone. When the last api comes there is one web: so two are elsewhere.
        ((("web", "api", 3), ("api", "web", 3)), 8.0),
        # All web come after the api, but for one.
        ((("web", "api", 4), ("api", "web", 2)), 7.0),
        ((("web", "api", 2), ("api", "db", 2), ("db", "web", 2)), 7.0),
        # Nobody counts web: api come before db, and web after both.
        ((("web", "api", 3), ("api", "db", 3)), 6.0),
    ],
)
def test_of_pods_that_count_for_each_other_not_all_can_come_first(
    apps: tuple[tuple[str, str, int], ...], price: float
) -> None:
    demands = [demand(f"{app}-pods", count=count, pod_shape=spread(app, over=counted)) for app, counted, count in apps]

    assert bound(*demands) == pytest.approx(price)
    assert least(*demands) == price


def test_pods_on_nodes_that_a_constraint_does_not_look_at_are_not_in_its_way() -> None:
    """On tainted nodes api come first, and do not count for web, which all come to the same zone after them."""
    web, api = (
        replace(item, topology_spread=(replace(item.topology_spread[0], node_taints_policy="Honor"),))
        for item in (spread("web", over="api"), spread("api", over="web"))
    )
    tolerating = replace(api, tolerations=(Toleration("dedicated", "Equal", "api", "NoSchedule"),))
    pools = (node_pool(), node_pool("dedicated", taints=(Taint("dedicated", "api", "NoSchedule"),)))

    assert bound(demand("web", pod_shape=web), demand("api", pod_shape=api), pools=pools) == pytest.approx(8.0)
    assert bound(demand("web", pod_shape=web), demand("api", pod_shape=tolerating), pools=pools) == pytest.approx(6.0)


@st.composite
def spread_pods(draw: st.DrawFn) -> tuple[Demand, ...]:
    """Up to six pods, most of which count for others."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4).filter(lambda sizes: sum(sizes) <= 6))
    return tuple(
        demand(
            f"demand-{number}",
            count=count,
            pod_shape=spread(
                draw(st.sampled_from(APPS)),
                over=draw(st.sampled_from(APPS)),
                skew=draw(st.sampled_from((1, 1, 2))),
                cpu=draw(st.sampled_from(("1500m", "1500m", "900m"))),
                zone=draw(st.sampled_from(("", "", "", "zone-b"))),
            ),
        )
        for number, count in enumerate(sizes)
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(demands=spread_pods(), few=st.sampled_from((0, 10)))
def test_no_pods_that_can_be_bound_in_some_order_cost_less_than_the_bound(
    demands: tuple[Demand, ...], few: int
) -> None:
    cheapest = least(*demands)
    assume(cheapest is not None)
    assert cheapest is not None

    with patch("reconciler.optimizer.bound._FEW_CONSTRAINTS", few):
        assert bound(*demands) <= cheapest + 1e-6
