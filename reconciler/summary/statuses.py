"""Every status that a plan changes. A status is written only if it differs from the object's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from reconciler.model.changes import Action, ApplyStatus, DemandOutcome, Plan, ScheduleOutcome
from reconciler.model.marks import is_own
from reconciler.model.provisioning_requests import Phase
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import schedule_ref_of
from reconciler.model.view import ClusterView, LiveObject
from reconciler.summary.buffers import buffer_status, condition_document, time_text

_FIELDS = ("currentValue", "nextValue", "nextValueTime", "observedGeneration")


def is_anothers(live: LiveObject, fields: Iterable[str]) -> bool:
    """Whether a field manager other than headroom owns one of these fields of the status, or all of it. One that only adds a condition
    of its own does not count."""
    ours = {"status", *(f"status.{name}" for name in fields)}
    return any(ours & paths for manager, paths in live.managers.items() if not is_own(manager))


def request_status(outcome: DemandOutcome, live: LiveObject, now: datetime) -> ApplyStatus | None:
    """The write that brings the conditions up to date; None if they are.

    Earlier conditions are written again, since an apply without a field gives up its ownership.
    """
    before = (live.body.get("status") or {}).get("conditions") or ()
    generation = (live.body.get("metadata") or {}).get("generation")
    by_type = {str(item.get("type")): item for item in before}
    after = []
    for condition in outcome.conditions:
        there = by_type.get(condition.type, {})
        same = (there.get("status"), there.get("reason", ""), there.get("message", "")) == (
            condition.status.value,
            condition.reason,
            condition.message,
        )
        after.append(dict(there) if same else condition_document(condition, generation, before, now))
    status: dict[str, Any] = {"conditions": after}
    same = after == [by_type[name] for name in sorted(by_type)]
    details = {} if outcome.demand.request is None else dict(outcome.demand.request.details)
    if details:
        status["provisioningClassDetails"] = details
        same = same and details == (live.body.get("status") or {}).get("provisioningClassDetails")
    return None if same else ApplyStatus(live.ref, status)


def schedule_status(outcome: ScheduleOutcome, live: LiveObject) -> ApplyStatus | None:
    """The write that brings the schedule's value up to date; None if it is, or if another controller writes the status.

    nextValue and nextValueTime are absent when nothing changes any more.
    """
    if is_anothers(live, _FIELDS):
        return None
    after: dict[str, Any] = {"currentValue": outcome.current_value}
    if outcome.next_value is not None and outcome.next_value_time is not None:
        after |= {"nextValue": outcome.next_value, "nextValueTime": time_text(outcome.next_value_time)}
    generation = (live.body.get("metadata") or {}).get("generation")
    if generation is not None:
        after["observedGeneration"] = generation
    before = live.body.get("status") or {}
    return None if all(after.get(name) == before.get(name) for name in _FIELDS) else ApplyStatus(live.ref, after)


class SettledStatuses:
    """Outcomes of buffers whose objects had the right status in the previous pass. While object and outcome are the same, they still
    have."""

    def __init__(self) -> None:
        self._before: dict[ObjectRef, tuple[DemandOutcome, LiveObject]] = {}
        self._now: dict[ObjectRef, tuple[DemandOutcome, LiveObject]] = {}

    def begin(self) -> None:
        """Begins another pass."""
        self._before, self._now = self._now, {}

    def status(self, outcome: DemandOutcome, live: LiveObject, now: datetime) -> ApplyStatus | None:
        """The same as `buffer_status`, from memory where possible."""
        said = (outcome, live)
        if self._before.get(live.ref) != said:
            write = buffer_status(outcome, live, now)
            if (
                write is not None or outcome.demand.autoscaler is not None
            ):  # next to an autoscaler it depends on the time
                return write
        self._now[live.ref] = said
        return None


def status_writes(
    plan: Plan, view: ClusterView, now: datetime, settled: SettledStatuses | None = None
) -> tuple[ApplyStatus, ...]:
    """The status of every demand and schedule whose object is in the cluster, stays there, and has another status."""
    settled = settled or SettledStatuses()
    settled.begin()
    leaving = {change.ref for change in plan.objects if change.action is Action.DELETE}
    writes = []
    for outcome in plan.demands:
        request = outcome.demand.request
        if request is not None and request.phase is Phase.LEFT:
            continue
        live = view.objects.get(outcome.demand.ref)
        if live is not None and live.ref not in leaving:
            status = settled.status if request is None else request_status
            writes.append(status(outcome, live, now))
    for schedule in plan.schedules:
        live = view.objects.get(schedule_ref_of(schedule.namespace, schedule.name))
        if live is not None and live.ref not in leaving:
            writes.append(schedule_status(schedule, live))
    return tuple(write for write in writes if write is not None)
