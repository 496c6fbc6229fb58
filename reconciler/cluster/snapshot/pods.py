"""What a snapshot keeps of a pod's status.

That is its phase, its nominated node, the resource claims made for it, and resources in use that differ from its spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.cluster.decoding.resized import RESIZE_PENDING

Json = Any
_KEPT = ("phase", "nominatedNodeName", "resourceClaimStatuses")


def pod_status(pod: Mapping[str, Any]) -> dict[str, Json]:
    """The reduced status. Containers that have what they request, as nearly all do, are left out."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    resized: dict[str, Json] = {}
    for name, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        asked = {item.get("name"): item.get("resources") for item in spec.get(containers) or ()}
        kept = [
            {"name": item.get("name"), **_amounts(item)}
            for item in status.get(name) or ()
            if item.get("resources") is not None and _differs(asked.get(item.get("name")), item)
        ]
        resized |= {name: kept} if kept else {}
    if status.get("resources") is not None and _differs(spec.get("resources"), status):
        resized |= _amounts(status)
    conditions = [
        {name: item[name] for name in ("type", "status", "reason") if name in item}
        for item in status.get("conditions") or ()
        if item.get("type") == RESIZE_PENDING
    ]
    resized |= {"conditions": conditions} if resized and conditions else {}
    return {name: status[name] for name in _KEPT if name in status} | resized


def _differs(asked: Mapping[str, Any] | None, status: Mapping[str, Any]) -> bool:
    wanted = (asked or {}).get("requests") or {}
    has = status["resources"].get("requests") or {}
    return bool(has != wanted or (status.get("allocatedResources") or wanted) != wanted)


def _amounts(status: Mapping[str, Any]) -> dict[str, Json]:
    kept: Iterable[str] = ("resources", "allocatedResources")
    return {name: status[name] for name in kept if status.get(name) is not None}
