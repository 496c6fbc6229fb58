"""Volumes, claims, storage classes and runtime classes, from the wire to the view and through a snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reconciler.cluster.resources import (
    BY_KIND,
    PERSISTENT_VOLUMES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    Resource,
)
from reconciler.cluster.snapshot.files import snapshot_at
from reconciler.cluster.view import ViewStore
from reconciler.model.attachments import PersistentVolume, Storage, StorageClass, VolumeClaim
from reconciler.model.pods import NodeSelectorTerm, RuntimeClass
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Toleration
from reconciler.model.view import ClusterView
from tests.builders import one_of
from tests.unit.cluster.documents import capture

ZONE = "topology.kubernetes.io/zone"
SECRET = "hunter2"
DOCUMENTS: Mapping[Resource, Mapping[str, Any]] = {
    PERSISTENT_VOLUMES: {
        "metadata": {"name": "pv-1", "labels": {ZONE: "zone-a"}, "annotations": {"vault.example.com/token": SECRET}},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gp3",
            "claimRef": {"namespace": "shop", "name": "data"},
            "csi": {
                "driver": "ebs.csi.aws.com",
                "volumeHandle": "vol-1",
                "volumeAttributes": {"password": SECRET},
                "nodePublishSecretRef": {"name": SECRET, "namespace": "shop"},
            },
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-a"]}]}]
                }
            },
        },
        "status": {"phase": "Bound", "message": SECRET},
    },
    VOLUME_CLAIMS: {
        "metadata": {
            "namespace": "shop",
            "name": "data",
            "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "volume.kubernetes.io/selected-node": "node-1",
                "x": SECRET,
            },
        },
        "spec": {
            "volumeName": "pv-1",
            "storageClassName": "gp3",
            "resources": {"requests": {"storage": "8Gi"}},
            "dataSource": {"name": SECRET},
        },
    },
    STORAGE_CLASSES: {
        "metadata": {"name": "gp3", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"secret": SECRET},
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-a", "zone-b"]}]}],
    },
    RUNTIME_CLASSES: {
        "metadata": {"name": "kata"},
        "handler": SECRET,
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {
            "nodeSelector": {"runtime": "kata"},
            "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
        },
    },
}


def in_zones(*zones: str) -> tuple[NodeSelectorTerm, ...]:
    return (NodeSelectorTerm((one_of(ZONE, *zones),)),)


STORAGE = Storage(
    (PersistentVolume("pv-1", terms=in_zones("zone-a")),),
    (VolumeClaim("shop", "data", "pv-1", bound=True, storage_class="gp3", selected_node="node-1"),),
    (StorageClass("gp3", "ebs.csi.aws.com", waits=True, topologies=in_zones("zone-a", "zone-b"), default=True),),
)
KATA = RuntimeClass(
    "kata",
    overhead=Resources.parse({"cpu": "250m", "memory": "120Mi"}),
    node_selector=(("runtime", "kata"),),
    tolerations=(Toleration("kata", "Exists", "", "NoSchedule"),),
)


def view_of(*changes: tuple[Resource, Mapping[str, Any]]) -> ClusterView:
    store = ViewStore()
    for resource, document in (*DOCUMENTS.items(), *changes):
        store.put(resource, document)
    return store.view()


def test_what_placement_needs_of_storage_is_read() -> None:
    view = view_of()
    assert view.complete
    assert view.storage == STORAGE
    assert view.runtime_classes == (KATA,)


def test_a_claim_that_only_says_it_is_bound_is_bound() -> None:
    """Somebody who writes a snapshot by hand copies the status, not the controller's annotation."""
    plain = {"metadata": {"namespace": "shop", "name": "data"}, "spec": {"volumeName": "pv-1"}}
    assert not view_of((VOLUME_CLAIMS, plain)).storage.claims[0].bound
    assert view_of((VOLUME_CLAIMS, plain | {"status": {"phase": "Bound"}})).storage.claims[0].bound
    assert not view_of((VOLUME_CLAIMS, plain | {"status": {"phase": "Lost"}})).storage.claims[0].bound


def test_a_class_that_cannot_be_read_is_a_gap() -> None:
    broken = {"metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "much"}}}
    (gap,) = view_of((RUNTIME_CLASSES, broken)).gaps
    assert gap.startswith("RuntimeClass/kata cannot be read: overhead: resource cpu:")


def test_a_snapshot_keeps_all_of_it_and_no_secret(tmp_path: Path) -> None:
    def read(resource: Resource) -> Iterable[Mapping[str, Any]]:
        return [DOCUMENTS[resource]] if resource in DOCUMENTS else []

    capture(read, tmp_path)
    captured = snapshot_at(str(tmp_path)).view()
    assert captured.storage == STORAGE
    assert captured.runtime_classes == (KATA,)
    assert SECRET not in "".join(file.read_text() for file in tmp_path.iterdir())
    assert json.loads((tmp_path / "persistentvolumeclaims.json").read_text())["kind"] == "List"
    assert all(resource.key in BY_KIND for resource in DOCUMENTS)
