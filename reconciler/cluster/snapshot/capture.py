"""Takes a snapshot: what is written of each kind, without secrets.

Of kinds that placement looks at, the fields are kept that headroom reads (`decoding/wire.py`). So environment variables, commands, images,
addresses, and what only a volume's driver understands never get in, and no list of secrets has to be complete. Objects as declared in Git are
kept whole but for their pods' containers. Texts in them that look like credentials are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from reconciler.cluster.apply import MEMORY_KEY, InventoryParent
from reconciler.cluster.decoding.decode import wire_of
from reconciler.cluster.decoding.storage import BIND_COMPLETED, DEFAULT_CLASS, SELECTED_NODE
from reconciler.cluster.resources import (
    CONFIG_MAPS,
    RESOURCES,
    WORKLOADS,
    Resource,
    only_object,
)
from reconciler.cluster.snapshot.files import CATALOG_FILE, WORKLOADS_FILE, file_of
from reconciler.manifests.instance_types import instance_types_document
from reconciler.manifests.pods.workload import ENDINGS
from reconciler.model.nodes import InstanceType
from reconciler.model.redaction import redacted

ANNOTATIONS = (BIND_COMPLETED, SELECTED_NODE, *DEFAULT_CLASS)
"""Annotations of volumes, claims and storage classes that placement reads."""
Json = Any

_METADATA = (
    "name",
    "namespace",
    "uid",
    "generation",
    "labels",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
)
_ANNOTATIONS = (
    "karpenter.sh/",
    "headroom.dev/",
    "autoscaling.x-k8s.io/",
    "cluster-autoscaler.kubernetes.io/",
    "applyset.kubernetes.io/",
    "deprecated.daemonset.template.generation",
)
_CONTAINER = ("name", "resources", "ports", "restartPolicy")
_VOLUME = ("name", "persistentVolumeClaim")
_WORKLOAD_STATUS = ("replicas", "succeeded", "active")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


Read = Callable[[Resource], Iterable[Mapping[str, Any]]]
"""Gives every object of a kind; none if the cluster does not have the kind."""
Scaled = Iterable[tuple[Resource, Mapping[str, Any]]]
"""Objects with a scale, of kinds that headroom does not know by name."""


@dataclass(frozen=True, slots=True)
class Captured:
    """files: contents by name. counts: the number of objects by plural."""

    files: Mapping[str, bytes]
    counts: Mapping[str, int]


def captured(
    read: Read, catalog: Iterable[InstanceType] = (), scaled: Scaled = (), inventory: InventoryParent | None = None
) -> Captured:
    """A snapshot's files. Equal clusters give equal bytes. Raises what `read` raises.

    inventory: its memory decides which requests may still run; no other ConfigMap is read.
    """
    lists: dict[str, list[Json]] = {}
    counts: dict[str, int] = {}
    parent = inventory or InventoryParent()
    for resource in (*RESOURCES, only_object(CONFIG_MAPS, parent.namespace, parent.name)):
        found = sorted((_cleaned(resource, item) for item in read(resource)), key=_place)
        counts[resource.plural] = len(found)
        lists.setdefault(file_of(resource), []).extend(found)
    for resource, item in sorted(scaled, key=lambda pair: (pair[0].key, *_place(pair[1]))):
        counts[resource.plural] = counts.get(resource.plural, 0) + 1
        lists.setdefault(WORKLOADS_FILE, []).append(_cleaned(resource, item))
    files = {
        name: _printed({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
        for name, items in lists.items()
        if items
    }
    types = instance_types_document(catalog)
    if types:
        files[CATALOG_FILE] = _printed(types)
    return Captured(files, counts)


def _place(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = item["metadata"]
    return (metadata.get("namespace", ""), metadata["name"])


def _printed(document: Json) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _cleaned(resource: Resource, item: Mapping[str, Any]) -> Json:
    return _masked(_kept(resource, item))


def _masked(value: Json, key: str = "") -> Json:
    """The value with texts masked that look like credentials. Flags and numbers never do, whatever their keys."""
    if isinstance(value, str):
        return redacted(value, key)
    if isinstance(value, Mapping):
        return {name: _masked(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, key) for inner in value]
    return value


def _kept(resource: Resource, item: Mapping[str, Any]) -> dict[str, Json]:
    body = dict(item)
    metadata = body.get("metadata") or {}
    kind = {
        "apiVersion": body.pop("apiVersion", "") or resource.api_version,
        "kind": resource.kind,
    }
    kept = _metadata(metadata)
    managers = _managers(metadata.get("managedFields") or ())
    if managers and (resource.declared or resource in WORKLOADS):
        kept["managedFields"] = managers
    if resource.key == CONFIG_MAPS.key:
        return {**kind, "metadata": kept, "data": _only(body.get("data") or {}, (MEMORY_KEY,))}
    if resource.part:
        return {**kind, "metadata": kept, **_as_read(resource, item)}
    if resource in WORKLOADS:
        body["status"] = _workload_status(body.get("status") or {})
    body.pop("metadata", None)
    body.pop("kind", None)
    return {**kind, "metadata": kept, **{name: _without_secrets(value) for name, value in body.items()}}


def _as_read(resource: Resource, item: Mapping[str, Any]) -> dict[str, Json]:
    """The fields that headroom reads of an object of this kind, besides its metadata. Raises `Invalid`."""
    body: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(wire_of(resource, item)))
    del body["metadata"]
    return body


def _workload_status(status: Mapping[str, Any]) -> dict[str, Json]:
    """The parts of a workload's status that matter: how many pods it has, and the progress of a Job."""
    ended = [_only(item, ("type", "status")) for item in status.get("conditions") or () if item.get("type") in ENDINGS]
    return {**_only(status, _WORKLOAD_STATUS), **({"conditions": ended} if ended else {})}


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Json]:
    kept = _only(metadata, _METADATA)
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if (name.startswith(_ANNOTATIONS) and name != _LAST_APPLIED) or name in ANNOTATIONS
    }
    return {**kept, "annotations": annotations} if annotations else kept


