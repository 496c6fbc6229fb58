"""A pod that preempts beside the real kube-scheduler: the node that it chose is the pod's, and when it is gone the pod waits anew."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.demand.combine import pending_demands
from reconciler.model.view import ClusterView
from reconciler.placement.nodes.machines import with_nominated
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import instance_type, node_pool
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document, condition
from tests.integration.real_cluster import opened

pytestmark = pytest.mark.e2e

SPACE = "preemption"


def pod(name: str, cpu: str, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {
            "containers": [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}],
            "terminationGracePeriodSeconds": 600,
            **spec,
        },
    }


def surroundings() -> list[Document]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000},
        node("a"),
    ]


def node(name: str) -> Document:
    """The API server taints it as not ready, which nobody here takes away but the test."""
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def what_if(plane: ControlPlane, *, pods: int) -> tuple[ClusterView, dict[str, str]]:
    """The cluster as headroom sees it once that many pods are there, and where each that waits would go: "new" for a new node."""
    with opened(plane.kubeconfig()) as cluster:
        eventually(lambda: len(cluster.view().pods) == pods and cluster.view().complete, within=60, what="all is read")
        view = with_nominated(cluster.view())
    placement = place(
        Problem(
            view,
            (node_pool(),),
            (instance_type(cpu="8"),),
            pending_demands(view, include_pending=True),
            options=PlacementOptions(include_pending=True),
        )
    )
    where = {holding.demand.name: item.node or "" for item in placement.occupied for holding in item.holdings}
    return view, where | {holding.demand.name: "new" for item in placement.planned for holding in item.holdings}


def found(plane: ControlPlane, name: str) -> Document:
    return plane.api.get("v1", "Pod", name, namespace=SPACE) or {}


def nominated(plane: ControlPlane) -> str:
    return str(found(plane, "urgent")["status"].get("nominatedNodeName", ""))


def test_the_chosen_node_is_the_pods_until_it_is_gone(plane: ControlPlane) -> None:
    for document in surroundings():
        plane.api.create(document)
    plane.api.patch("v1", "Node", "a", {"spec": {"taints": []}})
    plane.api.create(pod("victim", "3"))
    eventually(lambda: found(plane, "victim")["spec"].get("nodeName"), within=60, what="the victim runs")

    plane.api.create(pod("urgent", "3", priorityClassName="urgent"))
    eventually(lambda: nominated(plane) == "a", within=60, what="kube-scheduler has chosen a node")
    plane.api.create(pod("small", "2"))
    eventually(
        lambda: condition(found(plane, "small"), "PodScheduled") == "False", within=60, what="the small pod was tried"
    )
    view, where = what_if(plane, pods=3)

    assert [(item.name, item.node_name) for item in view.nominated] == [("urgent", "a")]
    assert where == {"small": "new"}

    plane.api.delete("v1", "Node", "a")
    _, where = what_if(plane, pods=3)
    assert where == {"small": "new", "urgent": "new"}
    plane.api.create(node("b"))  # has a taint, but makes the scheduler try again, which it else does after five minutes
    eventually(lambda: not nominated(plane), within=60, what="kube-scheduler has withdrawn the nomination")
