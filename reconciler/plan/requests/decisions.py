"""What becomes of one ProvisioningRequest once everything is placed: its conditions, and what is remembered about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.demand import Demand
from reconciler.model.durations import format_duration
from reconciler.model.provisioning_requests import (
    ACCEPTED,
    CANCELLED,
    CAPACITY_AVAILABLE,
    CAPACITY_REVOKED,
    FAILED,
    PROVISIONED,
    TERMINAL,
    Ending,
    Phase,
    RequestKind,
    RequestRules,
    RequestState,
)
from reconciler.model.request_records import RequestRecord
from reconciler.plan.availability import Availability

FOUND, NOT_FOUND, MADE = "CapacityIsFound", "CapacityIsNotFound", "CapacityIsProvisioned"
"""Reasons of Provisioned, as Cluster Autoscaler has them."""
UNDER_WAY, FAILED_ATTEMPT, CAPPED = "AttemptUnderWay", "AttemptFailed", "BeyondACap"
RAN_BEFORE = "RanBefore"
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class Decision:
    """record: what is remembered; conditions: all conditions of its status; ended: how it ends in this pass, if it does."""

    record: RequestRecord
    conditions: tuple[Condition, ...]
    ended: Ending | None = None

    @property
    def has_failed(self) -> bool:
        """Nodes made for it must be deleted. A cancelled request has not failed: its nodes are released like others."""
        return self.record.outcome.startswith(f"{FAILED}/") and not self.record.outcome.endswith(f"/{CANCELLED}")


def decide(demand: Demand, state: RequestState, there: Availability, now: datetime, rules: RequestRules) -> Decision:
    """now: by the cluster's clock."""
    match state.phase:
        case Phase.ENDED:
            return Decision(state.record, _as_ended(state))
        case Phase.LEFT | Phase.NOT_READY:
            return Decision(state.record, _merged(state, demand.conditions))
        case Phase.BACKING_OFF:
            return Decision(state.record, _merged(state, _accepted(state, _backing_off(state))))
        case Phase.BOOKED:
            return _booked(state, there, now, rules)
        case _ if state.ends is not None:
            return _ended(state, state.ends, now)
    return _asked(demand, state, there, now, rules)


def _asked(demand: Demand, state: RequestState, there: Availability, now: datetime, rules: RequestRules) -> Decision:
    if there.ready and not (there.coming or there.not_ready or there.new or there.unplaced):
        return _provisioned(demand, state, there, now, rules)
    if state.kind is RequestKind.CHECK:
        return _no_room(state, there, now)
    return _tried(state, there, now, rules)


def retry_delay(attempt: int, rules: RequestRules) -> timedelta:
    """How long after the failure of this attempt the next one begins."""
    doublings = min(max(0, attempt - 1), _MOST_DOUBLINGS)
    return rules.first_retry * (1 << doublings)


def _provisioned(
    demand: Demand, state: RequestState, there: Availability, now: datetime, rules: RequestRules
) -> Decision:
    consumed = tuple(0 for _ in demand.groups)
    record = replace(state.record, under_way=False, retry_at=None, provisioned=now, consumed=consumed)
    return Decision(record, _merged(state, _found(state, there, rules)))


def _found(state: RequestState, there: Availability, rules: RequestRules) -> Sequence[Condition]:
    made = state.record.attempt > 0
    message = f"room for {there.ready:,} pods {'was made' if made else 'was found'}; it is booked for {format_duration(rules.booked_for)}"
    found = [Condition(PROVISIONED, ConditionStatus.TRUE, MADE if made else FOUND, message)]
    if state.kind is RequestKind.CHECK:
        found.append(Condition(CAPACITY_AVAILABLE, ConditionStatus.TRUE, FOUND, message))
    return _accepted(state, *found)


def _no_room(state: RequestState, there: Availability, now: datetime) -> Decision:
    message = there.why or "there is no room for all of it on nodes that are ready"
    available = Condition(CAPACITY_AVAILABLE, ConditionStatus.FALSE, NOT_FOUND, message)
    if state.no_retry:
        return _ended(
            replace(state, status_conditions=_merged(state, _accepted(state, available))),
            Ending(FAILED, NOT_FOUND, message),
            now,
        )
    found = (Condition(PROVISIONED, ConditionStatus.FALSE, NOT_FOUND, message), available)
    return Decision(state.record, _merged(state, _accepted(state, *found)))


