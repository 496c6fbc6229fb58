"""Reads a snapshot as objects for the embedded cluster to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from reconciler.cluster.embedded.admission import SERVED
from reconciler.cluster.embedded.store import Body
from reconciler.cluster.resources import NAMESPACES, WORKLOADS, Resource, group_of
from reconciler.cluster.snapshot.files import read_snapshot
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType
from reconciler.model.refs import DEFAULT_NAMESPACE, ObjectRef

_FINISHED = {"Succeeded", "Failed"}


def snapshot_objects(
    path: str | Path,
) -> tuple[list[tuple[ObjectRef, Body]], tuple[InstanceType, ...], tuple[Finding, ...]]:
    """The objects in an order in which they may be made, the catalogue, () where there is none, and what was not read.

    Namespaces that no file lists are added. Raises `Invalid` naming the file that cannot be read.
    """
    snapshot = read_snapshot(path)
    found = [
        (resource, item)
        for resource, items in sorted(snapshot.objects.items(), key=lambda entry: _turn(entry[0]))
        for item in _bodies(resource, items)
    ]
    objects = [(_ref_in(resource, body), body) for resource, body in found]
    listed = {ref.name for ref, _ in objects if (ref.group, ref.kind) == NAMESPACES.key}
    missing = sorted({ref.namespace for ref, _ in objects} - listed - {""})
    return [*(_namespace(name) for name in missing), *objects], snapshot.catalog, snapshot.findings


def ref_of(manifest: Mapping[str, Any]) -> ObjectRef:
    """What a manifest is about; an absent namespace is `default`. Raises `Invalid` for a kind that is not served."""
    group, kind = group_of(str(manifest.get("apiVersion", ""))), str(manifest.get("kind", ""))
    resource = SERVED.get((group, kind))
    if resource is None:
        raise Invalid(f"no matches for kind {kind!r} in version {manifest.get('apiVersion')!r}")
    return _ref_in(resource, manifest)


def _ref_in(resource: Resource, body: Mapping[str, Any]) -> ObjectRef:
    metadata = body.get("metadata") or {}
    namespace = (metadata.get("namespace") or DEFAULT_NAMESPACE) if resource.namespaced else ""
    return ObjectRef(resource.group, resource.kind, namespace, str(metadata.get("name", "")))


def _turn(resource: Resource) -> tuple[int, str]:
    """Pods before what would make them, and all else before pods, since they lie on nodes and have priorities."""
    last = ("Node", "NodeClaim", "Pod", *(workload.kind for workload in WORKLOADS), "DaemonSet")
    return (last.index(resource.kind) if resource.kind in last else -1, resource.kind)


def _bodies(resource: Resource, items: list[msgspec.Raw]) -> Iterator[Body]:
    """Items of a list need not say what they are. Finished pods are left out: they would be created again."""
    for item in items:
        body: dict[str, Any] = msgspec.json.decode(item)
        if resource.kind == "Pod" and (body.get("status") or {}).get("phase") in _FINISHED:
            continue
        body.setdefault("apiVersion", "/".join(filter(None, (resource.group, *resource.versions[:1]))))
        body.setdefault("kind", resource.kind)
        yield body


def _namespace(name: str) -> tuple[ObjectRef, Body]:
    ref = ObjectRef(*NAMESPACES.key, "", name)
    return ref, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
