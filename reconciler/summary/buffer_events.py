"""Events about changes in a buffer's status: not ready, full, short, out of stock, who keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.demand.resolve import READY
from reconciler.model.autoscalers import condition_of
from reconciler.model.buffers import FULFILLED
from reconciler.model.changes import ApplyStatus, ChangeSet, DemandOutcome, Outcome, Plan
from reconciler.model.view import ClusterView, LiveObject
from reconciler.plan.launching.stock_out_reasons import AT_LIMIT, NOT_AVAILABLE
from reconciler.plan.objects.prune import REMOVAL
from reconciler.ports import Event

_NORMAL, _WARNING = "Normal", "Warning"
_SHORT = "RequiresNewCapacity"
_STOPPED = {NOT_AVAILABLE: "OutOfStock", AT_LIMIT: "NodePoolLimit"}
"""By cause of an unplaced chunk: reason of the event."""
_KEPT_BY = {
    "ServedByAutoscaler": (_NORMAL, "StandingDown"),
    "HandingOver": (_NORMAL, "HandingOver"),
    "BalloonPods": (_NORMAL, "KeptByBalloonPods"),
    "CapacityMissing": (_WARNING, "CapacityMissing"),
    "TakenBack": (_WARNING, "TakenBack"),
    "AlsoServed": (_WARNING, "ServedTwice"),
}
"""By reason of the condition Fulfilment: kind and reason of the event."""


def buffer_events(plan: Plan, change_set: ChangeSet, view: ClusterView) -> Iterator[Event]:
    """One for each change in a status that this pass writes. view: the cluster before the pass."""
    outcomes = {outcome.demand.ref: outcome for outcome in plan.demands}
    for result in change_set.results:
        write = result.write
        outcome = outcomes.get(write.ref)
        if isinstance(write, ApplyStatus) and result.outcome is Outcome.APPLIED and outcome is not None:
            after = {str(item.get("type")): item for item in write.status.get("conditions") or ()}
            live = view.objects.get(write.ref)
            yield from _readiness(outcome, condition_of(live, READY), after.get(READY, {}))
            yield from _capacity(outcome, condition_of(live, "Provisioning"), after.get("Provisioning", {}))
            yield from _ending(outcome, live, after)
            yield from _removal(outcome, condition_of(live, REMOVAL), after.get(REMOVAL, {}))
            yield from _keeper(outcome, condition_of(live, "Fulfilment"), after.get("Fulfilment", {}))


def _readiness(outcome: DemandOutcome, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    if (
        outcome.demand.request is None
        and after.get("status") == "False"
        and before.get("reason") != after.get("reason")
    ):
        yield Event(outcome.demand.ref, _WARNING, "NotReady", str(after.get("message", "")))


def _capacity(outcome: DemandOutcome, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    ref, message = outcome.demand.ref, str(after.get("message", ""))
    if outcome.demand.request is not None or before.get("message") == after.get("message"):
        return
    if after.get("status") == "True" != before.get("status"):
        yield Event(ref, _NORMAL, "Full", message)
    elif after.get("reason") == _SHORT:
        stopped = next((_STOPPED[row.cause] for row in outcome.unplaced_reasons if row.cause in _STOPPED), "")
        if stopped:
            yield Event(ref, _WARNING, stopped, message)
        elif before.get("reason") != _SHORT:
            yield Event(ref, _NORMAL, "Short", message)


def _ending(outcome: DemandOutcome, live: LiveObject | None, after: Mapping[str, Mapping[str, Any]]) -> Iterator[Event]:
    end = outcome.demand.ended
    if end is not None and end.type in after and not condition_of(live, end.type):
        yield Event(outcome.demand.ref, _NORMAL if end.type == FULFILLED else _WARNING, end.type, end.message)


def _removal(outcome: DemandOutcome, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    if after and not before:
        yield Event(outcome.demand.ref, _NORMAL, "RemovalWaits", str(after.get("message", "")))


def _keeper(outcome: DemandOutcome, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    told = _KEPT_BY.get(str(after.get("reason", "")))
    if told is not None and before.get("reason") != after.get("reason"):
        yield Event(outcome.demand.ref, *told, str(after.get("message", "")))
