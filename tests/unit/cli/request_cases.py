"""Reads tests/cases/provisioning_requests.yaml: what Cluster Autoscaler makes of requests, as documents and a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.builders import manifest, node_manifest, type_in_a_catalog
from tests.fakes.embedded import NODE_CLASS
from tests.unit.cli.two_folders import Document, Folders

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NAMESPACE = "batch"
CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"
FILE = "provisioning_requests.yaml"


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(given: Sequence[Any]) -> Document:
    """From [type, status], or [type, status, seconds since it changed]."""
    kind, status, *seconds = given
    since = ago(seconds[0] if seconds else 0)
    return {"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": since}


def pod_spec(given: Mapping[str, Any]) -> Document:
    requests = {name: str(given[name]) for name in ("cpu", "memory") if name in given}
    rest = {key: given[key] for key in ("tolerations", "nodeSelector") if key in given}
    return {"containers": [{"name": "main", "image": "main:1", "resources": {"requests": requests}}], **rest}


class Snapshot(Folders):
    """A captured cluster that a case describes, and an empty repository."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, catalog=[])

    def planned(self) -> Document:
        """The plan in JSON."""
        return self.plan({}, "--check-placement", f"--now={ago(0)}")

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
                own = {"template": {"spec": pod_spec(pod_set)}}
                self._add("podtemplates", manifest("v1", "PodTemplate", f"{name}-{number}", NAMESPACE, **own))
        spec = {
            "provisioningClassName": given["class"],
            "parameters": given.get("parameters", {}),
            "podSets": [
                {"podTemplateRef": {"name": f"{name}-{number}"}, "count": pod_set["count"]}
                for number, pod_set in enumerate(pod_sets)
            ],
        }
        marks = {"uid": f"uid-of-{name}", "creationTimestamp": ago(given.get("ageSeconds", 0))}
        status = {"conditions": [condition(item) for item in given.get("conditions", ())]}
        kind = ("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
        self._add("provisioningrequests", manifest(*kind, name, NAMESPACE, metadata=marks, spec=spec, status=status))

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
        self.catalog.append(type_in_a_catalog(name, _room(nodes), 0.1, overhead={}))
        template = {
            "metadata": {"labels": nodes.get("labels", {})},
            "spec": {
                "nodeClassRef": NODE_CLASS,
                "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [name]}],
                "taints": nodes.get("taints", []),
            },
        }
        pool = {"template": template, "limits": {"nodes": str(group["max"])}, "disruption": {"consolidateAfter": "0s"}}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        own: Document = {"metadata": {"uid": f"uid-of-{name}"}, "status": ready}
        self._add("nodepools", manifest("karpenter.sh/v1", "NodePool", name, spec=pool, **own))

    def _add_node(self, name: str, given: Mapping[str, Any], group: str = "") -> None:
        labels, taints = given.get("labels", {}), given.get("taints", [])
        self._add("nodes", node_manifest(name, _room(given), pool=group, of_type=group, labels=labels, taints=taints))

    def _add(self, plural: str, document: Document) -> None:
        self.lists.setdefault(plural, []).append(document)


def _room(given: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(given[key]) for key in ("cpu", "memory", "pods")}


def conditions_of(rows: Iterable[Document]) -> dict[str, list[tuple[str, str, str]]]:
    """Of the demands of a plan in JSON, by name: type, status and reason."""
    return {row["name"]: [(item["type"], item["status"], item["reason"]) for item in row["conditions"]] for row in rows}
