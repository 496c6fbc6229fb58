"""Reads tests/cases/unplaceable.yaml: each case becomes a snapshot with one pod that waits. Used by test_unplaceable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from reconciler.model.nodes import ARCHITECTURE_LABEL, CAPACITY_TYPE_LABEL, ZONE_LABEL
from tests.builders import manifest, node_manifest, type_in_a_catalog
from tests.fakes.embedded import NODE_CLASS
from tests.manifests import snapshot_in

CASES = Path(__file__).resolve().parents[1] / "cases" / "unplaceable.yaml"
NAMESPACE = "shop"
POD = "it"
_POOL_FIELDS = frozenset({"limits", "replicas", "conditions", "labels", "weight"})
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
    spec = {key: value for key, value in pod.items() if key not in own} | {"containers": [container]}
    spec["volumes"] = [
        {"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in pod.get("claims", ())
    ]
    if node is not None:
        spec["nodeName"] = node
    status = {"phase": "Pending" if node is None else "Running"}
    return manifest(
        "v1", "Pod", name, NAMESPACE, metadata={"labels": dict(labels), "uid": name}, spec=spec, status=status
    )


def _node(name: str, node: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    kind = types.get(node["type"], {"cpu": "8", "memory": "32Gi"})
    room = {**_resources(kind), "pods": "110"}
    labels = {ARCHITECTURE_LABEL: kind.get("arch", "amd64"), ZONE_LABEL: node["zone"], **node.get("labels", {})}
    own = {"taints": node.get("taints", []), "unschedulable": node.get("unschedulable", False)}
    made = node_manifest(name, room, pool=node["pool"], of_type=node["type"], labels=labels, **own)
    if node.get("deleting"):
        made["metadata"]["deletionTimestamp"] = "2026-11-21T08:00:00Z"
    made["status"]["conditions"][0]["status"] = node.get("ready", "True")
    return made


def _pool(name: str, pool: Mapping[str, Any]) -> dict[str, Any]:
    template = {key: value for key, value in pool.items() if key not in _POOL_FIELDS}
    spec: dict[str, Any] = {
        "template": {
            "metadata": {"labels": pool.get("labels", {})},
            "spec": {"requirements": [], **template, "nodeClassRef": NODE_CLASS},
        },
        **{key: pool[key] for key in ("limits", "replicas", "weight") if key in pool},
    }
    status = {"conditions": pool.get("conditions", [{"type": "Ready", "status": "True"}])}
    return manifest("karpenter.sh/v1", "NodePool", name, spec=spec, status=status)


def _type(name: str, kind: Mapping[str, Any]) -> dict[str, Any]:
    own = {
        "architecture": kind.get("arch", "amd64"),
        "labels": kind.get("labels", {}),
        "offerings": list(_offerings(kind)),
    }
    return type_in_a_catalog(name, _resources(kind), kind["price"], **own)


def _offerings(kind: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for zone in kind.get("zones", ["zone-a", "zone-b"]):
        for capacity_type in kind.get("capacityTypes", ["on-demand"]):
            labels = {ZONE_LABEL: zone, CAPACITY_TYPE_LABEL: capacity_type}
            requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
            yield {"Price": kind["price"], "Available": kind.get("available", True), "Requirements": requirements}


def _resources(kind: Mapping[str, Any]) -> dict[str, str]:
    others = {"price", "arch", "zones", "capacityTypes", "available", "labels"}
    return {key: value for key, value in kind.items() if key not in others}