def _tried(state: RequestState, there: Availability, now: datetime, rules: RequestRules) -> Decision:
    """An atomic request without all of its capacity: its attempt begins, goes on or has failed, or none can begin.

    An attempt that has made nothing has not failed: its NodePool was not applied or not ready, or writes failed. It begins again.
    """
    record = state.record
    if there.cut:
        return Decision(record, _merged(state, _accepted(state, _not_yet(CAPPED, there.cut))))
    if not there.unplaced:
        number = record.attempt if record.under_way else record.attempt + 1
        parts = ((there.ready, "ready"), (there.coming, "on nodes on their way"), (there.new, "on nodes to be made"))
        words = ", ".join(f"{count:,} {where}" for count, where in parts if count)
        record = replace(record, attempt=number, under_way=True, retry_at=None)
        return Decision(record, _merged(state, _accepted(state, _not_yet(UNDER_WAY, f"attempt {number}: {words}"))))
    why = there.why or "there is no room for all of it"
    if not record.under_way:
        return Decision(record, _merged(state, _accepted(state, _not_yet(NOT_FOUND, why))))
    if there.unread:
        message = f"attempt {record.attempt}: how much of its capacity is there is not known: {there.unread}"
        return Decision(record, _merged(state, _accepted(state, _not_yet(UNDER_WAY, message))))
    if not there.tried:
        record = replace(record, attempt=record.attempt - 1, under_way=False)
        return Decision(record, _merged(state, _accepted(state, _not_yet(NOT_FOUND, why))))
    retry_at = now + retry_delay(record.attempt, rules)
    record = replace(record, under_way=False, retry_at=retry_at)
    message = f"attempt {record.attempt} failed, {_next(record)}: {why}"
    return Decision(record, _merged(state, _accepted(state, _not_yet(FAILED_ATTEMPT, message))))


def _booked(state: RequestState, there: Availability, now: datetime, rules: RequestRules) -> Decision:
    """Also writes the status if a kill came between writing the record and the status."""
    if there.unplaced and not there.unread:
        message = f"the room of {there.unplaced:,} pods is gone, and there is no other: {there.why}"
        return _ended(state, Ending(CAPACITY_REVOKED, "CapacityIsGone", message), now)
    told = any(item.type == PROVISIONED and item.status is ConditionStatus.TRUE for item in state.status_conditions)
    return Decision(state.record, _merged(state, () if told else _found(state, there, rules)))


def _backing_off(state: RequestState) -> Condition:
    """The condition as it was written when the attempt failed, since nothing else remembers the reason."""
    for known in state.status_conditions:
        if known.type == PROVISIONED and known.reason == FAILED_ATTEMPT:
            return known
    return _not_yet(FAILED_ATTEMPT, f"attempt {state.record.attempt} failed, {_next(state.record)}")


def _next(record: RequestRecord) -> str:
    return "" if record.retry_at is None else f"the next one begins at {record.retry_at:%H:%M:%S} UTC"


def _not_yet(reason: str, message: str) -> Condition:
    return Condition(PROVISIONED, ConditionStatus.FALSE, reason, message)


def _accepted(state: RequestState, *others: Condition) -> Sequence[Condition]:
    message = "; ".join(("the request is valid and its pod templates are there", *state.ignored))
    return (Condition(ACCEPTED, ConditionStatus.TRUE, "Accepted", message), *others)


def _ended(state: RequestState, ending: Ending, now: datetime) -> Decision:
    last = Condition(ending.condition_type, ConditionStatus.TRUE, ending.reason, ending.message)
    return Decision(_closed(state.record, ending.condition_type, ending.reason, now), _merged(state, (last,)), ending)


def cancelled(record: RequestRecord, now: datetime) -> RequestRecord:
    """The record of a request whose object goes with its document, so that no condition can say so. now: by the cluster's clock."""
    return _closed(record, FAILED, CANCELLED, now)


def _closed(record: RequestRecord, condition_type: str, reason: str, now: datetime) -> RequestRecord:
    outcome = f"{condition_type}/{reason}"
    return RequestRecord(record.uid, record.spec, record.attempt, outcome=outcome, ended=now)


def _as_ended(state: RequestState) -> tuple[Condition, ...]:
    """The conditions that its object has. They are written again if a kill prevented it."""
    if any(item.type in TERMINAL and item.status is ConditionStatus.TRUE for item in state.status_conditions):
        return state.status_conditions
    condition_type, _, reason = state.record.outcome.partition("/")
    ended = "" if state.record.ended is None else f"it ended at {state.record.ended:%Y-%m-%d %H:%M:%S} UTC"
    if not state.is_same_object:
        message = f"a request of this name and spec ran before and {ended or 'has ended'}; a new one needs a new name"
        return _merged(state, (Condition(FAILED, ConditionStatus.TRUE, RAN_BEFORE, message),))
    if reason != NOT_FOUND:
        return _merged(state, (Condition(condition_type, ConditionStatus.TRUE, reason or condition_type, ended),))
    message = f"there was no room for all of it; {ended}"
    available = Condition(CAPACITY_AVAILABLE, ConditionStatus.FALSE, NOT_FOUND, message)
    return _merged(state, _accepted(state, available, Condition(FAILED, ConditionStatus.TRUE, NOT_FOUND, message)))


def _merged(state: RequestState, new: Sequence[Condition]) -> tuple[Condition, ...]:
    """The object's conditions, replaced by these of the same type. A condition that ended the request stays as it is."""
    known = {item.type: item for item in state.status_conditions}
    for item in new:
        before = known.get(item.type)
        if before is None or item.type not in TERMINAL or before.status is not ConditionStatus.TRUE:
            known[item.type] = item
    return tuple(known[name] for name in sorted(known))
