"""Where the embedded cluster's pods land, and where they may not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.fakes.embedded import Document, Sandbox, workload

ZONE = "topology.kubernetes.io/zone"
TAINT = {"key": "team", "value": "shop", "effect": "NoSchedule"}


def two_zones() -> Sandbox:
    """Two small nodes in zone-a and one in zone-b; each holds three pods of 500m."""
    sandbox = Sandbox()
    sandbox.add_node("a1", zones=["zone-a"])
    sandbox.add_node("a2", zones=["zone-a"])
    sandbox.add_node("b1", zones=["zone-b"])
    return sandbox


def bound(sandbox: Sandbox) -> Counter[str | None]:
    """Node → pods; None counts the pending ones."""
    return Counter(sandbox.where().values())


def test_pods_are_bound_to_the_emptiest_node_first() -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload(replicas=3))
    assert bound(sandbox) == {"node-a1": 1, "node-a2": 1, "node-b1": 1}
    assert {pod.phase for pod in sandbox.cluster.view().pods} == {"Running"}


def test_what_does_not_fit_stays_pending_with_one_event_and_is_bound_when_there_is_room() -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload(replicas=4, cpu="1500m"))
    assert bound(sandbox)[None] == 1
    assert sandbox.reasons() == ["FailedScheduling"]
    sandbox.add_node("b2")
    assert bound(sandbox)[None] == 0


def test_higher_priority_goes_first() -> None:
    sandbox = Sandbox()
    sandbox.cluster.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    )
    sandbox.cluster.apply(workload("batch", cpu="1500m"))
    sandbox.cluster.apply(workload("web", cpu="1500m", priorityClassName="high"))
    sandbox.add_node("a")
    assert {name.partition("-")[0]: node for name, node in sandbox.where().items()} == {"batch": None, "web": "node-a"}


@pytest.mark.parametrize(
    ("pod_spec", "nodes"),
    [
        ({"nodeSelector": {ZONE: "zone-b"}}, {"node-b1"}),
        ({"nodeSelector": {ZONE: "zone-c"}}, {None}),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["zone-a"]}]},
                                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a2"]}]},
                            ]
                        }
                    }
                }
            },
            {"node-a2", "node-b1"},
        ),
    ],
)
def test_selectors_and_affinity_say_which_nodes_will_do(pod_spec: Document, nodes: set[str | None]) -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload(replicas=2, **pod_spec))
    assert set(sandbox.where().values()) == nodes


@pytest.mark.parametrize(
    ("tolerations", "node"),
    [
        ([], None),
        ([{"key": "team", "operator": "Equal", "value": "shop", "effect": "NoSchedule"}], "node-a"),
        ([{"key": "team", "operator": "Equal", "value": "other"}], None),
        ([{"operator": "Exists"}], "node-a"),
    ],
)
def test_a_tainted_node_takes_only_what_tolerates_it(tolerations: list[Document], node: str | None) -> None:
    sandbox = Sandbox()
    sandbox.add_node("a", taints=[TAINT])
    sandbox.cluster.apply(workload(tolerations=tolerations))
    assert list(sandbox.where().values()) == [node]


def test_two_pods_with_one_host_port_are_on_two_nodes() -> None:
    sandbox = two_zones()
    ports = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    sandbox.cluster.apply(workload(replicas=4, cpu="100m", container=ports))
    assert bound(sandbox) == {"node-a1": 1, "node-a2": 1, "node-b1": 1, None: 1}


def spread(key: str, skew: int = 1, **more: Any) -> Document:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
                **more,
            }
        ]
    }


def test_hard_spread_over_zones_leaves_pods_pending_rather_than_lopsided() -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload(replicas=8, **spread(ZONE)))
    counts = bound(sandbox)
    assert (counts["node-a1"] + counts["node-a2"], counts["node-b1"], counts[None]) == (4, 3, 1)


def anti_affinity(key: str, app: str = "web") -> Document:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def affinity(key: str, app: str) -> Document:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_a_pod_stays_away_from_one_that_wants_it_away() -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload("shy", nodeSelector={ZONE: "zone-a"}, **anti_affinity(ZONE, app="web")))
    sandbox.cluster.apply(workload("web", replicas=2, cpu="100m"))
    assert {node for name, node in sandbox.where().items() if name.startswith("web")} == {"node-b1"}


def test_a_pod_follows_the_one_it_wants_to_be_near_and_waits_for_it() -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload("cache", replicas=2, cpu="100m", **affinity(ZONE, "web")))
    assert bound(sandbox) == {None: 2}
    sandbox.cluster.apply(workload("web", nodeSelector={ZONE: "zone-b"}))
    assert set(sandbox.where().values()) == {"node-b1"}


def test_gated_pods_and_those_of_another_scheduler_are_left_alone() -> None:
    sandbox = two_zones()
    sandbox.cluster.apply(workload("gated", schedulingGates=[{"name": "wait"}]))
    sandbox.cluster.apply(workload("other", schedulerName="other"))
    assert bound(sandbox) == {None: 2}
    assert sandbox.reasons() == []
