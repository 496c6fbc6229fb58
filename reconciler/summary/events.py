"""Events about what a pass has just done, and about writes that failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.model.changes import (
    Annotate,
    Apply,
    ApplyStatus,
    ChangeSet,
    Delete,
    Outcome,
    Plan,
    WriteResult,
)
from reconciler.model.demand import REQUEST_KIND
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.ports import Event
from reconciler.summary.buffer_events import buffer_events

WARNING, NORMAL = "Warning", "Normal"
_REASONS = {
    Outcome.REFUSED: "Refused",
    Outcome.CONFLICT: "FieldConflict",
    Outcome.FAILED: "WriteFailed",
}


def events(plan: Plan, change_set: ChangeSet, trigger: str, view: ClusterView | None = None) -> Iterator[Event]:
    """One for every failed write, for each node made, released or deleted, and for changes in a buffer's status.

    trigger: why the pass was made, which every message ends with. view: the cluster before the pass.
    """
    of_buffers = () if view is None else buffer_events(plan, change_set, view)
    clock_skew = timedelta(0) if view is None else view.clock_skew
    for event in (*_events(plan, change_set), *_departures(plan, plan.now - clock_skew), *of_buffers):
        yield replace(event, message=f"{event.message} (trigger: {trigger})")


def _departures(plan: Plan, now: datetime) -> Iterator[Event]:
    for left in plan.departures:
        if left.since == now:
            reason = "AdmittedToHeldNodes" if left.admits else "LeftForCheaperRoom"
            yield Event(ObjectRef("", "Node", "", left.node), NORMAL, reason, left.words)


def _events(plan: Plan, change_set: ChangeSet) -> Iterator[Event]:
    for result in change_set.results:
        event = _event(result)
        if event is not None:
            yield event
    for missed in plan.stock_outs:
        for demand in missed.demands:
            yield Event(demand, WARNING, "NoCapacity", missed.message)
    applied = {result.write.ref.name for result in change_set.results if result.outcome is Outcome.APPLIED}
    for creation in plan.node_claims.create:
        if creation.name not in applied:
            continue
        for demand in dict.fromkeys(holding.demand for holding in creation.planned.holdings):
            if demand.kind == REQUEST_KIND:
                continue  # there may be hundreds of nodes, which its conditions count
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
        case Annotate(ref=ref, annotations=annotations) if ref.kind == "NodeClaim" or not annotations:
            released = all(value is None for _, value in annotations)
            reason = ("Released" if released else "Held") if annotations else "Untainted"
            return Event(ref, NORMAL, reason, write.reason)
        case Apply(ref=ref) if ref.kind not in {"ConfigMap", "Namespace"}:
            return Event(ref, NORMAL, "Applied", write.reason)
        case _:
            return None
