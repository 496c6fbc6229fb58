"""Pods that wait for one volume beside the real kube-scheduler: it takes the others to where the volume of the first is made, and
so do we. The driver's part, making the volume, is played by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.cluster.kubernetes import KubernetesCluster
from reconciler.demand.combine import pending_demands
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document, condition
from tests.e2e.test_real_attachments import SPACE, ZONE, claim, csi_node, disk, named, node, pod, storage_class
from tests.integration.real_cluster import opened

pytestmark = pytest.mark.e2e


def add_node(plane: ControlPlane, name: str, zone: str) -> None:
    plane.api.create(csi_node(name, 5))
    plane.api.create(node(name, zone))
    plane.api.patch("v1", "Node", name, {"spec": {"taints": []}})


def ours(view: ClusterView) -> dict[str, str | None]:
    demands = pending_demands(view, include_pending=False)
    placement = place(Problem(view, (), (), demands))
    assert violations(Problem(view, (), (), demands), placement) == ()
    return {holding.demand.name: item.node for item in placement.occupied for holding in item.holdings}


def bound(plane: ControlPlane) -> dict[str, str]:
    found = plane.api.list("v1", "Pod", namespace=SPACE)
    return {item["metadata"]["name"]: item["spec"]["nodeName"] for item in found if item["spec"].get("nodeName")}


def selected(plane: ControlPlane) -> str:
    found = plane.api.get("v1", "PersistentVolumeClaim", "data", namespace=SPACE) or {}
    annotations: Mapping[str, Any] = found["metadata"].get("annotations") or {}
    return str(annotations.get("volume.kubernetes.io/selected-node", ""))


def refused(plane: ControlPlane, name: str) -> bool:
    return condition(plane.api.get("v1", "Pod", name, namespace=SPACE), "PodScheduled") == "False"


def make_volume(plane: ControlPlane, zone: str) -> None:
    """As an external provisioner and the volume controller do it together."""
    volume, _ = disk("data", (ZONE, zone))
    plane.api.create(volume)
    bind: Document = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "data"},
    }
    plane.api.patch("v1", "PersistentVolumeClaim", "data", bind, namespace=SPACE)


def test_others_follow_the_first_pod_of_a_claim(plane: ControlPlane) -> None:
    plane.api.create(named("v1", "Namespace", SPACE))
    plane.api.create(storage_class("slow", "WaitForFirstConsumer"))
    plane.api.create(claim("data"))
    for name in ("z-1", "z-2"):
        add_node(plane, name, "zone-z")
    with opened(plane.kubeconfig()) as cluster:
        plane.api.create(pod("first", "data", cpu="5"))
        node_of_first = eventually(lambda: selected(plane), within=60, what="the first pod has chosen a node")
        add_node(plane, "y-1", "zone-y")
        plane.api.create(pod("second", "data", cpu="5"))
        plane.api.create(pod("small", "data", cpu="1"))
        eventually(lambda: refused(plane, "second"), within=60, what="the second pod finds no node")

        view = seen(cluster, nodes=3, pods=3, volumes=0)
        assert ours(view) == {"first": node_of_first, "small": node_of_first}, "the volume is being made for that node"

        make_volume(plane, "zone-z")
        (other,) = {"z-1", "z-2"} - {node_of_first}
        view = seen(cluster, nodes=3, pods=3, volumes=1)
        waiting = replace(view, pods=tuple(replace(item, node_name=None) for item in view.pods))
        assert {ours(waiting)["first"], ours(waiting)["second"]} == {"z-1", "z-2"}, "the volume is reached from zone-z"
        eventually(lambda: len(bound(plane)) == 3, within=120, what="all pods are bound", every=1)
    now = bound(plane)

    assert now["first"] == node_of_first
    assert now["second"] == other
    assert now["small"] in {"z-1", "z-2"}


def seen(cluster: KubernetesCluster, *, nodes: int, pods: int, volumes: int) -> ClusterView:
    def is_read() -> ClusterView | None:
        view = cluster.view()
        claims = [item for item in view.storage.claims if (item.bound if volumes else item.selected_node)]
        counts = (
            len(view.nodes),
            len([item for item in view.pods if item.namespace == SPACE]),
            len(view.storage.volumes),
        )
        return view if view.complete and counts == (nodes, pods, volumes) and claims else None

    found = eventually(is_read, within=60, what="all is read")
    assert found is not None
    return found
