"""What a snapshot keeps of volumes, devices, claims, classes and queued workloads: what planning looks at.

Parameters and attributes of volumes are for the driver only and may name secrets, so they are never kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.cluster.decoding.storage import BIND_COMPLETED, DEFAULT_CLASS, SELECTED_NODE
from reconciler.cluster.resources import (
    CSI_NODES,
    DEVICE_CLASSES,
    PERSISTENT_VOLUMES,
    QUEUED_WORKLOADS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    Resource,
)

Kept = Mapping[str, Any]
"""By field, the part that is kept: None for all of it, else the same for its content."""

_CLAIM: Kept = {"devices": {"constraints": None, "requests": None}}
_SPECS: Mapping[tuple[str, str], Kept] = {
    PERSISTENT_VOLUMES.key: {
        "spec": {
            "accessModes": None,
            "capacity": None,
            "claimRef": {"namespace": None, "name": None},
            "csi": {"driver": None, "volumeHandle": None},
            "nodeAffinity": None,
            "storageClassName": None,
        },
        "status": {"phase": None},
    },
    VOLUME_CLAIMS.key: {
        "spec": {"accessModes": None, "resources": None, "storageClassName": None, "volumeName": None},
        "status": {"phase": None},
    },
    STORAGE_CLASSES.key: {"allowedTopologies": None, "provisioner": None, "volumeBindingMode": None},
    CSI_NODES.key: {"spec": {"drivers": {"allocatable": None, "name": None, "topologyKeys": None}}},
    QUEUED_WORKLOADS.key: {"spec": {"priority": None}},
    RUNTIME_CLASSES.key: {"overhead": None, "scheduling": None},
    RESOURCE_SLICES.key: {"spec": None},
    DEVICE_CLASSES.key: {"spec": {"selectors": None}},
    RESOURCE_CLAIMS.key: {"spec": _CLAIM, "status": {"allocation": {"devices": {"results": None}}}},
    RESOURCE_CLAIM_TEMPLATES.key: {"spec": {"spec": _CLAIM}},
}
ANNOTATIONS = (BIND_COMPLETED, SELECTED_NODE, *DEFAULT_CLASS)
"""Annotations of these kinds that placement reads."""


def reduced(resource: Resource, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is kept of an object besides its metadata; None for other kinds than those of this module."""
    kept = _SPECS.get(resource.key)
    return None if kept is None else _part(body, kept)


def _part(value: Any, kept: Kept) -> Any:
    if isinstance(value, list):
        return [_part(item, kept) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: value[name] if inner is None else _part(value[name], inner)
        for name, inner in kept.items()
        if name in value
    }
