"""API objects as a server sends them, with what a test does not care about filled in, and snapshots of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.snapshot.capture import Read, Scaled, captured
from reconciler.cluster.snapshot.files import write_snapshot
from reconciler.model.nodes import InstanceType

Document = dict[str, Any]


def named(name: str, **fields: Any) -> Document:
    """An object in the namespace `shop` with nothing but what a test is about."""
    return {"metadata": {"name": name, "namespace": "shop"}, **fields}


def pod(name: str = "web-1", *, cpu: str = "250m", node: object = "node-1", **status: Any) -> Document:
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-03-01T12:00:00Z",
            "labels": {"app": "web"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-abc", "controller": True}],
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}}],
            "volumes": [{"name": f"token-of-{name}", "projected": {}}],
            "priority": 100,
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running", **status},
    }


def node(name: str = "node-1", **metadata: Any) -> Document:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "3", "labels": {"b": "2", "a": "1"}}
        | metadata,
        "spec": {"providerID": f"test://{name}", "taints": [{"key": "team", "value": "red", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "3900m", "memory": "15Gi", "pods": "110"},
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-03-01T12:00:00Z"},
                {"type": "DiskPressure", "status": "False"},
            ],
        },
    }


def node_claim(name: str = "general-1") -> Document:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"karpenter.sh/nodepool": "general", "headroom.dev/placeholder": "true"},
            "annotations": {"karpenter.sh/nodepool-hash": "1234", "example.com/note": "not ours"},
        },
        "spec": {
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["a", "b"], "minValues": 2}
            ],
            "resources": {"requests": {"cpu": "2"}},
            "startupTaints": [{"key": "warming", "effect": "NoSchedule"}],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "expireAfter": "48h",
        },
        "status": {
            "nodeName": "node-1",
            "providerID": "test://node-1",
            "conditions": [{"type": "Registered", "status": "True"}, {"type": "Launched", "status": "True"}],
            "allocatable": {"cpu": "3900m"},
        },
    }


def deployment(
    name: str = "web", *, replicas: int | None = 3, managed_fields: list[Document] | None = None
) -> Document:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "generation": 4,
            **({"managedFields": managed_fields} if managed_fields else {}),
        },
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}
        | ({} if replicas is None else {"replicas": replicas}),
        "status": {"replicas": 2},
    }


def buffer(name: str = "web", **metadata: Any) -> Document:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "11"} | metadata,
        "spec": {"replicas": 3, "podTemplateRef": {"name": "web"}},
    }


def managed(manager: str, fields: Document, *, subresource: str = "") -> Document:
    return {
        "manager": manager,
        "operation": "Update",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **({"subresource": subresource} if subresource else {}),
    }


def capture(
    read: Read,
    path: Path,
    catalog: Iterable[InstanceType] = (),
    scaled: Scaled = (),
    inventory: InventoryParent | None = None,
) -> Mapping[str, int]:
    """A snapshot in a folder or .tar.gz. Returns the number of objects by plural."""
    found = captured(read, catalog, scaled, inventory)
    write_snapshot(path, found.files)
    return found.counts
