"""What a pass tells the cluster: statuses and events, in this one place.

A status is written only when it says something new, an event only about what has just happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from reconciler.cluster.schedule_status import schedule_status
from reconciler.cluster.status import buffer_status
from reconciler.model.changes import Action, Annotate, Apply, ApplyStatus, ChangeSet, Delete, Outcome, Plan, WriteResult
from reconciler.model.following import schedule_ref_of
from reconciler.model.view import ClusterView
from reconciler.ports import Event

WARNING, NORMAL = "Warning", "Normal"
_REASONS = {
    Outcome.REFUSED: "Refused",
    Outcome.CONFLICT: "FieldConflict",
    Outcome.FAILED: "WriteFailed",
}


def status_writes(plan: Plan, view: ClusterView, now: datetime) -> tuple[ApplyStatus, ...]:
    """The status of every demand and schedule whose object is in the cluster, stays there, and says something else."""
    leaving = {change.ref for change in plan.objects if change.action is Action.DELETE}
    writes = []
    for outcome in plan.demands:
        live = view.objects.get(outcome.demand.ref)
        if live is not None and live.ref not in leaving:
            writes.append(buffer_status(outcome, live, now))
    for schedule in plan.schedules:
        live = view.objects.get(schedule_ref_of(schedule.namespace, schedule.name))
        if live is not None and live.ref not in leaving:
            writes.append(schedule_status(schedule, live))
    return tuple(write for write in writes if write is not None)


def events(plan: Plan, change_set: ChangeSet) -> Iterator[Event]:
    """One for every write that failed, and for each node made, released or deleted, on the object it is about."""
    for result in change_set.results:
        event = _event(result)
        if event is not None:
            yield event
    applied = {result.write.ref.name for result in change_set.results if result.outcome is Outcome.APPLIED}
    for creation in plan.node_claims.create:
        if creation.name not in applied:
            continue
        for demand in dict.fromkeys(holding.demand for holding in creation.planned.holdings):
            yield Event(demand, NORMAL, "PlaceholderCreated", f"NodeClaim {creation.name}: {creation.reason}")


def _event(result: WriteResult) -> Event | None:
    write = result.write
    if result.outcome in _REASONS:
        return Event(write.ref, WARNING, _REASONS[result.outcome], result.message)
    if result.outcome is not Outcome.APPLIED or isinstance(write, ApplyStatus):
        return None
    match write:
        case Delete():
            return Event(write.ref, NORMAL, "Deleted", write.reason)
        case Annotate(ref=ref, annotations=annotations) if ref.kind == "NodeClaim":
            released = all(value is None for _, value in annotations)
            return Event(ref, NORMAL, "Released" if released else "Held", write.reason)
        case Apply(ref=ref) if ref.kind not in {"ConfigMap", "Namespace"}:
            return Event(ref, NORMAL, "Applied", write.reason)
        case _:
            return None
