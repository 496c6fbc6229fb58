"""Generated worlds whose pods have volumes, and their storage as documents for a real API server. Used by test_real_scheduler.

Volumes are bound before any pod comes, since nobody here would bind or make them: what is judged is where a bound volume lets its
pods be, and that a claim which is not bound or not there keeps them off every node.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from reconciler.model.attachments import PersistentVolume, Storage, StorageClass, VolumeClaim
from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import NodeSelectorTerm
from tests.builders import manifest
from tests.e2e.world_documents import node_name
from tests.properties.wide_volumes import DISKS, REACHES
from tests.unit.placement.worlds import World, worlds

CLASSES = (StorageClass("at-once", DISKS), StorageClass("disks", DISKS, waits=True))
NAMES = ("data-0", "data-1", "data-2")
_BY_LABELS = tuple(terms for terms in REACHES if not any(term.fields for term in terms))
"""In the node affinity of a volume kube-scheduler passes over `matchFields` (nodeaffinity.go: the node has no name there)."""
_UNBOUND, _MISSING = "unbound", "missing"
_NAMESPACE = "shop"

Document = dict[str, Any]


@st.composite
def worlds_with_volumes(draw: st.DrawFn) -> World:
    """Half of them have some; groups share claims."""
    world: World = draw(worlds())
    if draw(st.booleans()):
        return world
    volumes = tuple(PersistentVolume(f"pv-{name}", terms=draw(st.sampled_from(_BY_LABELS))) for name in NAMES)
    bound = tuple(VolumeClaim(_NAMESPACE, name, f"pv-{name}", bound=True, storage_class="disks") for name in NAMES)
    waiting = VolumeClaim(_NAMESPACE, _UNBOUND, storage_class="at-once")
    names = st.lists(st.sampled_from([*NAMES, *NAMES, _UNBOUND, _MISSING]), min_size=1, max_size=2, unique=True)
    demands = tuple(
        replace(
            item,
            groups=tuple(
                replace(group, shape=replace(group.shape, volume_claims=tuple(draw(names))))
                if draw(st.booleans())
                else group
                for group in item.groups
            ),
        )
        for item in world.demands
    )
    view = replace(world.view, storage=Storage(volumes, (*bound, waiting), CLASSES))
    return replace(world, view=view, demands=demands)


def class_documents() -> list[Document]:
    return [
        manifest(
            "storage.k8s.io/v1",
            "StorageClass",
            item.name,
            provisioner=item.provisioner,
            volumeBindingMode="WaitForFirstConsumer" if item.waits else "Immediate",
        )
        for item in CLASSES
    ]


def storage_documents(world: str, storage: Storage) -> list[Document]:
    """Volumes have names of their own within the world only."""
    return [
        *(_volume_document(world, item) for item in storage.volumes),
        *(_claim_document(world, item) for item in storage.claims),
    ]


def _volume_document(world: str, item: PersistentVolume) -> Document:
    spec: Document = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "disks",
        "claimRef": {"namespace": world, "name": item.name.removeprefix("pv-")},
        "csi": {"driver": DISKS, "volumeHandle": f"{world}-{item.name}"},
    }
    if item.terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [_term(world, term) for term in item.terms]}}
    return manifest("v1", "PersistentVolume", f"{world}-{item.name}", spec=spec)


def _term(world: str, term: NodeSelectorTerm) -> Document:
    """Nodes are called otherwise in the cluster: by their world too."""
    found = []
    for item in term.expressions:
        values = [node_name(world, value) if item.key == HOSTNAME_LABEL else value for value in item.values]
        found.append({"key": item.key, "operator": str(item.operator), "values": values})
    return {"matchExpressions": found} if found else {}


def _claim_document(world: str, item: VolumeClaim) -> Document:
    volume = {"volumeName": f"{world}-{item.volume}"} if item.volume else {}
    return manifest(
        "v1",
        "PersistentVolumeClaim",
        item.name,
        world,
        metadata={"annotations": {"pv.kubernetes.io/bind-completed": "yes"} if item.bound else {}},
        spec={
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": item.storage_class,
            **volume,
        },
    )
