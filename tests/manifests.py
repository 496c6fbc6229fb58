"""Manifests as text, for tests that are about something else than how they are written.

Each begins with `---`, so that several make one file when put one after the other. marks: annotations of headroom, by
their names with `_` for `-`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from reconciler.cluster.apply import InventoryParent
from reconciler.model.marks import PART_OF_LABEL

BY_TEMPLATE = "podTemplateRef: {name: web}"
BY_DEPLOYMENT = "scalableRef: {apiGroup: apps, kind: Deployment, name: web}"
ON_DEMAND = "{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}"


def buffer(name: str = "web", size: str = "", *, of: str = BY_TEMPLATE, namespace: str = "shop", **marks: str) -> str:
    """size: such as `replicas: 4`."""
    return _document("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", name, namespace, marks) + (
        f"spec: {{{of}, {size}}}\n"
    )


def pod_template(name: str = "web", requests: str = "cpu: 1", *, namespace: str = "shop") -> str:
    container = f'{{name: main, image: "main:1", resources: {{requests: {{{requests}}}}}}}'
    return _document("v1", "PodTemplate", name, namespace, {}) + (
        f"template: {{spec: {{containers: [{container}]}}}}\n"
    )


def schedule(name: str, replicas: int, start: str, end: str, *, default: int = 0, zone: str = "UTC") -> str:
    """start and end: such as `hours: 9, weekdays: Mon`."""
    behavior = f"{{replicas: {replicas}, start: {{{start}}}, end: {{{end}}}}}"
    return _document("autoscaling.karpenter.sh/v1alpha1", "MetricsProducer", name, "shop", {}) + (
        f"spec: {{schedule: {{timezone: {zone}, defaultReplicas: {default}, behaviors: [{behavior}]}}}}\n"
    )


def request(
    name: str = "train", count: int = 60, *, template: str = "web", of_class: str = "atomic-scale-up.kubernetes.io"
) -> str:
    """For pods of one PodTemplate. The first `spec:` is a line of its own, so that fields can be put below it."""
    return _document("autoscaling.x-k8s.io/v1", "ProvisioningRequest", name, "shop", {}) + (
        f"spec:\n  provisioningClassName: {of_class}\n  podSets: [{{podTemplateRef: {{name: {template}}}, count: {count}}}]\n"
    )


def node_pool(name: str = "general", spec: str = "", requirements: str = ON_DEMAND, **marks: str) -> str:
    """spec: fields beside the template."""
    template = (
        "{nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default},"
        f" requirements: [{requirements}]}}"
    )
    return _document("karpenter.sh/v1", "NodePool", name, "", marks) + (
        f"spec: {{template: {{spec: {template}}}, {spec}}}\n"
    )


def document(text: str) -> dict[str, Any]:
    """As one applies it to a cluster."""
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def applied(text: str) -> dict[str, Any]:
    """The object that headroom has made of the document: one of its inventory."""
    found = document(text)
    found["metadata"] |= {"uid": "u1", "labels": {PART_OF_LABEL: InventoryParent().id}}
    return found


def snapshot_in(
    folder: Path,
    lists: Mapping[str, Iterable[Mapping[str, Any]]],
    instance_types: Iterable[Mapping[str, Any]] | None = None,
) -> str:
    """A captured cluster with these objects, by plural, in a folder that is made for it; as `--cluster` takes it."""
    folder.mkdir(parents=True, exist_ok=True)
    for plural, items in lists.items():
        (folder / f"{plural}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items]}))
    if instance_types is not None:
        (folder / "instance_types.json").write_text(json.dumps([*instance_types]))
    return f"snapshot:{folder}"


def _document(version: str, kind: str, name: str, namespace: str, marks: dict[str, str]) -> str:
    metadata = f"name: {name}" + (f", namespace: {namespace}" if namespace else "")
    if marks:
        annotations = (f'headroom.dev/{key.replace("_", "-")}: "{value}"' for key, value in marks.items())
        metadata += f", annotations: {{{', '.join(annotations)}}}"
    return f"---\napiVersion: {version}\nkind: {kind}\nmetadata: {{{metadata}}}\n"
