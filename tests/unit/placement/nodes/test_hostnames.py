"""Rules by kubernetes.io/hostname on nodes that share a value of it, or have none: the label decides, not the node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.demand import Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from reconciler.model.placement import OccupiedBin, Placement
from reconciler.model.pods import NodeSelectorTerm, PodAffinityTerm, PodShape, TopologySpread
from reconciler.model.requirements import LabelSelector, Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.nodes.existing import hostnames_of
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.builders import demand, instance_type, node, node_pool, pod, shape
from tests.unit.placement.worlds import TAINT, TOLERATION, World, carried_out, with_hostname

POOLS, TYPES = (node_pool(),), (instance_type(),)
WEB = LabelSelector((("app", "web"),))
NEAR_WEB = (PodAffinityTerm(HOSTNAME_LABEL, WEB),)


def web(cpu: str = "100m", **rules: object) -> PodShape:
    return replace(shape(cpu, "64Mi", labels={"app": "web"}), **rules)  # type: ignore[arg-type]


def api(cpu: str = "100m", **rules: object) -> PodShape:
    return replace(web(cpu, **rules), labels=(("app", "api"),))


def spread(max_skew: int = 1, min_domains: int | None = None, key: str = HOSTNAME_LABEL) -> tuple[TopologySpread, ...]:
    return (TopologySpread(key, max_skew, "DoNotSchedule", WEB, min_domains),)


def there(name: str, hostname: str | None = "same", cpu: str = "4") -> Node:
    return with_hostname(node(name, cpu=cpu), hostname)


def cluster(*nodes: Node, **bound: PodShape) -> ClusterView:
    """bound: by node a pod that runs there."""
    return ClusterView(
        nodes=nodes,
        pods=tuple(pod(f"on-{name}", node=name, pod_shape=pod_shape) for name, pod_shape in bound.items()),
    )


def broken(view: ClusterView, placement: Placement, *demands: Demand) -> tuple[str, ...]:
    return violations(Problem(view, POOLS, TYPES, demands), placement)


def placed(view: ClusterView, *demands: Demand) -> tuple[dict[str, int], int]:
    """Chunks by node that is there, and how many nodes are made; none of these waits for a place."""
    placement = place(Problem(view, POOLS, TYPES, demands))
    assert broken(view, placement, *demands) == ()
    assert placement.unplaced == ()
    found = {item.node or "": sum(holding.count for holding in item.holdings) for item in placement.occupied}
    return found, len(placement.planned)


def as_if_apart(view: ClusterView, *demands: Demand) -> tuple[str, ...]:
    """What the checker says of the placement that the same nodes with hostnames of their own would have."""
    apart = replace(view, nodes=tuple(with_hostname(item, item.name) for item in view.nodes))
    placement = place(Problem(apart, POOLS, TYPES, demands))
    assert broken(apart, placement, *demands) == ()
    return broken(view, placement, *demands)


SHARED = (there("n1"), there("n2"))
UNLABELLED = there("n2", None)


def test_who_keeps_off_a_pod_keeps_off_every_node_of_its_host() -> None:
    view = cluster(*SHARED, n1=web())
    away = demand(count=1, pod_shape=api(pod_anti_affinity=NEAR_WEB))

    assert placed(view, away) == ({}, 1)
    assert as_if_apart(view, away) == ("n2: anti-affinity by kubernetes.io/hostname is broken",)


def test_a_pod_that_runs_keeps_others_off_every_node_of_its_host() -> None:
    view = cluster(*SHARED, n1=api(pod_anti_affinity=NEAR_WEB))
    kept_off = demand(count=1, pod_shape=web())

    assert placed(view, kept_off) == ({}, 1)
    assert as_if_apart(view, kept_off) == ("n1: anti-affinity by kubernetes.io/hostname is broken",)


def test_one_chunk_of_those_that_keep_each_other_off_goes_to_a_host() -> None:
    alone = demand(count=3, pod_shape=web(pod_anti_affinity=NEAR_WEB))
    view = cluster(*SHARED, there("n3", "n3"))

    on_nodes, made = placed(view, alone)

    assert (on_nodes["n3"], sum(on_nodes.values()), made) == (1, 2, 1)
    assert as_if_apart(view, alone) != ()


def test_what_counts_on_any_node_of_a_host_counts_in_its_spread() -> None:
    """Six over two hosts are three and three, as kube-scheduler has it; by node they would be two on each of three."""
    view = cluster(*SHARED, there("n3", "n3"))
    even = demand(count=6, pod_shape=web(topology_spread=spread()))

    on_nodes, made = placed(view, even)

    assert (on_nodes["n3"], sum(on_nodes.values()), made) == (3, 6, 0)
    assert as_if_apart(view, even) == ("spread over kubernetes.io/hostname exceeds maxSkew 1",)


def test_chunks_of_one_share_fill_one_node_of_a_host_after_the_other() -> None:
    """Each holds one; the other host may have two more than the least."""
    view = cluster(there("n1", cpu="1"), there("n2", cpu="1"), there("n3", "n3", cpu="2"))
    even = replace(demand(count=4, pod_shape=web("1", topology_spread=spread())), opens_nodes=False)

    assert placed(view, even) == ({"n1": 1, "n2": 1, "n3": 2}, 0)


def test_two_nodes_of_one_host_are_one_domain() -> None:
    """Of three hosts that are asked for two are there, so that the least counts as none and each takes one."""
    view = cluster(*SHARED, there("n3", "n3"))
    pods = replace(demand(count=3, pod_shape=web(topology_spread=spread(min_domains=3))), opens_nodes=False)

    placement = place(Problem(view, POOLS, TYPES, (pods,)))

    assert sum(item.count for item in placement.unplaced) == 1
    assert "minDomains 3, 2 nodes are there" in " ".join(
        reason.example for item in placement.unplaced for reason in item.reasons
    )


def test_company_next_door_on_the_same_host_will_do() -> None:
    """n1 is full."""
    view = cluster(there("n1", cpu="1"), there("n2"), n1=web("1"))

    assert placed(view, demand(count=2, pod_shape=api(pod_affinity=NEAR_WEB))) == ({"n2": 2}, 0)


@pytest.mark.parametrize(
    ("count", "cpu", "third", "where"),
    [(4, "1", "3", {"n1": 2, "n2": 2}), (14, "250m", "1", {"n1": 8, "n2": 6})],
    ids=["few, every way looked at", "many"],
)
def test_pods_that_want_each_others_company_share_a_host_over_its_nodes(
    count: int, cpu: str, third: str, where: dict[str, int]
) -> None:
    view = cluster(there("n1", cpu="2"), there("n2", cpu="2"), there("n3", "n3", cpu=third))
    close = replace(demand(count=count, pod_shape=web(cpu, pod_affinity=NEAR_WEB)), opens_nodes=False, whole=True)

    assert placed(view, close) == (where, 0)


def test_chunks_that_come_when_it_suits_upset_no_spread_from_next_door() -> None:
    """Five without a rule on n1 count in the host of the one that spreads, on n2, and may come after it. n3 stays empty."""
    view = cluster(with_hostname(node("n1", taints=(TAINT,)), "same"), there("n2"), node("n3", taints=(TAINT,)))
    even = demand("even", count=1, pod_shape=web(topology_spread=spread()), priority=5)
    there_only = (NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("n1",)),)),)
    loose = demand("loose", count=5, pod_shape=web(required_node_terms=there_only, tolerations=(TOLERATION,)))

    assert placed(view, even, loose) == ({"n1": 5, "n2": 1}, 0)


@pytest.mark.parametrize(
    "rules",
    [{"topology_spread": spread()}, {"pod_affinity": NEAR_WEB}],
    ids=["spread", "affinity, the first of its kind"],
)
def test_a_node_without_the_label_takes_no_pod_that_needs_it(rules: dict[str, Any]) -> None:
    view = cluster(UNLABELLED)
    asked = demand(count=1, pod_shape=web(**rules))

    assert placed(view, asked) == ({}, 1)
    assert as_if_apart(view, asked) != ()


def test_a_node_without_the_label_is_seen_by_no_constraint_of_a_pod_that_needs_it() -> None:
    """Both constraints need their labels: what runs on n2 counts in none of them, its zone's included."""
    view = cluster(there("n1", "n1"), UNLABELLED, n2=web())
    both = demand(count=2, pod_shape=web(topology_spread=(*spread(2), *spread(2, key=ZONE_LABEL))))

    assert placed(view, replace(both, opens_nodes=False)) == ({"n1": 2}, 0)


