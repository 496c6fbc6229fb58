"""Events of ProvisioningRequests: one for each change of a condition, on the request and on pods that wait for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.model.changes import ApplyStatus, ChangeSet, DemandOutcome, Outcome, Plan
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.pods import Pod
from reconciler.model.provisioning_requests import ACCEPTED, CAPACITY_AVAILABLE, CAPACITY_REVOKED, FAILED
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.ports import Event
from reconciler.requests.conditions import FAILED_ATTEMPT, LOST
from reconciler.requests.consumption import consumption_of

MOST_PODS = 5
"""The most pods of one request that get an event, since all of them wait for the same."""
_WARNING, _NORMAL = "Warning", "Normal"


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
            kind = _WARNING if _is_bad(condition) else _NORMAL
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
