"""Reads tests/cases/provisioning_requests.yaml: what Cluster Autoscaler makes of requests, as documents and a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.builders import manifest, node_manifest, type_in_a_catalog
from tests.manifests import snapshot_in

Document = dict[str, Any]

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NAMESPACE = "batch"
CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"
FILE = "provisioning_requests.yaml"


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(given: Sequence[Any]) -> Document:
    """From [type, status], or [type, status, seconds since it changed]."""
    kind, status, *seconds = given
    return {
        "type": kind,
        "status": status,
        "reason": kind,
        "message": "",
        "lastTransitionTime": ago(seconds[0] if seconds else 0),
    }


def pod_spec(given: Mapping[str, Any]) -> Document:
    requests = {name: str(given[name]) for name in ("cpu", "memory") if name in given}
    rest = {key: given[key] for key in ("tolerations", "nodeSelector") if key in given}
    return {"containers": [{"name": "main", "image": "main:1", "resources": {"requests": requests}}], **rest}


class Snapshot:
    """A captured cluster that a case describes."""

    def __init__(self) -> None:
        self._lists: dict[str, list[Document]] = {}
        self._types: list[Document] = []

    def write(self, folder: Path) -> str:
        """As `--cluster` takes it."""
        return snapshot_in(folder, self._lists, self._types)

    def add_cluster(self, cluster: Mapping[str, Any]) -> None:
        """Groups of nodes that may grow, each a NodePool with an instance type of its own, and nodes of no group."""
        for group in cluster["nodeGroups"]:
            self._add_group(group)
        for number, nodes in enumerate(cluster.get("otherNodes", ())):
            for index in range(nodes["count"]):
                self._add_node(f"other-{number}-{index}", nodes)

    def add_nodes(self, count: int, *, cpu: str = "64", memory: str = "256Gi") -> None:
        for index in range(count):
            self._add_node(f"node-{index}", {"cpu": cpu, "memory": memory, "pods": 110})

    def add_request(self, given: Mapping[str, Any], pod_sets: Sequence[Mapping[str, Any]]) -> None:
        """With a PodTemplate for each pod set, unless its template is missing."""
        name = given["name"]
        for number, pod_set in enumerate(pod_sets):
            if not pod_set.get("templateMissing"):
                template = {"spec": pod_spec(pod_set)}
                self._add(
                    "podtemplates", manifest("v1", "PodTemplate", f"{name}-{number}", NAMESPACE, template=template)
                )
        spec = {
            "provisioningClassName": given["class"],
            "parameters": given.get("parameters", {}),
            "podSets": [
                {"podTemplateRef": {"name": f"{name}-{number}"}, "count": pod_set["count"]}
                for number, pod_set in enumerate(pod_sets)
            ],
        }
        request = manifest(
            "autoscaling.x-k8s.io/v1",
            "ProvisioningRequest",
            name,
            NAMESPACE,
            metadata={"uid": f"uid-of-{name}", "creationTimestamp": ago(given.get("ageSeconds", 0))},
            spec=spec,
            status={"conditions": [condition(item) for item in given.get("conditions", ())]},
        )
        self._add("provisioningrequests", request)

    def add_pods(self, given: Mapping[str, Any], *, namespace: str = NAMESPACE) -> None:
        """Pods that run on one node."""
        for index in range(given["count"]):
            name, annotations = f"pod-{given['node']}-{index}", given.get("annotations", {})
            spec = {**pod_spec(given), "nodeName": given["node"]}
            pod = manifest("v1", "Pod", name, namespace, metadata={"annotations": annotations}, spec=spec)
            self._add("pods", {**pod, "status": {"phase": "Running"}})

    def _add_group(self, group: Mapping[str, Any]) -> None:
        name, nodes = group["name"], group["nodes"]
        for index in range(nodes["count"]):
            self._add_node(f"{name}-{index}", nodes, name)
        self._types.append(type_in_a_catalog(name, _room(nodes), 0.1, overhead={}))
        template = {
            "metadata": {"labels": nodes.get("labels", {})},
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]}],
                "taints": nodes.get("taints", []),
            },
        }
        pool = {"template": template, "limits": {"nodes": str(group["max"])}, "disruption": {"consolidateAfter": "0s"}}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self._add(
            "nodepools",
            manifest("karpenter.sh/v1", "NodePool", name, metadata={"uid": f"uid-of-{name}"}, spec=pool, status=ready),
        )

    def _add_node(self, name: str, given: Mapping[str, Any], group: str = "") -> None:
        labels, taints = given.get("labels", {}), given.get("taints", [])
        self._add("nodes", node_manifest(name, _room(given), pool=group, of_type=group, labels=labels, taints=taints))

    def _add(self, plural: str, document: Document) -> None:
        self._lists.setdefault(plural, []).append(document)


def _room(given: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(given[key]) for key in ("cpu", "memory", "pods")}


def conditions_of(rows: Iterable[Document]) -> dict[str, list[tuple[str, str, str]]]:
    """Of the demands of a plan in JSON, by name: type, status and reason."""
    return {row["name"]: [(item["type"], item["status"], item["reason"]) for item in row["conditions"]] for row in rows}