def test_a_node_without_the_label_is_no_host_to_spread_over() -> None:
    """It would be the emptiest one for ever."""
    view = cluster(there("n1", "n1"), UNLABELLED)
    pods = (demand(name, count=2, pod_shape=web(topology_spread=spread())) for name in ("one", "other"))

    assert placed(view, *(replace(item, opens_nodes=False) for item in pods)) == ({"n1": 4}, 0)


def test_anti_affinity_does_not_see_a_node_without_the_label() -> None:
    """kube-scheduler lets all of them in there."""
    view = cluster(UNLABELLED, n2=web())

    assert placed(view, demand(count=3, pod_shape=web(pod_anti_affinity=NEAR_WEB))) == ({"n2": 3}, 0)


def test_company_on_a_node_without_the_label_is_none() -> None:
    """Nor does it keep the first of its kind from starting elsewhere."""
    view = cluster(there("n1", "n1"), UNLABELLED, n2=web())

    assert placed(view, demand(count=2, pod_shape=web(pod_affinity=NEAR_WEB))) == ({"n1": 2}, 0)


@pytest.mark.parametrize(
    ("operator", "nodes"),
    [(Operator.IN, {"n1"}), (Operator.NOT_IN, {"n2", "n3"}), (Operator.DOES_NOT_EXIST, {"n2"})],
)
def test_node_affinity_by_hostname_goes_by_the_label(operator: Operator, nodes: set[str]) -> None:
    """n1 carries the name of n3, n2 none, n3 its own label's value."""
    view = cluster(there("n1", "n3"), UNLABELLED, there("n3", "other"))
    values = () if operator is Operator.DOES_NOT_EXIST else ("n3",)
    terms = (NodeSelectorTerm((Requirement(HOSTNAME_LABEL, operator, values),)),)
    for name in ("n1", "n2", "n3"):
        others = tuple(item for item in view.nodes if item.name == name)
        asked = replace(demand(count=1, pod_shape=web(required_node_terms=terms)), opens_nodes=False)
        placement = place(Problem(replace(view, nodes=others), POOLS, TYPES, (asked,)))
        assert (placement.unplaced == ()) == (name in nodes), name


