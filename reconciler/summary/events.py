"""Events about what a pass has just done, about writes that failed, and about buffers and ProvisioningRequests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.demand.resolve import READY
from reconciler.model.autoscalers import condition_of
from reconciler.model.buffers import FULFILLED
from reconciler.model.changes import (
    Annotate,
    Apply,
    ApplyStatus,
    ChangeSet,
    Delete,
    DemandOutcome,
    Outcome,
    Plan,
    WriteResult,
)
from reconciler.model.conditions import REMOVAL, Condition, ConditionStatus
from reconciler.model.demand import REQUEST_KIND, SPARE_KIND
from reconciler.model.nodes import node_ref
from reconciler.model.placement import Cause
from reconciler.model.pods import Pod
from reconciler.model.provisioning_requests import ACCEPTED, CAPACITY_AVAILABLE, CAPACITY_REVOKED, FAILED
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.view import ClusterView, LiveObject
from reconciler.ports import Event
from reconciler.requests.conditions import FAILED_ATTEMPT, LOST
from reconciler.requests.life import consumption_of

WARNING, NORMAL = "Warning", "Normal"
_REASONS = {Outcome.REFUSED: "Refused", Outcome.CONFLICT: "FieldConflict", Outcome.FAILED: "WriteFailed"}
_SHORT = "RequiresNewCapacity"
_STOPPED = {Cause.NOT_AVAILABLE: "OutOfStock", Cause.AT_LIMIT: "NodePoolLimit"}
"""By cause of an unplaced chunk: reason of the event."""
_KEPT_BY = {
    "ServedByAutoscaler": (NORMAL, "StandingDown"),
    "HandingOver": (NORMAL, "HandingOver"),
    "BalloonPods": (NORMAL, "KeptByBalloonPods"),
    "CapacityMissing": (WARNING, "CapacityMissing"),
    "TakenBack": (WARNING, "TakenBack"),
    "AlsoServed": (WARNING, "ServedTwice"),
}
"""By reason of the condition Fulfilment: kind and reason of the event."""
MOST_PODS = 5
"""The most pods of one request that get an event, since all of them wait for the same."""


def events(plan: Plan, change_set: ChangeSet, trigger: str, view: ClusterView) -> Iterator[Event]:
    """One for every failed write, for each node made, released or deleted, and for changes in a buffer's status.

    trigger: why the pass was made, which every message ends with. view: the cluster before the pass.
    """
    began = (left for left in plan.departures if left.since == plan.now - view.clock_skew)
    departures = (Event(node_ref(left.node), NORMAL, "LeftForCheaperRoom", left.words) for left in began)
    for event in (*_events(plan, change_set), *departures, *buffer_events(plan, change_set, view)):
        yield replace(event, message=f"{event.message} (trigger: {trigger})")


def _events(plan: Plan, change_set: ChangeSet) -> Iterator[Event]:
    for result in change_set.results:
        event = _event(result)
        if event is not None:
            yield event
    for missed in plan.stock_outs:
        for demand in (item for item in missed.demands if item.kind != SPARE_KIND):
            yield Event(demand, WARNING, "NoCapacity", missed.message)
    applied = {result.write.ref.name for result in change_set.results if result.outcome is Outcome.APPLIED}
    for creation in plan.node_claims.create:
        if creation.name not in applied:
            continue
        for demand in dict.fromkeys(holding.demand for holding in creation.planned.holdings):
            if demand.kind in {REQUEST_KIND, SPARE_KIND}:
                continue  # there may be hundreds of nodes, which a request's conditions count; spare room is no object
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


def buffer_events(plan: Plan, change_set: ChangeSet, view: ClusterView) -> Iterator[Event]:
    """One for each change in a status that this pass writes. view: the cluster before the pass."""
    outcomes = {outcome.demand.ref: outcome for outcome in plan.demands}
    for result in change_set.results:
        write = result.write
        outcome = outcomes.get(write.ref)
        if isinstance(write, ApplyStatus) and result.outcome is Outcome.APPLIED and outcome is not None:
            after = {str(item.get("type")): item for item in write.status.get("conditions") or ()}
            live = view.objects.get(write.ref)
            for kind, reason, condition in _buffer_news(outcome, live, after):
                yield Event(write.ref, kind, reason, str(condition.get("message", "")))


def _buffer_news(
    outcome: DemandOutcome, live: LiveObject | None, after: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Kind and reason of the event, and the condition that begins to say so. live: as it was before."""
    demand = outcome.demand
    before, now = condition_of(live, READY), after.get(READY, {})
    if demand.request is None and now.get("status") == "False" and before.get("reason") != now.get("reason"):
        yield WARNING, "NotReady", now
    before, now = condition_of(live, "Provisioning"), after.get("Provisioning", {})
    if demand.request is None and before.get("message") != now.get("message"):
        stopped = next((_STOPPED[row.cause] for row in outcome.unplaced_reasons if row.cause in _STOPPED), "")
        if now.get("status") == "True" != before.get("status"):
            yield NORMAL, "Full", now
        elif now.get("reason") == _SHORT and stopped:
            yield WARNING, stopped, now
        elif now.get("reason") == _SHORT != before.get("reason"):
            yield NORMAL, "Short", now
    if demand.ended is not None and demand.ended.type in after and not condition_of(live, demand.ended.type):
        kind = NORMAL if demand.ended.type == FULFILLED else WARNING
        yield kind, demand.ended.type, after[demand.ended.type]
    if REMOVAL in after and not condition_of(live, REMOVAL):
        yield NORMAL, "RemovalWaits", after[REMOVAL]
    before, now = condition_of(live, "Fulfilment"), after.get("Fulfilment", {})
    told = _KEPT_BY.get(str(now.get("reason", "")))
    if told is not None and before.get("reason") != now.get("reason"):
        yield *told, now


def request_events(plan: Plan, change_set: ChangeSet, pods: Iterable[Pod]) -> Iterator[Event]:
    """Events for statuses that were written, so that each change has one event."""
    written = {
        result.write.ref
        for result in change_set.results
        if isinstance(result.write, ApplyStatus) and result.outcome is Outcome.APPLIED
    }
    told = [outcome for outcome in plan.demands if outcome.demand.request is not None and outcome.demand.ref in written]
    if not told:
        return
    waiting = consumption_of(pods).pending
    for outcome in told:
        ref = outcome.demand.ref
        for condition in _news(outcome):
            kind = WARNING if _is_bad(condition) else NORMAL
            yield Event(ref, kind, condition.reason, condition.message)
            for pod in waiting.get((ref.namespace, ref.name), ())[:MOST_PODS]:
                pod_ref = ObjectRef("", POD_KIND, pod.namespace, pod.name)
                yield Event(pod_ref, kind, condition.reason, f"{ref}: {condition.message}")


def _news(outcome: DemandOutcome) -> Iterator[Condition]:
    """Conditions whose status or reason has changed. Accepted does not count, nor does CapacityAvailable, which only repeats
    Provisioned."""
    state = outcome.demand.request
    before = {} if state is None else {item.type: (item.status, item.reason) for item in state.status_conditions}
    for condition in outcome.conditions:
        is_plain = condition.type == ACCEPTED and condition.status is ConditionStatus.TRUE
        if condition.type == CAPACITY_AVAILABLE or is_plain:
            continue
        if before.get(condition.type) != (condition.status, condition.reason):
            yield condition


def _is_bad(condition: Condition) -> bool:
    if condition.type in {FAILED, CAPACITY_REVOKED}:
        return condition.status is ConditionStatus.TRUE
    return condition.type == ACCEPTED or condition.reason in {FAILED_ATTEMPT, LOST}
