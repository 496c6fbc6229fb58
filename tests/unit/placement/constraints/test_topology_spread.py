"""Chunks that spread refuses in their turn, and that may come once more nodes are there or more counts on them: found a place in
the same pass, and not only in the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, ZONE_LABEL, NodePool
from reconciler.model.placement import Placement
from reconciler.model.pods import PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector
from reconciler.model.view import ClusterView
from reconciler.placement.loops import kernel
from reconciler.placement.loops.kernel import Kernel
from tests.builders import demand, instance_type, node, node_pool, one_of, pod, shape, spread, web
from tests.unit.placement.worlds import World, carried_out, placed_with

ZONES = ("zone-a", "zone-b", "zone-c")
TYPES = (
    instance_type("small", cpu="2", price=0.1, zones=ZONES, capacity_types=("on-demand", "spot")),
    instance_type("large", cpu="8", price=0.36, zones=ZONES, capacity_types=("on-demand", "spot")),
)


def web_pod(cpu: str, *constraints: TopologySpread, **selector: str) -> PodShape:
    return web(cpu, node_selector=selector, topology_spread=constraints)


def world(*demands: Demand, view: ClusterView = ClusterView(), pools: Sequence[NodePool]) -> World:  # noqa: B008 - immutable
    return World(view, tuple(pools), TYPES, demands)


def missing(placement: Placement) -> dict[str, int]:
    found: Counter[str] = Counter()
    for item in placement.unplaced:
        found[item.demand.name] += item.count
    return dict(found)


def held(placement: Placement, name: str = "web") -> list[int]:
    """How many chunks of a demand each bin holds that holds any, fewest first."""
    holdings = [*(item.holdings for item in placement.occupied), *(item.holdings for item in placement.planned)]
    counts = [sum(holding.count for holding in each if holding.demand.name == name) for each in holdings]
    return sorted(count for count in counts if count)


def again(asked: World, first: Placement) -> Placement:
    return carried_out(asked, first).placed_rightly()


def limited(nodes: int, name: str = "general", **others: object) -> NodePool:
    return node_pool(name, limits={"nodes": str(nodes)}, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize("loops", [kernel.plain(), kernel.compiled()])
def test_nodes_of_a_pool_at_its_limit_hold_as_many_as_if_they_were_there(loops: Kernel) -> None:
    """A node yet to come would be the emptiest; where none can come, those that are planned are."""
    asked = world(demand(count=8, pod_shape=web_pod("500m", spread(HOSTNAME_LABEL))), pools=[limited(3)])

    first = placed_with(loops, asked)

    assert asked.broken_rules(first) == ()
    assert (missing(first), held(first)) == ({}, [2, 3, 3])
    assert (again(asked, first).planned, held(again(asked, first))) == ((), [2, 3, 3])


def evenly(count: int, name: str = "web", **fields: Any) -> Demand:
    """Chunks of half a CPU, spread over hosts."""
    return demand(name, count=count, pod_shape=web("500m", topology_spread=(spread(HOSTNAME_LABEL),)), **fields)


TIGHT = ClusterView(nodes=(node("tight", cpu="900m", memory="1Gi"),))
OF_FOUR_DOMAINS = demand(count=8, pod_shape=web_pod("500m", spread(HOSTNAME_LABEL, min_domains=4)))
OVER_BOTH = demand(count=5, pod_shape=web_pod("100m", spread(ZONE_LABEL), spread(HOSTNAME_LABEL)))
TWO_ZONES = ClusterView(
    nodes=(node("one", zone="zone-b"), node("two", zone="zone-c")),
    pods=(pod("first", node="one", pod_shape=web_pod("100m")),),
)
NEARLY_FULL = ClusterView(nodes=(node("one"), node("two"), node("tight", cpu="200m", zone="zone-c")))
IN_C = demand("later", count=1, pod_shape=web_pod("100m", **{ZONE_LABEL: "zone-c"}))
OF_TWO_SIZES = tuple(
    ChunkGroup(web_pod(cpu, spread(HOSTNAME_LABEL)), count) for cpu, count in (("1500m", 3), ("100m", 5))
)
ANYONE = spread(ZONE_LABEL, selector=LabelSelector(), node_affinity_policy="Ignore")
EACH_ZONE = ClusterView(nodes=tuple(node(f"node-{zone[-1]}", zone=zone) for zone in ZONES))
CASES: dict[str, tuple[World, dict[str, int], list[int]]] = {
    "no more than maxSkew while another node can be made": (world(evenly(8), pools=[limited(8)]), {}, [1] * 8),
    "maxSkew on each of nodes that are too few for minDomains": (
        world(OF_FOUR_DOMAINS, pools=[limited(3)]), {"web": 5}, [1, 1, 1]
    ),
    "a node that holds no more holds back the others": (
        world(evenly(9), view=TIGHT, pools=[limited(3)]), {"web": 4}, [1, 2, 2]
    ),
    "all or nothing comes with more than maxSkew on each node": (
        world(evenly(8, whole=True), pools=[limited(3)]), {}, [2, 3, 3]
    ),
    "over zones and hosts each round lets one more come to one zone, and then to the other": (
        world(OVER_BOTH, view=TWO_ZONES, pools=[limited(2)]), {}, [2, 3]
    ),
    "a node that is nearly full holds back the others": (
        world(evenly(12), view=NEARLY_FULL, pools=()), {"web": 10}, [1, 1]
    ),
    "until somebody else counts there": (world(evenly(12), IN_C, view=NEARLY_FULL, pools=()), {"web": 8}, [2, 2]),
    "groups of one demand count for each other": (
        world(demand(groups=OF_TWO_SIZES, desired=8), pools=[limited(2)]), {}, [4, 4]
    ),
    "an empty selector counts no pods, as in kube-scheduler": (
        world(demand(count=3, pod_shape=web_pod("1", ANYONE, **{ZONE_LABEL: "zone-a"})), view=EACH_ZONE, pools=()), {}, [3]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "without", "on"), CASES.values(), ids=CASES)
def test_how_many_each_node_holds(asked: World, without: dict[str, int], on: list[int]) -> None:
    placement = asked.placed_rightly()

    assert (missing(placement), held(placement)) == (without, on)


def test_a_node_that_others_bring_is_empty_only_until_they_come() -> None:
    """It unbalances what is on the other nodes if these hold five each, and does not if they hold two."""
    nodes = (node("one", cpu="30"), node("two", cpu="30"))
    spread_out = demand("a", count=10, pod_shape=web_pod("5", spread(HOSTNAME_LABEL)))
    small = demand("b", count=1, pod_shape=web_pod("100m", team="red"))
    team = node_pool("team", limits={"cpu": "4"}, requirements=(one_of("team", "red"),))
    asked = world(spread_out, small, view=ClusterView(nodes=nodes), pools=[team])

    first = asked.placed_rightly()

    assert (missing(first), held(first, "a"), len(first.planned)) == ({"a": 6}, [2, 2], 1)
    assert missing(again(asked, first)) == {"a": 6}


def test_a_zone_that_found_no_room_is_asked_again_once_another_takes_less() -> None:
    """With two nodes for three zones and minDomains 3 each zone may hold one chunk: not both nodes in the first zone, and then one
    chunk."""
    first = world(
        demand(count=12, pod_shape=web_pod("5", spread(ZONE_LABEL, min_domains=3))), pools=[limited(2)]
    ).placed_rightly()

    assert (missing(first), [item.zones for item in first.planned]) == ({"web": 10}, [("zone-a",), ("zone-b",)])


def test_what_counts_and_came_later_makes_nobody_leave() -> None:
    """They can stay in the order in which they came, and in that of their names they cannot."""
    spread_out = demand("b", count=3, pod_shape=web_pod("1", spread(HOSTNAME_LABEL)))
    others = [demand(name, count=1, pod_shape=web_pod("100m", **{ZONE_LABEL: "zone-a"})) for name in "acdef"]
    in_vain = demand("g", count=1, pod_shape=shape("100"))
    nodes = tuple(node(f"node-{zone}", zone=zone) for zone in ZONES)
    alone = world(spread_out, view=ClusterView(nodes=nodes), pools=())
    with_first = carried_out(alone, alone.placed_rightly())
    asked = replace(with_first, demands=(replace(spread_out, priority=5), *others, in_vain))
    with_all = replace(carried_out(asked, asked.placed_rightly()), demands=(spread_out, *others, in_vain))

    there = with_all.placed_rightly()

    assert (missing(there), held(there, "b")) == ({"g": 1}, [1, 1, 1])


def test_chunks_stay_beside_what_counts_and_is_of_a_lower_priority() -> None:
    """A node that only such a chunk is on would be the emptiest without it."""
    nodes = (node("one"), node("two", cpu="200m", zone="zone-b"))
    spread_out = demand("a", count=12, pod_shape=web_pod("1", spread(HOSTNAME_LABEL)), priority=5)
    others = demand("b", count=1, pod_shape=web_pod("100m", **{ZONE_LABEL: "zone-b"}))
    asked = world(spread_out, others, view=ClusterView(nodes=nodes), pools=())

    first = asked.placed_rightly()

    assert (missing(first), held(first, "a")) == ({"a": 10}, [2])
    assert again(asked, first) == first


def test_a_node_claim_is_looked_at_whatever_it_comes_up_as() -> None:
    """It is sure to have a capacity type, spot or not: so it is a host that counts."""
    other = demand("a", count=1, pod_shape=shape("1500m", labels={"app": "other"}), priority=5)
    both = (spread(CAPACITY_TYPE_LABEL, 5), spread(HOSTNAME_LABEL))
    asked = world(other, pools=[limited(1), limited(1, "second", weight=-1)])
    on_its_way = carried_out(asked, asked.placed_rightly())
    assert any(
        need.key == CAPACITY_TYPE_LABEL and len(need.values) == 2
        for claim in on_its_way.view.node_claims
        for need in claim.requirements
    )
    asked = replace(on_its_way, demands=(other, demand("b", count=4, pod_shape=web_pod("1", *both))))

    assert held(asked.placed_rightly(), "b") == [1]


def test_a_node_that_may_come_to_be_out_of_sight_is_no_domain_to_rely_on() -> None:
    """The pool lets it be of either team; the constraint looks at nodes of one."""
    pool = limited(3, requirements=(one_of("team", "blue", "red"),))
    others = demand("a", count=1, pod_shape=web_pod("7500m"), priority=5)
    constraint = spread(HOSTNAME_LABEL, min_domains=3)
    asked = world(others, demand("b", count=4, pod_shape=web_pod("1500m", constraint, team="red")), pools=[pool])

    first = asked.placed_rightly()

    assert (missing(first), held(first, "b")) == ({"b": 2}, [1, 1])
    assert missing(again(asked, first)) == {"b": 2}


def test_what_is_still_refused_is_refused_for_what_is_so_in_the_end() -> None:
    asked = world(demand(count=20, pod_shape=web_pod("1", spread(HOSTNAME_LABEL))), pools=[limited(2)])

    first = asked.placed_rightly()

    assert held(first) == [7, 7]
    assert [reason.example for reason in first.unplaced[0].reasons] == ["NodePool general is at its nodes limit of 2"]
    later = again(asked, first)
    assert {reason.cause for reason in later.unplaced[0].reasons} == {"NodePool limit", "node full"}


def test_few_chunks_too_share_the_last_node() -> None:
    """The zone that holds all of them is found by looking at every way, each with one more host that never comes."""
    sold = (
        instance_type("small", cpu="4", price=0.1, zones=ZONES[:1]),
        instance_type("large", cpu="8", price=0.36, zones=ZONES[1:]),
    )
    zonal = shape("3", labels={"app": "api"}, topology_spread=(spread(ZONE_LABEL),))
    asked = world(
        demand("a", count=1, pod_shape=zonal, priority=5),
        demand("b", count=3, pod_shape=web_pod("1", spread(HOSTNAME_LABEL))),
        pools=[limited(1)],
    )

    assert held(replace(asked, instance_types=sold).placed_rightly(), "b") == [3]
