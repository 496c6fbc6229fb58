"""The status of a buffer as its object should show it.

Field names and meanings are the CapacityBuffer CRD's (autoscaling.x-k8s.io/v1beta1, as Karpenter 1.14 ships it). Times are
kept where nothing changed, so that an unchanged cluster gets no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from reconciler.model.buffers import ACTIVE_CAPACITY, Fulfilment
from reconciler.model.changes import ApplyStatus, DemandOutcome
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.view import LiveObject
from reconciler.summary.owners import is_anothers

_PROVISIONING = "Provisioning"
_LONGEST_MESSAGE = 32_768
_CAPACITY_BUFFER, _BUFFER = "CapacityBuffer", "Buffer"


def buffer_status(outcome: DemandOutcome, live: LiveObject, now: datetime) -> ApplyStatus | None:
    """The write that makes the status say what came out; None when it already does, or when the status is not ours.

    Not ours: another controller writes it, or the buffer is handed to an autoscaler that does (`native`).
    """
    if live.ref.kind not in {_CAPACITY_BUFFER, _BUFFER} or is_anothers(live):
        return None
    if outcome.demand.fulfilment == Fulfilment.NATIVE:
        return None
    before = live.body.get("status") or {}
    generation = (live.body.get("metadata") or {}).get("generation")
    after: dict[str, Any] = {
        "conditions": [
            condition_document(condition, generation, before.get("conditions") or (), now)
            for condition in sorted(outcome.conditions, key=lambda item: item.type)
        ],
    }
    if outcome.demand.desired is not None:
        after["replicas"] = outcome.demand.desired
    if live.ref.kind == _CAPACITY_BUFFER:
        after |= _capacity_buffer(outcome, live)
    else:
        after |= _buffer(outcome, before, generation, now)
    return None if _same(after, before) else ApplyStatus(live.ref, after)


def _capacity_buffer(outcome: DemandOutcome, live: LiveObject) -> dict[str, Any]:
    spec = live.body.get("spec") or {}
    fields: dict[str, Any] = {"provisioningStrategy": spec.get("provisioningStrategy") or ACTIVE_CAPACITY}
    if outcome.demand.pod_template is not None:
        name, generation = outcome.demand.pod_template
        fields["podTemplateRef"] = {"name": name}
        if generation is not None:
            fields["podTemplateGeneration"] = generation
    return fields


def _buffer(outcome: DemandOutcome, before: Mapping[str, Any], generation: int | None, now: datetime) -> dict[str, Any]:
    """The Kubernetes Buffers API proposal's Buffer. lastFullyProvisioned moves when fullness begins or ends: not with each pass in between."""
    fields: dict[str, Any] = {} if generation is None else {"observedGeneration": generation}
    full = any(item.type == _PROVISIONING and item.status is ConditionStatus.TRUE for item in outcome.conditions)
    was_full = _status_of(before.get("conditions") or (), _PROVISIONING) == ConditionStatus.TRUE
    last = before.get("lastFullyProvisioned")
    if full != was_full:
        last = time_text(now)
    if last is not None:
        fields["lastFullyProvisioned"] = last
    return fields


def condition_document(
    condition: Condition,
    generation: int | None,
    before: Iterable[Mapping[str, Any]],
    now: datetime,
) -> dict[str, Any]:
    """lastTransitionTime: when the status last became another one, as the API conventions have it."""
    live: Mapping[str, Any] = next((item for item in before if item.get("type") == condition.type), {})
    unchanged = live.get("status") == condition.status
    document: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status.value,
        "reason": condition.reason,
        "message": condition.message[:_LONGEST_MESSAGE],
        "lastTransitionTime": live.get("lastTransitionTime") if unchanged else time_text(now),
    }
    if generation is not None:
        document["observedGeneration"] = generation
    return document


def _status_of(conditions: Iterable[Mapping[str, Any]], kind: str) -> str:
    return next((str(item.get("status")) for item in conditions if item.get("type") == kind), "")


def _same(after: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Fields that are gone count too: a size that no longer holds must be cleared."""
    conditions = {item.get("type"): item for item in before.get("conditions") or ()}
    known = (*after, "replicas", "podTemplateRef", "podTemplateGeneration")
    return conditions == {item["type"]: item for item in after["conditions"]} and all(
        after.get(name) == before.get(name) for name in known if name != "conditions"
    )


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC, as Kubernetes writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
