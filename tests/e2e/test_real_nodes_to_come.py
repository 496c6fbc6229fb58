"""Nodes made for volumes and devices beside the real kube-scheduler: when they come up as nodes like them are, it binds on them the
pods that we planned them for, and no other."""

from __future__ import annotations

import pytest

from reconciler.demand.pods import pending_demands
from reconciler.model.nodes import INITIALIZED_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import PlacementOptions, Problem
from tests.builders import instance_type, node_pool
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document
from tests.e2e.test_real_attachments import (
    DRIVER,
    GPUS,
    SPACE,
    disk,
    named,
    node,
    pod,
    settled,
    storage_class,
    with_pods,
)
from tests.integration.real_cluster import opened

pytestmark = pytest.mark.e2e

LABELS = {NODEPOOL_LABEL: "general", INITIALIZED_LABEL: "true", INSTANCE_TYPE_LABEL: "m-4x"}


def made(plane: ControlPlane, name: str, *, cordoned: bool = False) -> None:
    """A node of NodePool general that attaches two volumes and has two devices."""
    listed = [{"name": f"gpu-{index}", "attributes": {"type": {"string": "gpu"}}} for index in range(2)]
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [], "allocatable": {"count": 2}}
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": GPUS, "nodeName": name, "pool": pool, "devices": listed}
    plane.api.create({**named("storage.k8s.io/v1", "CSINode", name), "spec": {"drivers": [driver]}})
    plane.api.create({**named("resource.k8s.io/v1", "ResourceSlice", f"{name}-gpus"), "spec": devices})
    document = node(name, "zone-a")
    document["metadata"]["labels"] |= LABELS
    plane.api.create(document)
    plane.api.patch("v1", "Node", name, {"spec": {"taints": [], "unschedulable": cordoned}})


def surroundings() -> list[Document]:
    api = "resource.k8s.io/v1"
    selectors = [{"cel": {"expression": f"device.driver == '{GPUS}'"}}]
    asked = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    return [
        named("v1", "Namespace", SPACE),
        storage_class("slow", "WaitForFirstConsumer"),
        {**named(api, "DeviceClass", "gpu"), "spec": {"selectors": selectors}},
        *({**named(api, "ResourceClaim", f"gpu-{index}", namespace=SPACE), "spec": asked} for index in range(5)),
        *(part for index in range(5) for part in disk(f"disk-{index}")),
    ]


def pods() -> list[Document]:
    """Five of each; two new nodes take four of each."""
    return [
        *(pod(f"db-{index}", f"disk-{index}") for index in range(5)),
        *(pod(f"train-{index}", devices=f"gpu-{index}") for index in range(5)),
    ]


def test_the_scheduler_binds_on_new_nodes_what_they_were_planned_for(plane: ControlPlane) -> None:
    for document in surroundings():
        plane.api.create(document)
    made(plane, "example", cordoned=True)
    with opened(plane.kubeconfig()) as cluster:
        eventually(lambda: len(cluster.view().nodes) == 1 and cluster.view().complete, within=60, what="all is read")
        view = with_pods(cluster.view(), pods())
    pools, types = (node_pool(limits={"nodes": "3"}),), (instance_type("m-4x", cpu="8", zones=("zone-a",)),)
    demands = pending_demands(view, include_pending=True)
    options = PlacementOptions(include_pending=True)
    placement = place(Problem(view, pools, types, demands, options=options))
    assert violations(Problem(view, pools, types, demands), placement) == ()
    assert placement.assumptions == ()
    assert len(placement.planned) == 2
    planned = [holding.demand.name for item in placement.planned for holding in item.holdings]
    ours = {kind: sum(name.startswith(kind) for name in planned) for kind in ("db", "train")}
    assert ours == {"db": 4, "train": 4}

    for number in range(len(placement.planned)):
        made(plane, f"new-{number}")
    for document in pods():
        plane.api.create(document)
    bound = settled(plane)

    assert set(bound.values()) <= {"new-0", "new-1"}
    theirs = {kind: sum(name.startswith(kind) for name in bound) for kind in ("db", "train")}
    assert theirs == ours
