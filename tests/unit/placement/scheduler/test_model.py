"""Where kube-scheduler's model binds pods, one score or filter at a time. `tests/e2e/test_scheduler_model.py` has the real one beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL, Node
from reconciler.model.pods import HostPort, NodeSelectorTerm, Pod, PodShape, PreferredNodeTerm, WeightedPodAffinityTerm
from reconciler.model.requirements import LabelSelector, Taint, Toleration
from reconciler.placement.scheduler.model import PodKind, SchedulerModel, kind_of, queue_order
from tests.builders import node, one_of, pod, spread, term, web
from tests.properties.scheduling_worlds import choices

HELD = Taint("held", "", "PreferNoSchedule")
BY_ZONE = term(ZONE_LABEL)
BY_HOST = term(HOSTNAME_LABEL)


def other(cpu: str = "100m", memory: str = "64Mi", **more: Any) -> PodShape:
    return web(cpu, memory, labels={"app": "other"}, **more)


def best(nodes: Sequence[Node], running: Sequence[Pod], kind: PodKind) -> set[str]:
    """The names of the nodes of which kube-scheduler takes any."""
    model = SchedulerModel(nodes, running, [kind], {})
    return {model.nodes[row].name for row in choices(model, 0)}


A, B, C = node("a", zone="zone-a"), node("b", zone="zone-b"), node("c", zone="zone-b")
BARE = replace(A, name="bare", labels=tuple(label for label in A.labels if label[0] != ZONE_LABEL))
RED = node("red", labels={"team": "red"})
LIKES_RED = PreferredNodeTerm(1, NodeSelectorTerm((one_of("team", "red"),)))


@pytest.mark.parametrize(
    ("why", "nodes", "running", "kind", "where"),
    [
        ("the emptiest node", [A, B], [pod(node="a", pod_shape=other("1"))], PodKind(web()), {"b"}),
        ("any of equal ones", [A, B], [], PodKind(web()), {"a", "b"}),
        ("where CPU and memory come into balance, of nodes equally full", [A, B],
         [pod("x", node="a", pod_shape=other("2", "1Gi")), pod("y", node="b", pod_shape=other("250m", "8Gi"))],
         PodKind(web("250m", "4Gi")), {"a"}),
        ("a full node rather than one with a taint to avoid", [A, replace(B, taints=(HELD,))],
         [pod(node="a", pod_shape=other("3", "12Gi"))], PodKind(web()), {"a"}),
        ("a taint that is tolerated is not avoided", [A, replace(B, taints=(HELD,))],
         [pod(node="a", pod_shape=other("3", "12Gi"))], PodKind(web(tolerations=(Toleration("held", "Exists"),))),
         {"b"}),
        ("the node that is preferred", [A, RED], [pod(node="red", pod_shape=other("2"))],
         PodKind(web(preferred_node_terms=(LIKES_RED,))), {"red"}),
        ("the zone with fewer of them, although its node is fuller", [A, B],
         [pod("x", node="a", pod_shape=web()), pod("y", node="b", pod_shape=other("2"))],
         PodKind(web(topology_spread=(spread(ZONE_LABEL, when_unsatisfiable="ScheduleAnyway"),))), {"b"}),
        ("pods of a ReplicaSet without constraints are spread too", [A, B],
         [pod("x", node="a", pod_shape=web()), pod("y", node="b", pod_shape=other("1"))],
         PodKind(web(), by_default=True), {"b"}),
        ("others without constraints are not", [A, B],
         [pod("x", node="a", pod_shape=web()), pod("y", node="b", pod_shape=other("1"))], PodKind(web()), {"a"}),
        ("near pods that it prefers", [A, B, C], [pod(node="b", pod_shape=web("2"))],
         PodKind(other(preferred_pod_affinity=(WeightedPodAffinityTerm(10, BY_ZONE),))), {"c"}),
        ("far from pods that it avoids", [A, B],
         [pod("x", node="b", pod_shape=web()), pod("y", node="a", pod_shape=other("2"))],
         PodKind(other(preferred_pod_anti_affinity=(WeightedPodAffinityTerm(10, BY_HOST),))), {"a"}),
        ("near pods whose required affinity selects it", [A, B, C],
         [pod(node="b", pod_shape=other("2", pod_affinity=(BY_ZONE,)))], PodKind(web()), {"c"}),
        (
            "far from pods that would rather be without it",
            [A, B],
            [
                pod("x", node="b", pod_shape=other(preferred_pod_anti_affinity=(WeightedPodAffinityTerm(1, BY_HOST),))),
                pod("y", node="a", pod_shape=other("2")),
            ],
            PodKind(web()),
            {"a"},
        ),
        ("a pod that is being deleted does not count for spread", [A, B],
         [pod(node="a", pod_shape=web("2"), deleting=True), pod("y", node="b", pod_shape=other("3"))],
         PodKind(web(topology_spread=(spread(ZONE_LABEL),))), {"a"}),
        ("it does for anti-affinity", [A, B],
         [pod(node="a", pod_shape=web(), deleting=True), pod("y", node="b", pod_shape=other("3"))],
         PodKind(other(pod_anti_affinity=(BY_HOST,))), {"b"}),
        ("an empty selector of a spread constraint counts nothing", [A, B],
         [pod("x", node="a", pod_shape=web()), pod("y", node="b", pod_shape=other("2"))],
         PodKind(web(topology_spread=(spread(ZONE_LABEL, selector=LabelSelector()),))), {"a"}),
        ("no node without the label that spread goes by", [BARE, B], [],
         PodKind(web(topology_spread=(spread(ZONE_LABEL),))), {"b"}),
        ("a node without the label that anti-affinity goes by", [BARE, B], [pod(node="b", pod_shape=web())],
         PodKind(other(pod_anti_affinity=(BY_ZONE,))), {"bare"}),
        ("none without the label of affinity, not even the first", [BARE], [], PodKind(web(pod_affinity=(BY_ZONE,))),
         set()),
        ("a host port that is free", [A, B], [pod(node="a", pod_shape=other(host_ports=(HostPort(80),)))],
         PodKind(web(host_ports=(HostPort(80, "TCP", "10.0.0.1"),))), {"b"}),
        ("a cordoned node where that is tolerated", [replace(A, unschedulable=True)], [],
         PodKind(web(tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),))), {"a"}),
    ],
)  # fmt: skip
def test_a_pod_is_bound_to(
    why: str, nodes: Sequence[Node], running: Sequence[Pod], kind: PodKind, where: set[str]
) -> None:
    assert best(nodes, running, kind) == where, why


def test_a_pod_waits_where_each_node_is_ruled_out_by_another_rule() -> None:
    nodes = [
        node("cordoned", unschedulable=True),
        node("tainted", taints=[Taint("team", "shop", "NoSchedule")]),
        *(node("elsewhere", zone="zone-b"), node("full", cpu="1"), node("taken"), node("near")),
    ]
    asking = web("2", node_selector={ZONE_LABEL: "zone-a"}, host_ports=(HostPort(80),), pod_anti_affinity=(BY_HOST,))
    running = [
        pod("x", node="taken", pod_shape=other(host_ports=(HostPort(80),))),
        pod("y", node="near", pod_shape=web()),
    ]
    model = SchedulerModel(nodes, running, [PodKind(asking)], {})
    assert model.schedule([0]).tolist() == [-1]


def test_pods_come_by_priority_and_then_by_age() -> None:
    noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
    late, early = pod("late", created=noon.replace(hour=13)), pod("early", created=noon)
    urgent = pod("urgent", created=noon.replace(hour=14), priority=10)
    assert sorted([late, urgent, early], key=queue_order) == [urgent, early, late]


@pytest.mark.parametrize(
    ("owner", "spreads"), [("ReplicaSet", True), ("StatefulSet", True), ("Job", False), ("", False)]
)
def test_whose_pods_are_spread_by_default(owner: str, *, spreads: bool) -> None:
    assert kind_of(pod(owner_kind=owner)).by_default == spreads


def test_pods_of_many_kinds_take_turns_with_nothing_left_out() -> None:
    """Two fit on each node; the fifth waits, until the others are taken back."""
    model = SchedulerModel([A, B], [], [PodKind(web("1500m")), PodKind(other("1500m"))], {})
    rows = model.schedule([0, 1, 0, 1, 0]).tolist()
    assert (rows.count(0), rows.count(1), rows[4]) == (2, 2, -1)
    model.take_back()
    assert model.schedule([0]).tolist() != [-1]


@pytest.mark.parametrize(("nodes", "enough"), [(99, 99), (150, 100), (1000, 420), (10_000, 500)])
def test_above_a_hundred_nodes_a_part_of_them_is_enough(nodes: int, enough: int) -> None:
    """All but the last node are a little full. Where it is not looked at, it is not found."""
    many = [node(f"node-{number:05}") for number in range(nodes)]
    running = [pod(f"pod-{item.name}", node=item.name, pod_shape=other()) for item in many]
    for last, found in ((enough - 1, True), (enough, False)):
        others = [item for item in running if item.node_name != many[min(last, nodes - 1)].name]
        model = SchedulerModel(many, others, [PodKind(web())], {}, sampling=True)
        assert (model.schedule([0]).tolist() == [last]) == found
