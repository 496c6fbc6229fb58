"""Cases of tests/cases/buffers_*.yaml as documents: what a cluster would hold and a person would write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from reconciler.cluster.resources import BY_KIND, scaled_kind
from reconciler.cluster.view import ViewStore
from reconciler.model.buffers import Dialect
from reconciler.model.view import ClusterView
from tests.builders import manifest
from tests.unit.cli.two_folders import Folders

Document = dict[str, Any]

NAMESPACE = "default"
NOW = "2026-11-21T12:00:00Z"
WORKLOADS = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "ReplicationController": "v1",
}


@dataclass
class World:
    """A snapshot's lists by plural, and the documents of a repository."""

    folder: Path
    lists: dict[str, list[Document]] = field(default_factory=dict)
    repository: list[Document] = field(default_factory=list)

    def add(self, plural: str, *documents: Document) -> World:
        self.lists.setdefault(plural, []).extend(documents)
        return self

    def view(self) -> ClusterView:
        """The cluster as headroom sees it."""
        store = ViewStore()
        for document in (item for items in self.lists.values() for item in items):
            (group, _, version), kind = document["apiVersion"].rpartition("/"), document["kind"]
            other = scaled_kind(group, kind, f"{kind.lower()}s", (version,))
            store.put(BY_KIND.get((group, kind), other), document)
        return store.view()

    def plan(self, dialect: Dialect, *words: str) -> Document:
        """What `headroom plan --output json` prints."""
        files = {"documents.yaml": yaml.safe_dump_all(self.repository)}
        return Folders(self.folder, self.lists, []).plan(files, f"--dialect={dialect}", f"--now={NOW}", *words)


def demand_of(plan: Document, name: str = "b") -> Document:
    (row,) = [row for row in plan["demands"] if row["name"] == name]
    assert row["desired"] is None or row["desired"] > 150_000 or placed_and_not(row) == row["desired"]
    found: Document = row
    return found


def placed_and_not(row: Document) -> int:
    count: int = row["onExisting"] + row["onNew"] + row["unplaced"]
    return count


def condition(row: Document, kind: str) -> Document | None:
    return next((item for item in row["conditions"] if item["type"] == kind), None)


def readiness(row: Document) -> tuple[str, str]:
    found = condition(row, "ReadyForProvisioning")
    assert found is not None
    return found["status"], found["reason"]


def limiting(row: Document) -> list[str]:
    """The quotas that cut a buffer, by the condition that says so."""
    found = condition(row, "LimitedByQuotas")
    if found is None or found["status"] == "False":
        return []
    names: str = found["message"].rpartition("ResourceQuota ")[2]
    return names.split(", ")


def pod_spec(reduced: Mapping[str, Any]) -> Document:
    """From the cases' reduced pod spec, whose containers have requests and limits directly."""
    written = dict(reduced)
    for key in ("containers", "initContainers"):
        if key in reduced:
            written[key] = [_container(key, index, item) for index, item in enumerate(reduced[key])]
    return written


def _container(key: str, index: int, reduced: Mapping[str, Any]) -> Document:
    resources = {name: reduced[name] for name in ("requests", "limits") if name in reduced}
    rest = {name: value for name, value in reduced.items() if name not in resources}
    return rest | {"name": f"{key.lower()}-{index}", "resources": resources}


def pod_template(name: str, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> Document:
    template = {"metadata": {"labels": dict(labels or {})}, "spec": pod_spec(spec)}
    return manifest("v1", "PodTemplate", name, NAMESPACE, metadata={"generation": 1}, template=template)


def workload(given: Mapping[str, Any]) -> Document:
    """A workload, or a custom resource as far as its Scale tells."""
    kind = given["kind"]
    if kind == "Scale":
        of = given["of"]
        spec = {"replicas": given["specReplicas"]} if "specReplicas" in given else {}
        status = {"replicas": given["statusReplicas"], "selector": given["selector"]}
        return manifest(f"{of['apiGroup']}/v1alpha1", of["kind"], of["name"], NAMESPACE, spec=spec, status=status)
    labels = {"app": given["name"]}
    size = "parallelism" if kind == "Job" else "replicas"
    spec = {
        "selector": labels if kind == "ReplicationController" else {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec(given["podSpec"])},
    }
    if given.get("replicas") is not None:
        spec[size] = given["replicas"]
    return manifest(WORKLOADS[kind], kind, given["name"], NAMESPACE, spec=spec)


def buffer(spec: Mapping[str, Any], name: str = "b", created: str = "2026-01-01T00:00:00Z") -> Document:
    marks = {"uid": f"uid-{name}", "creationTimestamp": created}
    return manifest("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", name, NAMESPACE, metadata=marks, spec=dict(spec))


def quota(given: Mapping[str, Any]) -> Document:
    """As an API server stores it: status.hard as in spec, and scopes in their two places."""
    spec: Document = {"hard": given["hard"]}
    if "scopes" in given:
        spec["scopes"] = given["scopes"]
    if "scopeSelector" in given:
        spec["scopeSelector"] = {"matchExpressions": given["scopeSelector"]}
    status = {"hard": given["hard"], "used": given.get("used", {})}
    return manifest("v1", "ResourceQuota", given.get("name", "q"), NAMESPACE, spec=spec, status=status)


def with_quotas(folder: Path, given: Mapping[str, Any], names: Iterable[str]) -> World:
    """What a case of the kind `quota` is given. names: of its buffers, the oldest first."""
    world = World(folder).add("resourcequotas", *map(quota, given["quotas"]))
    for item in given["podTemplates"]:
        extra = {key: value for key, value in item.items() if key not in {"name", "podSpec"}}
        world.add("podtemplates", pod_template(item["name"], item["podSpec"] | extra))
    for index, (name, item) in enumerate(zip(names, given["buffers"], strict=True)):
        spec = {"podTemplateRef": {"name": item["podTemplate"]}, "replicas": item["replicas"]}
        world.add("capacitybuffers", buffer(spec, name, f"2026-01-{index + 1:02}T00:00:00Z"))
    return world


def in_cluster(folder: Path, objects: Iterable[Mapping[str, Any]], *buffers: Document) -> World:
    """Everything is in the cluster, as somebody else applied it."""
    world = World(folder).add("capacitybuffers", *buffers)
    for given in objects:
        if given["kind"] == "PodTemplate":
            world.add("podtemplates", pod_template(given["name"], given["podSpec"]))
        else:
            world.add("workloads", workload(given))
    return world


def in_repository(folder: Path, objects: Iterable[Mapping[str, Any]], *buffers: Document) -> World:
    """Buffers and PodTemplates are declared, workloads are in the cluster."""
    world = in_cluster(folder, objects)
    world.repository = [*world.lists.pop("podtemplates", []), *map(_as_written, buffers)]
    for document in world.repository:
        document["metadata"].pop("generation", None)
    world.lists.pop("capacitybuffers", None)
    return world


def _as_written(document: Document) -> Document:
    metadata = {key: document["metadata"][key] for key in ("name", "namespace")}
    return {**document, "metadata": metadata}
