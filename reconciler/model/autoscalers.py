"""The autoscaler that serves a CapacityBuffer, as the buffer's own status tells it.

A status says who wrote it: the API server keeps, for every field, the manager that set it. Field managers are the first
part of a client's user agent: Karpenter sets it to `karpenter` (pkg/operator), Cluster Autoscaler has the name of its
program. GKE's autoscaler is built from the latter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciler.model.marks import is_own
from reconciler.model.view import LiveObject

_KARPENTER = "karpenter"
"""It compares the whole status with what it would say (controllers/capacitybuffer); others look at their conditions' status alone."""
KNOWN_AUTOSCALERS: Mapping[str, str] = {
    _KARPENTER: "Karpenter",
    "cluster-autoscaler": "Cluster Autoscaler",
    "gke-cluster-autoscaler": "GKE's autoscaler",
}
"""Field manager → how people call it."""
CAPACITY_BUFFER_KIND = "CapacityBuffer"
_CONDITIONS = "status.conditions."
_PROVISIONING = "Provisioning"
_WORDS = frozenset({f"{_CONDITIONS}ReadyForProvisioning", f"{_CONDITIONS}{_PROVISIONING}"})
_REPLICAS = "status.replicas"
"""Only who serves a buffer sets these: other controllers may well add conditions of their own."""


@dataclass(frozen=True, slots=True)
class ServingAutoscaler:
    """reports: by its own word the capacity is there, for the spec as it is now. replicas: the size that it keeps.

    conditions: the types of conditions of which it owns a part. last_write: None where the object does not say.
    answers: it writes its words anew when somebody else has changed them.
    """

    name: str
    manager: str
    reports: bool = False
    replicas: int | None = None
    conditions: frozenset[str] = frozenset()
    last_write: datetime | None = None
    answers: bool = False


def serving_autoscaler(live: LiveObject | None) -> ServingAutoscaler | None:
    """The known autoscaler whose fields are in the status, the one that wrote last. Only CapacityBuffers are ever served."""
    if live is None or live.ref.kind != CAPACITY_BUFFER_KIND:
        return None
    serving = [
        _serving(live, manager)
        for manager, fields in sorted(live.managers.items())
        if manager in KNOWN_AUTOSCALERS
        and (fields & _WORDS or (_REPLICAS in fields and not _is_written_over(live, manager)))
    ]
    return max(serving, key=lambda item: item.last_write.timestamp() if item.last_write else 0.0, default=None)


def _is_written_over(live: LiveObject, manager: str) -> bool:
    """Headroom's words stand in place of those that this one would have written anew."""
    own = (fields for name, fields in live.managers.items() if is_own(name))
    return manager == _KARPENTER and any(fields & _WORDS for fields in own)


def _serving(live: LiveObject, manager: str) -> ServingAutoscaler:
    fields = live.managers[manager]
    status = live.body.get("status") or {}
    replicas = status.get("replicas")
    types = frozenset(field.removeprefix(_CONDITIONS) for field in fields if field.startswith(_CONDITIONS))
    return ServingAutoscaler(
        name=KNOWN_AUTOSCALERS[manager],
        manager=manager,
        reports=_PROVISIONING in types and _is_provisioned(live),
        replicas=replicas if isinstance(replicas, int) else None,
        conditions=types,
        last_write=time_of(live.status_writes.get(manager, "")),
        answers=manager == _KARPENTER,
    )


def _is_provisioned(live: LiveObject) -> bool:
    """Cluster Autoscaler's conditions say no generation: they count for the present one."""
    condition = condition_of(live, _PROVISIONING)
    seen = condition.get("observedGeneration")
    generation = (live.body.get("metadata") or {}).get("generation")
    return condition.get("status") == "True" and seen in {None, generation}


def condition_of(live: LiveObject | None, kind: str) -> Mapping[str, Any]:
    """The condition of that type in an object's status; empty where there is none."""
    conditions = () if live is None else (live.body.get("status") or {}).get("conditions") or ()
    found = (item for item in conditions if isinstance(item, Mapping) and item.get("type") == kind)
    return next(found, {})


def time_of(text: object) -> datetime | None:
    """A time as Kubernetes writes it; None for anything else."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) and text else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
