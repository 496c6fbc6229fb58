"""Pods with volumes beside the real kube-scheduler: it binds those that we place, where we say, and no other but some that
share volumes.

Everything is created on a real API server and read from there as the daemon reads it; claims are bound by hand, since no
controller runs. Of pods that compete for one thing (a claim for one pod) as many are bound as we place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.cluster.resources import PODS
from reconciler.cluster.view import ViewStore
from reconciler.demand.combine import pending_demands
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from tests.controlplane import ControlPlane, eventually
from tests.controlplane.rest import Document, condition
from tests.integration.real_cluster import opened

pytestmark = pytest.mark.e2e

SPACE = "attachments"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DRIVER = "disk.example.com"
COMPETING = {"once": 1, "attached": 1, "filling": 1}
SHARING = {"shared", "same"}
"""Their volumes are used by several pods. The scheduler counts such a volume once on a node; we count it for each, and place fewer."""
"""Pods by the first part of their name, of which so many can be placed."""


def named(api: str, kind: str, name: str, *, namespace: str | None = None, **metadata: Any) -> Document:
    place_of = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **place_of, **metadata}}


def node(name: str, zone: str) -> Document:
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {
        **named("v1", "Node", name, labels={ZONE: zone, HOST: name}),
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def disk(
    name: str, *terms: tuple[str, str], labels: Mapping[str, str] | None = None, handle: str = ""
) -> list[Document]:
    """A volume that holds its pods to one of the terms, and a claim of the same name that is bound to it. handle: what its driver
    knows it by."""
    return [
        {
            **named("v1", "PersistentVolume", name, labels=dict(labels or {})),
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "slow",
                "claimRef": {"namespace": SPACE, "name": name},
                "csi": {"driver": DRIVER, "volumeHandle": handle or name},
                **(
                    {"nodeAffinity": {"required": {"nodeSelectorTerms": [_term(*item) for item in terms]}}}
                    if terms
                    else {}
                ),
            },
        },
        claim(name, volume=name),
    ]


def _term(key: str, value: str) -> Document:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}


def claim(
    name: str, *, volume: str | None = None, storage_class: str = "slow", mode: str = "ReadWriteOnce"
) -> Document:
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return {
        **named("v1", "PersistentVolumeClaim", name, namespace=SPACE, annotations=bound),
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
            **({"volumeName": volume} if volume else {}),
        },
    }


def storage_class(name: str, mode: str) -> Document:
    return {**named("storage.k8s.io/v1", "StorageClass", name), "provisioner": DRIVER, "volumeBindingMode": mode}


def csi_node(name: str, count: int) -> Document:
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": count}}
    return {**named("storage.k8s.io/v1", "CSINode", name), "spec": {"drivers": [driver]}}


def pod(name: str, *claims: str, cpu: str = "0") -> Document:
    volumes = [{"name": item, "persistentVolumeClaim": {"claimName": item}} for item in claims]
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    spec: Document = {"containers": [container], "volumes": volumes}
    return {**named("v1", "Pod", name, namespace=SPACE), "spec": spec}


def surroundings() -> list[Document]:
    once = disk("once", (ZONE, "zone-b"))
    for part in once:
        part["spec"]["accessModes"] = ["ReadWriteOncePod"]
    return [
        named("v1", "Namespace", SPACE),
        storage_class("slow", "WaitForFirstConsumer"),
        storage_class("at-once", "Immediate"),
        *disk("in-b", (ZONE, "zone-b")),
        *disk("in-q-or-c", (ZONE, "zone-q"), (ZONE, "zone-c")),
        *disk("in-q", (ZONE, "zone-q")),
        *disk("on-c", (HOST, "c")),
        *disk("labelled-b", labels={ZONE: "zone-b"}),
        *disk("labelled-b-or-c", labels={ZONE: "zone-b__zone-c"}),
        *disk("on-a-0", (HOST, "a")),
        *disk("on-a-1", (HOST, "a")),
        *once,
        claim("not-bound", storage_class="at-once"),
        claim("no-class", storage_class="gone"),
        *disk("on-d", (HOST, "d")),
        *disk("on-d-0", (HOST, "d")),
        *disk("on-d-1", (HOST, "d")),
        *disk("same-0", (HOST, "e"), handle="same"),
        *disk("same-1", (HOST, "e"), handle="same"),
        csi_node("a", 1),
        csi_node("d", 2),
        csi_node("e", 1),
    ]


def pods() -> list[Document]:
    """Those that share volumes come before those that compete for what these leave: they ask for more."""
    return [
        *(pod(f"shared-{index}", "on-d", cpu=f"{3 - index}") for index in range(3)),
        *(pod(f"same-{index}", f"same-{index}", cpu="1") for index in range(2)),
        pod("in-b", "in-b"),
        pod("in-q-or-c", "in-q-or-c"),
        pod("in-q", "in-q"),
        pod("on-c", "on-c"),
        pod("labelled-b", "labelled-b"),
        pod("labelled-b-or-c", "labelled-b-or-c", "on-c"),
        pod("in-two-places", "in-b", "on-c"),
        pod("missing", "missing"),
        pod("not-bound", "not-bound"),
        pod("no-class", "no-class"),
        pod("once-0", "once"),
        pod("once-1", "once"),
        pod("attached-0", "on-a-0"),
        pod("attached-1", "on-a-1"),
        *(pod(f"filling-{index}", f"on-d-{index}") for index in range(2)),
    ]


def test_the_scheduler_binds_what_we_place_and_nothing_else(plane: ControlPlane) -> None:
    for document in surroundings():
        plane.api.create(document)
    for name in "abcde":
        plane.api.create(node(name, f"zone-{name}"))
        plane.api.patch("v1", "Node", name, {"spec": {"taints": []}})
    with opened(plane.kubeconfig()) as cluster:
        eventually(lambda: len(cluster.view().nodes) == 5 and cluster.view().complete, within=60, what="all is read")
        view = with_pods(cluster.view(), pods())
    demands = pending_demands(view, include_pending=False)
    placement = place(Problem(view, (), (), demands))
    assert violations(Problem(view, (), (), demands), placement) == ()
    ours = {holding.demand.name: item.node for item in placement.occupied for holding in item.holdings}

    for document in pods():
        plane.api.create(document)
    bound = settled(plane)

    assert alone(bound) == alone(ours)
    assert sharing(ours).items() <= sharing(bound).items()
    assert competing(bound) == COMPETING
    assert competing(ours) == COMPETING | {"filling": competing(ours)["filling"]}
    assert competing(ours)["filling"] <= COMPETING["filling"]
    assert {"in-b": "b", "in-q-or-c": "c", "labelled-b-or-c": "c"}.items() <= bound.items()
    assert {"shared-0": "d", "shared-1": "d", "shared-2": "d", "same-0": "e", "same-1": "e"}.items() <= bound.items()

    share_with_those_that_run(plane, bound)


def share_with_those_that_run(plane: ControlPlane, bound: Mapping[str, str]) -> None:
    """Node d attaches no more volumes, and those that it has do for more pods."""
    taken = next(name for name in bound if name.startswith("filling-"))
    other = "filling-1" if taken == "filling-0" else "filling-0"
    more = [pod("late-shared", "on-d"), pod("late-both", "on-d", taken.replace("filling", "on-d"))]
    more += [pod("late-other", "on-d", other.replace("filling", "on-d"))]
    with opened(plane.kubeconfig()) as cluster:
        eventually(
            lambda: len([item for item in cluster.view().pods if item.node_name]) == len(bound),
            within=60,
            what="what is bound is read",
        )
        for document in more:
            plane.api.create(document)
        eventually(
            lambda: {item.name for item in cluster.view().pods} >= {item["metadata"]["name"] for item in more},
            within=60,
            what="the pods that came are read",
        )
        view = cluster.view()
    late = {item["metadata"]["name"] for item in more}
    view = replace(view, pods=tuple(replace(item, node_name=None) if item.name in late else item for item in view.pods))
    demands = pending_demands(view, include_pending=False)
    placement = place(Problem(view, (), (), demands))
    ours = {holding.demand.name: item.node for item in placement.occupied for holding in item.holdings}

    now = settled(plane)

    assert {name: at for name, at in now.items() if name in late} == {"late-shared": "d", "late-both": "d"}
    assert {name: at for name, at in ours.items() if name in late}.items() <= now.items()


def with_pods(view: ClusterView, documents: Sequence[Document]) -> ClusterView:
    """The view as it is the moment the pods are there and none is bound."""
    store = ViewStore()
    for document in documents:
        store.put(PODS, document)
    return replace(view, pods=store.view().pods)


def settled(plane: ControlPlane) -> dict[str, str]:
    """Node by pod, once the scheduler has tried every pod and nothing has changed for a while."""
    seen: list[dict[str, str]] = []

    def quiet() -> bool:
        found = plane.api.list("v1", "Pod", namespace=SPACE)
        seen.append(
            {item["metadata"]["name"]: item["spec"]["nodeName"] for item in found if item["spec"].get("nodeName")}
        )
        tried = all(item["spec"].get("nodeName") or condition(item, "PodScheduled") == "False" for item in found)
        return tried and len(seen) > 12 and all(item == seen[-1] for item in seen[-12:])

    eventually(quiet, within=120, what="the scheduler is done", every=1)
    return seen[-1]


def alone(where: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: at for name, at in where.items() if name.partition("-")[0] not in COMPETING.keys() | SHARING}


def sharing(where: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: at for name, at in where.items() if name.partition("-")[0] in SHARING}


def competing(where: Mapping[str, str | None]) -> dict[str, int]:
    return {key: sum(name.partition("-")[0] == key for name in where) for key in COMPETING}
