"""Every status that a plan changes. A status is written only if it differs from the object's.

Field names and meanings of a buffer's are the CapacityBuffer CRD's (autoscaling.x-k8s.io/v1beta1, as Karpenter 1.14 ships it) and those
of the Kubernetes Buffers API proposal. Times are kept where nothing changed, so that an unchanged cluster gets no write.

What an autoscaler that serves the buffer has written stays as it is. A field that headroom owns too must be written with its present
value: if it were left out, the API server would end headroom's ownership.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from reconciler.model.autoscalers import ASKED_AFTER, CORRECTED_AFTER, ServingAutoscaler, condition_of
from reconciler.model.buffers import ACTIVE_CAPACITY, EXPIRED, FULFILLED, Fulfilment, virtual_labels
from reconciler.model.changes import Action, ApplyStatus, DemandOutcome, Plan
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.marks import is_own
from reconciler.model.pod_spec_from_shape import pod_spec_of
from reconciler.model.provisioning_requests import Phase
from reconciler.model.quantity import time_text
from reconciler.model.remembered import PassCache
from reconciler.model.schedules import ScheduleOutcome, schedule_ref_of
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.buffers.keeping import also_served

_SCHEDULE_FIELDS = ("currentValue", "nextValue", "nextValueTime", "observedGeneration")


def is_anothers(live: LiveObject, fields: Iterable[str]) -> bool:
    """Whether a field manager other than headroom owns one of these fields of the status, or all of it. One that only adds a condition
    of its own does not count."""
    ours = {"status", *(f"status.{name}" for name in fields)}
    return any(ours & paths for manager, paths in live.managers.items() if not is_own(manager))


def request_status(outcome: DemandOutcome, live: LiveObject, now: datetime) -> ApplyStatus | None:
    """The write that brings the conditions up to date; None if they are.

    Earlier conditions are written again, since an apply without a field gives up its ownership.
    """
    before = live.body.get("status") or {}
    by_type = {str(item.get("type")): item for item in before.get("conditions") or ()}
    after = []
    for condition in outcome.conditions:
        there = by_type.get(condition.type, {})
        same = (there.get("status"), there.get("reason", ""), there.get("message", "")) == (
            condition.status.value,
            condition.reason,
            condition.message,
        )
        after.append(dict(there) if same else condition_document(condition, live, now))
    status: dict[str, Any] = {"conditions": after}
    same = after == [by_type[name] for name in sorted(by_type)]
    details = {} if outcome.demand.request is None else dict(outcome.demand.request.details)
    if details:
        status["provisioningClassDetails"] = details
        same = same and details == before.get("provisioningClassDetails")
    return None if same else ApplyStatus(live.ref, status)


def schedule_status(outcome: ScheduleOutcome, live: LiveObject) -> ApplyStatus | None:
    """The write that brings the schedule's value up to date; None if it is, or if another controller writes the status.

    nextValue and nextValueTime are absent when nothing changes any more.
    """
    if is_anothers(live, _SCHEDULE_FIELDS):
        return None
    after: dict[str, Any] = {"currentValue": outcome.current_value}
    if outcome.next_value is not None and outcome.next_value_time is not None:
        after |= {"nextValue": outcome.next_value, "nextValueTime": time_text(outcome.next_value_time)}
    if live.generation is not None:
        after["observedGeneration"] = live.generation
    before = live.body.get("status") or {}
    same = all(after.get(name) == before.get(name) for name in _SCHEDULE_FIELDS)
    return None if same else ApplyStatus(live.ref, after)


def status_writes(
    plan: Plan, view: ClusterView, now: datetime, cache: PassCache | None = None
) -> tuple[ApplyStatus, ...]:
    """The status of every demand and schedule whose object is in the cluster, stays there, and has another status. now: by the cluster's
    clock, against which later passes hold the times in it."""
    cache = cache or PassCache()
    cache.begin()

    def of_buffer(outcome: DemandOutcome, live: LiveObject) -> ApplyStatus | None:
        return buffer_status(outcome, live, now)

    leaving = {change.ref for change in plan.objects if change.action is Action.DELETE}
    writes = []
    for outcome in plan.demands:
        request = outcome.demand.request
        if request is not None and request.phase is Phase.LEFT:
            continue
        live = view.objects.get(outcome.demand.ref)
        if live is not None and live.ref not in leaving:
            if request is not None:
                writes.append(request_status(outcome, live, now))
            elif outcome.demand.autoscaler is not None:  # next to an autoscaler the status depends on the time
                writes.append(buffer_status(outcome, live, now))
            else:
                writes.append(cache.once(live.ref, of_buffer, outcome, live))
    for schedule in plan.schedules:
        live = view.objects.get(schedule_ref_of(schedule.namespace, schedule.name))
        if live is not None and live.ref not in leaving:
            writes.append(schedule_status(schedule, live))
    return tuple(write for write in writes if write is not None)


_PROVISIONING = "Provisioning"
_CONDITIONS = "status.conditions"
_LONGEST_MESSAGE = 32_768
_CAPACITY_BUFFER, _BUFFER = "CapacityBuffer", "Buffer"
_OWN_TYPES = frozenset(
    {"ReadyForProvisioning", _PROVISIONING, "LimitedByQuotas", "Suspended", "Fulfilment", FULFILLED, EXPIRED}
)
_FIELDS = ("replicas", "podTemplateRef", "podTemplateGeneration", "provisioningStrategy")

Status = dict[str, Any]
_SHARED = frozenset({"ReadyForProvisioning", _PROVISIONING})


def buffer_status(outcome: DemandOutcome, live: LiveObject, now: datetime) -> ApplyStatus | None:
    """The write that brings the status up to date; None if it is.

    now: by the cluster's clock.
    """
    if live.ref.kind not in {_CAPACITY_BUFFER, _BUFFER}:
        return None
    before = live.body.get("status") or {}
    after = _own_status(outcome, live, now)
    autoscaler = outcome.demand.autoscaler
    if outcome.demand.fulfilment == Fulfilment.NATIVE:
        after = _beside(after, live, autoscaler) if autoscaler is not None or not outcome.demand.holds_nodes else after
    elif autoscaler is not None and _is_let_be(
        autoscaler, now, agrees=_agrees(after, live), asks=also_served(outcome.demand)
    ):
        after = _beside(after, live, autoscaler)
    after["conditions"] = _in_order(after["conditions"], before.get("conditions") or ())
    return None if _same(after, before, live) else ApplyStatus(live.ref, after)


def _own_status(outcome: DemandOutcome, live: LiveObject, now: datetime) -> Status:
    after: Status = {"conditions": [condition_document(item, live, now) for item in outcome.conditions]}
    if outcome.demand.desired is not None:
        after["replicas"] = outcome.demand.desired
    if live.ref.kind == _CAPACITY_BUFFER:
        return after | _capacity_buffer(outcome, live)
    return after | _buffer(outcome, live, now)


def _beside(after: Status, live: LiveObject, autoscaler: ServingAutoscaler | None) -> Status:
    """What headroom may write next to an autoscaler: its own conditions, and fields that it already owns too."""
    theirs = frozenset[str]() if autoscaler is None else autoscaler.conditions
    kept = [condition_of(live, kind) for kind in sorted(theirs) if _owns(live, f"{_CONDITIONS}.{kind}")]
    ours = [condition for condition in after["conditions"] if condition["type"] not in theirs]
    status: Status = {"conditions": [*ours, *(dict(condition) for condition in kept if condition)]}
    before = live.body.get("status") or {}
    fields = _FIELDS if autoscaler is not None else ()
    return status | {name: before[name] for name in fields if name in before and _owns(live, f"status.{name}")}


def _agrees(after: Mapping[str, Any], live: LiveObject) -> bool:
    """Whether the live status says the same, even in other words."""
    shared = [item for item in after["conditions"] if item["type"] in _SHARED]
    said = all(condition_of(live, item["type"]).get("status") == item["status"] for item in shared)
    return said and after.get("replicas") == (live.body.get("status") or {}).get("replicas")


def _is_let_be(autoscaler: ServingAutoscaler, now: datetime, *, agrees: bool, asks: bool) -> bool:
    """Whether the autoscaler's status is left alone. A recent one always is. A later one is while it is right, unless headroom has to
    ask whether the autoscaler still runs."""
    if autoscaler.last_write is None:
        return agrees
    silent_for = now - autoscaler.last_write
    return silent_for < CORRECTED_AFTER or (agrees and not (asks and autoscaler.answers and silent_for > ASKED_AFTER))


def _owns(live: LiveObject, path: str) -> bool:
    return any(path in fields for manager, fields in live.managers.items() if is_own(manager))


def _in_order(conditions: Iterable[Status], before: Iterable[Mapping[str, Any]]) -> list[Status]:
    """Existing conditions keep their places; new ones follow by type."""
    places = {item.get("type"): index for index, item in enumerate(before)}
    return sorted(conditions, key=lambda item: (places.get(item["type"], len(places)), item["type"]))


def _capacity_buffer(outcome: DemandOutcome, live: LiveObject) -> dict[str, Any]:
    spec = live.body.get("spec") or {}
    fields: dict[str, Any] = {"provisioningStrategy": spec.get("provisioningStrategy") or ACTIVE_CAPACITY}
    if outcome.demand.pod_template is not None:
        name, generation = outcome.demand.pod_template
        fields["podTemplateRef"] = {"name": name}
        if generation is not None:
            fields["podTemplateGeneration"] = generation
    return fields


def _buffer(outcome: DemandOutcome, live: LiveObject, now: datetime) -> dict[str, Any]:
    """The status of a Buffer. The time when it was last full changes when fullness begins or ends, not with each pass in between.
    podBasedBufferSpec: the pods that the buffer was translated into.

    Newer fields are written beside those of the spec that came with them: an older definition in the cluster has neither.
    """
    before, spec = live.body.get("status") or {}, live.body.get("spec") or {}
    fields: dict[str, Any] = {} if live.generation is None else {"observedGeneration": live.generation}
    if "replicas" in spec:
        fields["selector"] = ",".join(f"{name}={value}" for name, value in virtual_labels(live.ref).items())
    if outcome.demand.one_shot and "refillStrategy" in spec:
        fields["consumedReplicas"] = outcome.demand.used
    if outcome.demand.shape is not None and outcome.demand.desired is not None:
        fields["podBasedBufferSpec"] = {
            "replicaNum": outcome.demand.desired,
            "podSpec": pod_spec_of(outcome.demand.shape),
        }
    was_full = condition_of(live, _PROVISIONING).get("status") == ConditionStatus.TRUE
    last = before.get("lastFullyProvisioned") if was_full == bool(outcome.is_full) else time_text(now)
    if last is not None:
        fields["lastFullyProvisioned"] = last
    return fields


def condition_document(condition: Condition, live: LiveObject, now: datetime) -> dict[str, Any]:
    """One condition as JSON. lastTransitionTime: when its status last changed, by the API conventions."""
    before = condition_of(live, condition.type)
    unchanged = before.get("status") == condition.status
    document: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status.value,
        "reason": condition.reason,
        "message": condition.message[:_LONGEST_MESSAGE],
        "lastTransitionTime": before.get("lastTransitionTime") if unchanged else time_text(now),
    }
    if live.generation is not None:
        document["observedGeneration"] = live.generation
    return document


def _same(after: Mapping[str, Any], before: Mapping[str, Any], live: LiveObject) -> bool:
    """Whether nothing changes. Fields that headroom no longer sets count too, since an outdated size must be cleared. Conditions of
    others do not count."""
    managers = live.managers or {}
    our_types = {kind for kind in _OWN_TYPES if not managers or _owns(live, f"{_CONDITIONS}.{kind}")}
    wanted = {item["type"]: item for item in after["conditions"]}
    there = {item.get("type"): item for item in before.get("conditions") or ()}
    if any(there.get(kind) != wanted.get(kind) for kind in our_types | wanted.keys()):
        return False
    fields = [name for name in (*_FIELDS, "podBasedBufferSpec") if not managers or _owns(live, f"status.{name}")]
    return all(after.get(name) == before.get(name) for name in (*after, *fields) if name != "conditions")