def _without_secrets(value: Json) -> Json:
    """The value with pod specs at any depth (a Buffer has one inside) reduced to what scheduling looks at."""
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    cleaned: dict[str, Json] = {}
    for name, inner in value.items():
        if name in {"containers", "initContainers"} and isinstance(inner, list):
            cleaned[name] = [_only(container, _CONTAINER) for container in inner]
        elif name == "volumes" and isinstance(inner, list):
            cleaned[name] = [_volume(volume) for volume in inner]
        elif name == "metadata" and isinstance(inner, Mapping):
            cleaned[name] = _metadata(inner)
        elif name != "ephemeralContainers":
            cleaned[name] = _without_secrets(inner)
    return cleaned


def _volume(volume: Mapping[str, Any]) -> dict[str, Json]:
    return {**_only(volume, _VOLUME), **({"ephemeral": {}} if volume.get("ephemeral") else {})}


def _managers(entries: Iterable[Mapping[str, Any]]) -> list[Json]:
    """The managedFields two levels deep, as far as headroom reads them, since deeper keys contain values. Condition types are kept
    too."""
    return [
        {
            **_only(entry, ("manager", "operation", "subresource", "time")),
            "fieldsV1": {
                section: {name: _condition_keys(name, below) for name, below in inner.items() if name.startswith("f:")}
                for section, inner in (entry.get("fieldsV1") or {}).items()
                if section in {"f:spec", "f:status"}
            },
        }
        for entry in entries
    ]


def _condition_keys(name: str, below: Mapping[str, Any]) -> dict[str, Json]:
    return {key: {} for key in below if key.startswith('k:{"type":')} if name == "f:conditions" else {}


def _only(document: Mapping[str, Any], names: Iterable[str]) -> dict[str, Json]:
    return {name: document[name] for name in names if name in document}
