"""Reads tests/cases/unplaceable.yaml: each case becomes a snapshot with one pod that waits. Used by test_unplaceable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.manifests import snapshot_in

CASES = Path(__file__).resolve().parents[1] / "cases" / "unplaceable.yaml"
NAMESPACE = "shop"
POD = "it"
_POOL_FIELDS = frozenset({"limits", "replicas", "ready", "labels", "weight"})
_FILES = {
    "DaemonSet": "daemonsets",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "StorageClass": "storageclasses",
    "RuntimeClass": "runtimeclasses",
}


@cache
def cases() -> dict[str, Mapping[str, Any]]:
    """By name; what a case does not say is as in the world of the file."""
    document = yaml.load(CASES.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return {case["name"]: {**document["world"], **case} for case in document["cases"]}


def write_snapshot(case: Mapping[str, Any], folder: Path) -> None:
    types = case["types"]
    nodes = [_node(name, node, types) for name, node in case["nodes"].items()]
    running = [_pod(pod["name"], pod, pod.get("labels", {}), node=pod["node"]) for pod in case["running"]]
    waiting = _pod(POD, case["pod"], case.get("labels", {}))
    lists: dict[str, list[Any]] = {
        "nodes": nodes,
        "pods": [*running, waiting],
        "nodepools": [_pool(name, pool) for name, pool in case["pools"].items()],
    }
    for item in case.get("objects", ()):
        lists.setdefault(_FILES[item["kind"]], []).append(item)
    snapshot_in(folder, lists, [_type(name, kind) for name, kind in types.items()])


def _pod(name: str, pod: Mapping[str, Any], labels: Mapping[str, str], node: str | None = None) -> dict[str, Any]:
    own = {"name", "node", "labels", "requests", "hostPort", "claims"}
    container: dict[str, Any] = {"name": "main", "resources": {"requests": pod["requests"]}}
    if "hostPort" in pod:
        container["ports"] = [{"containerPort": pod["hostPort"], "hostPort": pod["hostPort"]}]
    spec = {key: value for key, value in pod.items() if key not in own}
    spec["containers"] = [container]
    spec["volumes"] = [
        {"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in pod.get("claims", ())
    ]
    if node is not None:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels), "uid": name},
        "spec": spec,
        "status": {"phase": "Pending" if node is None else "Running"},
    }


def _node(name: str, node: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    kind = types.get(node["type"], {"cpu": "8", "memory": "32Gi"})
    size = {**_resources(kind), "pods": "110"}
    metadata: dict[str, Any] = {
        "name": name,
        "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/arch": kind.get("arch", "amd64"),
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/zone": node["zone"],
            "node.kubernetes.io/instance-type": node["type"],
            "karpenter.sh/capacity-type": "on-demand",
            "karpenter.sh/nodepool": node["pool"],
            "karpenter.sh/registered": "true",
            "karpenter.sh/initialized": "true",
            **node.get("labels", {}),
        },
    }
    if node.get("deleting"):
        metadata["deletionTimestamp"] = "2026-11-21T08:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"taints": node.get("taints", []), "unschedulable": node.get("unschedulable", False)},
        "status": {
            "allocatable": size,
            "capacity": size,
            "conditions": [{"type": "Ready", "status": node.get("ready", "True")}],
        },
    }


def _pool(name: str, pool: Mapping[str, Any]) -> dict[str, Any]:
    template = {key: value for key, value in pool.items() if key not in _POOL_FIELDS}
    template.setdefault("requirements", [])
    template["nodeClassRef"] = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    spec: dict[str, Any] = {
        "template": {"metadata": {"labels": pool.get("labels", {})}, "spec": template},
        **{key: pool[key] for key in ("limits", "replicas", "weight") if key in pool},
    }
    ready = {"type": "Ready", "status": pool.get("ready", "True")}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"conditions": [ready]},
    }


def _type(name: str, kind: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "architecture": kind.get("arch", "amd64"),
        "operatingSystems": ["linux"],
        "resources": _resources(kind),
        "labels": kind.get("labels", {}),
        "offerings": list(_offerings(kind)),
    }


def _offerings(kind: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for zone in kind.get("zones", ["zone-a", "zone-b"]):
        for capacity_type in kind.get("capacityTypes", ["on-demand"]):
            labels = {"topology.kubernetes.io/zone": zone, "karpenter.sh/capacity-type": capacity_type}
            yield {
                "Price": kind["price"],
                "Available": kind.get("available", True),
                "Requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()],
            }


def _resources(kind: Mapping[str, Any]) -> dict[str, str]:
    others = {"price", "arch", "zones", "capacityTypes", "available", "labels"}
    return {key: value for key, value in kind.items() if key not in others}
