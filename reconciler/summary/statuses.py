"""Every status that a plan changes. One is written only when it says something new."""

from __future__ import annotations

from datetime import datetime

from reconciler.model.changes import Action, ApplyStatus, Plan
from reconciler.model.following import schedule_ref_of
from reconciler.model.provisioning_requests import Phase
from reconciler.model.view import ClusterView
from reconciler.summary.buffers import buffer_status
from reconciler.summary.requests import request_status
from reconciler.summary.schedules import schedule_status


def status_writes(plan: Plan, view: ClusterView, now: datetime) -> tuple[ApplyStatus, ...]:
    """The status of every demand and schedule whose object is in the cluster, stays there, and says something else."""
    leaving = {change.ref for change in plan.objects if change.action is Action.DELETE}
    writes = []
    for outcome in plan.demands:
        request = outcome.demand.request
        if request is not None and request.phase is Phase.LEFT:
            continue
        live = view.objects.get(outcome.demand.ref)
        if live is not None and live.ref not in leaving:
            status = buffer_status if request is None else request_status
            writes.append(status(outcome, live, now))
    for schedule in plan.schedules:
        live = view.objects.get(schedule_ref_of(schedule.namespace, schedule.name))
        if live is not None and live.ref not in leaving:
            writes.append(schedule_status(schedule, live))
    return tuple(write for write in writes if write is not None)
