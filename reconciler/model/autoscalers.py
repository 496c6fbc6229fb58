"""The autoscaler that serves a CapacityBuffer, as the buffer's status shows, and how long headroom relies on what it says.

The API server records, for every field, the manager that set it. The field manager is the first part of a client's user agent:
Karpenter sets it to `karpenter` (pkg/operator), and Cluster Autoscaler uses its program's name. GKE's autoscaler is built from
the latter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.marks import is_own
from reconciler.model.quantity import time_of
from reconciler.model.view import LiveObject

_KARPENTER = "karpenter"
"""Karpenter compares the whole status with its own (controllers/capacitybuffer). Others compare only their conditions' status."""
KNOWN_AUTOSCALERS: Mapping[str, str] = {
    _KARPENTER: "Karpenter",
    "cluster-autoscaler": "Cluster Autoscaler",
    "gke-cluster-autoscaler": "GKE's autoscaler",
}
"""Field manager → the product's name."""
CAPACITY_BUFFER_KIND = "CapacityBuffer"
_CONDITIONS = "status.conditions."
_PROVISIONING = "Provisioning"
_WORDS = frozenset({f"{_CONDITIONS}ReadyForProvisioning", f"{_CONDITIONS}{_PROVISIONING}"})
_REPLICAS = "status.replicas"
"""Only an autoscaler that serves a buffer sets these. Other controllers may add conditions of their own."""


@dataclass(frozen=True, slots=True)
class ServingAutoscaler:
    """reports: it says that the capacity is provisioned, for the present spec. replicas: the size that it keeps.

    conditions: types of the conditions of which it owns a field. last_write: None where the object does not tell.
    answers: it restores its status when another client has changed it.
    """

    name: str
    reports: bool = False
    replicas: int | None = None
    conditions: frozenset[str] = frozenset()
    last_write: datetime | None = None
    answers: bool = False


def serving_autoscaler(live: LiveObject) -> ServingAutoscaler | None:
    """The known autoscaler that owns fields of the status; of several the last writer. Autoscalers serve only CapacityBuffers."""
    if live.ref.kind != CAPACITY_BUFFER_KIND:
        return None
    serving = [
        _serving(live, manager)
        for manager, fields in sorted(live.managers.items())
        if manager in KNOWN_AUTOSCALERS
        and (fields & _WORDS or (_REPLICAS in fields and not _is_written_over(live, manager)))
    ]
    return max(serving, key=lambda item: item.last_write.timestamp() if item.last_write else 0.0, default=None)


def _is_written_over(live: LiveObject, manager: str) -> bool:
    """Whether headroom owns part of the status. Karpenter would have restored its own if it still served the buffer."""
    our_fields = (fields for name, fields in live.managers.items() if is_own(name))
    return manager == _KARPENTER and any(fields & _WORDS for fields in our_fields)


def _serving(live: LiveObject, manager: str) -> ServingAutoscaler:
    fields = live.managers[manager]
    status = live.body.get("status") or {}
    replicas = status.get("replicas")
    types = frozenset(field.removeprefix(_CONDITIONS) for field in fields if field.startswith(_CONDITIONS))
    return ServingAutoscaler(
        name=KNOWN_AUTOSCALERS[manager],
        reports=_PROVISIONING in types and _is_provisioned(live),
        replicas=replicas if isinstance(replicas, int) else None,
        conditions=types,
        last_write=time_of(live.status_writes.get(manager, "")),
        answers=manager == _KARPENTER,
    )


def _is_provisioned(live: LiveObject) -> bool:
    """Whether the status says so of the present generation. Cluster Autoscaler's conditions have none, and always count."""
    condition = condition_of(live, _PROVISIONING)
    return condition.get("status") == "True" and condition.get("observedGeneration") in {None, live.generation}


def condition_of(live: LiveObject | None, kind: str) -> Mapping[str, Any]:
    """The condition of that type in an object's status; empty where there is none."""
    conditions = () if live is None else (live.body.get("status") or {}).get("conditions") or ()
    matching = (item for item in conditions if isinstance(item, Mapping) and item.get("type") == kind)
    return next(matching, {})


SILENCE = timedelta(minutes=10)
"""An autoscaler that has been silent this long is not relied on if capacity is missing."""
GRACE = timedelta(minutes=1)
"""How long capacity may be missing before headroom acts. A running autoscaler reports it within that time."""
CORRECTED_AFTER = timedelta(minutes=1)
"""How old an autoscaler's wrong status of a buffer that headroom keeps must be before headroom corrects it.

Without a pause the two could overwrite each other forever."""

ASKED_AFTER = timedelta(minutes=10)
"""How long an autoscaler may be silent about a buffer that headroom keeps, before headroom asks whether it still serves it.

To ask, headroom overwrites the autoscaler's status. A running autoscaler restores it."""
ANSWERED_WITHIN = timedelta(seconds=15)
"""How long to wait for that answer. Karpenter sees the change at once, and looks every 30 seconds anyway."""