def test_chunks_stay_on_a_host_that_two_nodes_share() -> None:

    view = cluster(*SHARED, there("n3", "n3"))
    even = demand(count=6, pod_shape=web(topology_spread=spread()))
    first = place(Problem(view, POOLS, TYPES, (even,)))
    after = carried_out(World(view, POOLS, TYPES, (even,)), first)

    again = place(Problem(after.view, POOLS, TYPES, (even,)))

    assert [(item.node, item.holdings) for item in again.occupied] == [
        (item.node, item.holdings) for item in first.occupied
    ]


def test_nodes_without_the_label_are_told_of_where_a_rule_goes_by_it() -> None:
    view = cluster(there("n1", "n1"), UNLABELLED)
    spreading = place(Problem(view, POOLS, TYPES, (demand(pod_shape=web(topology_spread=spread())),)))
    plain = place(Problem(view, POOLS, TYPES, (demand(pod_shape=web()),)))

    (sentence,) = spreading.assumptions
    assert sentence == (
        "1 node is without label kubernetes.io/hostname: spread and affinity by it keep pods off, anti-affinity by it does not, "
        "as with kube-scheduler"
    )
    assert plain.assumptions == ()


def test_the_checker_sees_a_chunk_on_a_node_without_the_label() -> None:
    asked = demand(count=1, pod_shape=web(topology_spread=spread()))
    own = cluster(there("n2", "n2"))
    placement = place(Problem(own, POOLS, TYPES, (asked,)))
    assert [type(item) for item in placement.occupied] == [OccupiedBin]

    assert broken(cluster(UNLABELLED), placement, asked) == (
        "spread over kubernetes.io/hostname: n2 is without that label",
    )


def test_nodes_of_one_name_share_what_is_known_of_them() -> None:
    """All of a cluster's nodes may carry one name: what is kept for each must not grow with their number."""
    sharing = hostnames_of([{HOSTNAME_LABEL: "a"}] * 500, 500).sharing
    assert len({id(alike) for alike in sharing.values()}) == 1
    assert len(sharing) == 500
