"""Reads a snapshot as objects for the embedded cluster to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Beginning:
    """What an embedded cluster begins with.

    objects: in an order in which they can be created. scaled: kinds of which only the scale is known. instance_types: the catalog,
    () where there is none. findings: what was not read.
    """

    objects: tuple[tuple[ObjectRef, Body], ...]
    scaled: tuple[Resource, ...]
    instance_types: tuple[InstanceType, ...]
    findings: tuple[Finding, ...]


def beginning_of(path: str | Path) -> Beginning:
    """A snapshot's objects. Namespaces that no file lists are added. Raises `Invalid` naming the file that cannot be read."""
    snapshot = read_snapshot(path)
    found = [
        (resource, item)
        for resource, items in sorted(snapshot.objects.items(), key=lambda entry: _turn(entry[0]))
        for item in _bodies(resource, items)
    ]
    objects = [(_ref_in(resource, body), body) for resource, body in found]
    listed = {ref.name for ref, _ in objects if (ref.group, ref.kind) == NAMESPACES.key}
    missing = sorted({ref.namespace for ref, _ in objects} - listed - {""})
    scaled = tuple(resource for resource in snapshot.objects if resource.key not in SERVED)
    return Beginning((*(_namespace(name) for name in missing), *objects), scaled, snapshot.catalog, snapshot.findings)


def ref_of(manifest: Mapping[str, Any], scaled: Mapping[tuple[str, str], Resource]) -> ObjectRef:
    """The object of a manifest. An absent namespace is `default`. Raises `Invalid` for a kind that is not served."""
    key = (group_of(str(manifest.get("apiVersion", ""))), str(manifest.get("kind", "")))
    resource, kind = SERVED.get(key) or scaled.get(key), key[1]
    if resource is None:
        raise Invalid(f"no matches for kind {kind!r} in version {manifest.get('apiVersion')!r}")
    return _ref_in(resource, manifest)


def _ref_in(resource: Resource, body: Mapping[str, Any]) -> ObjectRef:
    metadata = body.get("metadata") or {}
    namespace = (metadata.get("namespace") or DEFAULT_NAMESPACE) if resource.namespaced else ""
    return ObjectRef(resource.group, resource.kind, namespace, str(metadata.get("name", "")))


def _turn(resource: Resource) -> tuple[int, str]:
    """The order of creation: pods before the workloads that would create them, and all else before pods, which need nodes and
    priority classes."""
    last = ("Node", "NodeClaim", "Pod", *(workload.kind for workload in WORKLOADS), "DaemonSet")
    if resource.key not in SERVED:
        return (len(last), resource.kind)
    return (last.index(resource.kind) if resource.kind in last else -1, resource.kind)


def _bodies(resource: Resource, items: list[msgspec.Raw]) -> Iterator[Body]:
    """The items, with apiVersion and kind, which those of a list may lack. Finished pods are left out, since they would run again."""
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
