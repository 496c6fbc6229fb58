"""Every status that a plan changes. A status is written only if it differs from the object's."""

from __future__ import annotations

from datetime import datetime

from reconciler.model.changes import Action, ApplyStatus, DemandOutcome, Plan
from reconciler.model.provisioning_requests import Phase
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import schedule_ref_of
from reconciler.model.view import ClusterView, LiveObject
from reconciler.summary.buffers import buffer_status
from reconciler.summary.requests import request_status
from reconciler.summary.schedules import schedule_status


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
