"""The life of a ProvisioningRequest: what it is doing, what becomes of it, and what the inventory remembers of that.

waiting ─► attempt ─► booked ─► ended
       ▲          │
       └ back-off ┘

A booking ends when its pods have come, with its time, or revoked for what could not be made good. Until it is booked, a request may fail.

Asked twice in a pass. Before anything is placed, `phase_of` says what the record and the clock make of it. Afterwards `decide` says what
the capacity that is there makes of it. No other module changes a record. The words are in `conditions.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.conditions import Availability, Condition, ConditionStatus, ending
from reconciler.model.demand import Demand
from reconciler.model.nodes import ATTEMPT_LABEL
from reconciler.model.pods import Pod, PodShape
from reconciler.model.provisioning_requests import (
    ACCEPTED,
    BOOKING_EXPIRED,
    CANCELLED,
    CAPACITY_REVOKED,
    CONSUME_ANNOTATIONS,
    FAILED,
    PROVISIONED,
    TERMINAL,
    VALID_UNTIL,
    Phase,
    ProvisioningRequest,
    RequestKind,
    RequestRules,
    RequestState,
    default_validity,
    seconds_of,
    selects_reserved_nodes,
)
from reconciler.model.quantity import doubled, format_duration, time_of, whole_number
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.remembered import RequestRecord, record_name
from reconciler.model.view import ClusterView
from reconciler.requests import conditions

LONGEST_RETRY = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Decision:
    """record: what is remembered; conditions: all conditions of its status; ended: how it ends in this pass, if it does."""

    record: RequestRecord
    conditions: tuple[Condition, ...]
    ended: Condition | None = None

    @property
    def makes_nodes(self) -> bool:
        """Whether new nodes are of its attempt: it is under way, or what its booking lost is made good."""
        return self.record.under_way or self.record.provisioned is not None

    @property
    def has_failed(self) -> bool:
        """Nodes made for it must be deleted. A cancelled request has not failed: its nodes are released like others."""
        return self.record.outcome.startswith(f"{FAILED}/") and not self.record.outcome.endswith(f"/{CANCELLED}")


def spec_digest(request: ProvisioningRequest) -> str:
    """Changes with the spec, to notice that the document of a request that ran was edited."""
    sets = [[item.pod_template, item.count] for item in request.pod_sets]
    text = json.dumps([request.class_name, sets, list(request.parameters)], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def attempts_in(view: ClusterView) -> dict[str, int]:
    """By uid of a request, the last attempt of which there is a NodeClaim."""
    attempts: dict[str, int] = {}
    for claim in view.node_claims:
        uid, _, number = (claim.label(ATTEMPT_LABEL) or "").rpartition(".")
        attempts[uid] = max(attempts.get(uid, 0), whole_number(number) or 0)
    attempts.pop("", None)
    return attempts


def record_of(
    request: ProvisioningRequest, records: Mapping[str, RequestRecord], attempts: Mapping[str, int], now: datetime
) -> RequestRecord:
    """The inventory's record if it is about this very object. Otherwise one is made from the conditions, as for a request that is seen for
    the first time."""
    record = records.get(record_name(request.ref.namespace, request.ref.name))
    digest = spec_digest(request)
    if record is not None and _is_about(record, request, digest):
        return record
    attempt = attempts.get(request.uid, 0)
    fresh = RequestRecord(uid=request.uid, spec=digest, attempt=attempt)
    times = dict(request.status_times)
    true = {item.type for item in request.status_conditions if item.status is ConditionStatus.TRUE}
    for condition_type in TERMINAL:
        if condition_type in true:
            return fresh.but(outcome=condition_type, ended=time_of(times.get(condition_type)) or now)
    if PROVISIONED in true:
        return fresh.but(provisioned=time_of(times.get(PROVISIONED)) or now)
    return fresh.but(under_way=attempt > 0, began=now if attempt > 0 else None)


def _is_about(record: RequestRecord, request: ProvisioningRequest, digest: str) -> bool:
    """A request from Git that has ended does not run again when somebody recreates its object."""
    if not request.uid or record.uid == request.uid:
        return True
    return request.position is not None and record.ended is not None and record.spec == digest


def valid_until(request: ProvisioningRequest, kind: RequestKind, rules: RequestRules) -> datetime | None:
    """None while the request has no object in the cluster: its time has not begun."""
    created = time_of(request.created)
    if created is None:
        return None
    asked = seconds_of(request.parameter(VALID_UNTIL))
    return created + (asked or default_validity(kind, rules))


def phase_of(state: RequestState, now: datetime, *, complete: bool) -> tuple[Phase, Condition | None]:
    """complete: the cluster was read in full, so that what is not there is gone."""
    record = state.record
    if record.ended is not None:
        return Phase.ENDED, None
    if state.deleting or (record.uid and not state.exists and complete):
        return Phase.ENDING, ending(FAILED, CANCELLED, "the request was deleted in the cluster")
    if record.provisioned is not None:
        return _booking(state, record.provisioned, now)
    if state.valid_until is not None and now >= state.valid_until:
        return Phase.ENDING, ending(FAILED, "Expired", conditions.too_late(state))
    if record.retry_at is not None and now < record.retry_at:
        return Phase.BACKING_OFF, None
    return Phase.WAITING, None


def _booking(state: RequestState, since: datetime, now: datetime) -> tuple[Phase, Condition | None]:
    """What could not be made good is revoked at the end, unless some of the pods came: to revoke it would end those."""
    came = sum(state.record.consumed)
    if came >= state.pods:
        message = f"all {state.pods:,} pods have a node"
        return Phase.ENDING, ending(BOOKING_EXPIRED, "CapacityBookingConsumed", message)
    if now < since + state.booked_for:
        return Phase.BOOKED, None
    within, lost = format_duration(state.booked_for), state.record.lost
    if lost and not came:
        message = f"the room of {lost:,} of {state.pods:,} pods is gone, and there was no other within {within}"
        return Phase.ENDING, ending(CAPACITY_REVOKED, "CapacityIsGone", message)
    message = f"{came:,} of {state.pods:,} pods came within {within}"
    return Phase.ENDING, ending(BOOKING_EXPIRED, "CapacityReservationTimeExpired", message)


def decide(demand: Demand, state: RequestState, there: Availability, now: datetime, rules: RequestRules) -> Decision:
    """now: by the cluster's clock."""
    match state.phase:
        case Phase.ENDED:
            return Decision(state.record, conditions.as_ended(state))
        case Phase.ENDING if state.ends is not None:
            return _ended(state, state.ends, now)
        case Phase.BACKING_OFF:
            return _unchanged(state, *conditions.accepted(state, conditions.backing_off(state)))
        case Phase.BOOKED:
            return _booked(state, there)
        case Phase.WAITING:
            return _asked(demand, state, there, now, rules)
    return _unchanged(state, *demand.conditions)


def _asked(demand: Demand, state: RequestState, there: Availability, now: datetime, rules: RequestRules) -> Decision:
    absent = there.coming or there.not_ready or there.new or there.unplaced or there.waiting
    if not absent and (there.ready or state.served):
        return _provisioned(demand, state, now)
    return _no_room(state, there, now) if state.kind is RequestKind.CHECK else _tried(demand, state, there, now, rules)


def retry_delay(attempt: int, rules: RequestRules) -> timedelta:
    """How long after the failure of this attempt the next one begins."""
    return doubled(rules.first_retry, attempt - 1, max(LONGEST_RETRY, rules.first_retry))


def _unchanged(state: RequestState, *said: Condition) -> Decision:
    return Decision(state.record, conditions.merged(state, said))


def _provisioned(demand: Demand, state: RequestState, now: datetime) -> Decision:
    consumed = tuple(0 for _ in demand.groups)
    record = state.record.but(
        under_way=False, began=None, retry_at=None, provisioned=now, consumed=consumed, present=()
    )
    return Decision(record, conditions.merged(state, conditions.provisioned(state, record)))


def _no_room(state: RequestState, there: Availability, now: datetime) -> Decision:
    message = there.why or "there is no room for all of it on nodes that are ready"
    fitting = state.served + there.ready + there.fitting
    if fitting:
        message = f"at least {fitting:,} of {state.pods:,} pods have room: {message}"
    said = conditions.no_room(message)
    if state.no_retry:
        told = conditions.merged(state, conditions.accepted(state, *said[1:]))
        return _ended(replace(state, status_conditions=told), ending(FAILED, conditions.NOT_FOUND, message), now)
    return _unchanged(state, *conditions.accepted(state, *said))


def _tried(demand: Demand, state: RequestState, there: Availability, now: datetime, rules: RequestRules) -> Decision:
    """An atomic request without all of its capacity: its attempt begins, goes on or has failed, or none can begin."""
    record = state.record
    if there.cut:
        said = conditions.not_yet(conditions.CAPPED, there.cut)
    elif there.unplaced:
        record, said = _failed(record, there, now, rules)
    elif record.under_way or any(group.count for group in demand.groups):
        if not record.under_way:
            record = record.but(attempt=record.attempt + 1, under_way=True, began=now, retry_at=None)
        said = conditions.under_way(record, there, state)
    else:
        said = conditions.pods_wait(there)
    return Decision(record, conditions.merged(state, conditions.accepted(state, said)))


def _failed(
    record: RequestRecord, there: Availability, now: datetime, rules: RequestRules
) -> tuple[RequestRecord, Condition]:
    """An attempt that has made nothing has not failed: its NodePool was not applied or not ready, or writes failed. It begins again."""
    why = there.why or "there is no room for all of it"
    if not record.under_way:
        return record, conditions.not_yet(conditions.NOT_FOUND, why)
    if there.unread:
        message = f"attempt {record.attempt}: how much of its capacity is there is not known: {there.unread}"
        return record, conditions.not_yet(conditions.UNDER_WAY, message)
    record = record.but(under_way=False, began=None)
    if not there.tried:
        return record.but(attempt=record.attempt - 1), conditions.not_yet(conditions.NOT_FOUND, why)
    record = record.but(retry_at=now + retry_delay(record.attempt, rules))
    return record, conditions.failed_attempt(record, why)


def _booked(state: RequestState, there: Availability) -> Decision:
    """What it lost is made good as long as it lasts. Also writes the status if a kill came between writing the record and the status."""
    record = state.record
    if there.unread:
        return _unchanged(state)
    loss = conditions.loss_words(there)
    # The nodes that make a loss good are of an attempt too: by its number they are known for this request's.
    record = record.but(lost=there.unplaced, attempt=max(record.attempt, 1) if there.new else record.attempt)
    told = next((item for item in state.status_conditions if item.type == PROVISIONED), None)
    is_told = told is not None and told.status is ConditionStatus.TRUE and told.reason != conditions.LOST
    was_refused = any(
        item.type == ACCEPTED and item.status is ConditionStatus.FALSE for item in state.status_conditions
    )
    said = () if is_told and not (loss or was_refused) else conditions.provisioned(state, record, loss=loss)
    return Decision(record, conditions.merged(state, said))


def _ended(state: RequestState, last: Condition, now: datetime) -> Decision:
    """last: the condition that ends it."""
    before = conditions.of_failed(state) if last.type == FAILED else ()
    return Decision(_closed(state.record, last.type, last.reason, now), conditions.merged(state, (*before, last)), last)


def cancelled(record: RequestRecord, now: datetime) -> RequestRecord:
    """The record of a request whose object goes with its document, so that no condition can say so. now: by the cluster's clock."""
    return _closed(record, FAILED, CANCELLED, now)


def _closed(record: RequestRecord, condition_type: str, reason: str, now: datetime) -> RequestRecord:
    outcome = f"{condition_type}/{reason}"
    return RequestRecord(record.uid, record.spec, record.attempt, outcome=outcome, ended=now)


_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Consumption:
    """Pods by the namespace and name of the request that they name: those that have a node, and those that wait for one."""

    bound: Mapping[_Key, Sequence[Pod]]
    pending: Mapping[_Key, Sequence[Pod]]

    def counted(
        self, record: RequestRecord, request: ProvisioningRequest, shapes: Sequence[PodShape], *, complete: bool
    ) -> RequestRecord:
        """The record with the pods counted that have come since the last pass. Room that was used stays used after its pod is gone.

        complete: the cluster was read in full, so that a pod that is not there is gone.
        """
        counts = [item.count for item in request.pod_sets]
        consumed = _padded(record.consumed, len(counts))
        before = _padded(record.present or record.consumed, len(counts))
        now = _by_set(self.bound.get(_key(request), ()), shapes, counts)
        if not complete:
            now = list(map(max, now, before))
        for number, shape in enumerate(shapes):
            come = max(0, now[number] - before[number])
            alike = (other for other, known in enumerate(shapes) if known.requests == shape.requests)
            for into in (number, *alike):
                taken = min(come, counts[into] - consumed[into])
                consumed[into] += taken
                come -= taken
        return record.but(consumed=tuple(consumed), present=() if now == consumed else tuple(now))

    def served(self, request: ProvisioningRequest, shapes: Sequence[PodShape]) -> list[int]:
        """How many pods have a node now, by pod set."""
        return _by_set(self.bound.get(_key(request), ()), shapes, [item.count for item in request.pod_sets])

    def waiting(self, request: ProvisioningRequest, *, most: int) -> tuple[ObjectRef, ...]:
        """The pods that wait for a node."""
        pods = self.pending.get(_key(request), ())[:most]
        return tuple(ObjectRef("", POD_KIND, pod.namespace, pod.name) for pod in pods)

    def left(self, request: ProvisioningRequest, shapes: Sequence[PodShape], consumed: Sequence[int]) -> list[int]:
        """How many pods are still to come, by pod set. Pending pods are not among them: they are placed before any booking."""
        free = [item.count - used for item, used in zip(request.pod_sets, consumed, strict=True)]
        waiting = _by_set(self.pending.get(_key(request), ()), shapes, free)
        return [count - taken for count, taken in zip(free, waiting, strict=True)]


def consumption_of(pods: Iterable[Pod]) -> Consumption:
    """Daemon pods, pods that are leaving, and pods with scheduling gates consume nothing. A pod that waits and selects the nodes of its
    request is no other's to place: its room is still the request's to ask for."""
    bound: dict[_Key, list[Pod]] = {}
    pending: dict[_Key, list[Pod]] = {}
    for pod in pods:
        if not pod.annotations or pod.deleting:
            continue
        annotations = dict(pod.annotations)
        name = next((annotations[key] for key in CONSUME_ANNOTATIONS if key in annotations), "")
        if not name:
            continue
        if pod.node_name is not None:
            bound.setdefault((pod.namespace, name), []).append(pod)
        elif not (pod.gated or selects_reserved_nodes(pod.shape)):
            pending.setdefault((pod.namespace, name), []).append(pod)
    return Consumption(bound, pending)


def _padded(known: Sequence[int], sets: int) -> list[int]:
    return [*known, *([0] * (sets - len(known)))]


def _key(request: ProvisioningRequest) -> _Key:
    return (request.ref.namespace, request.ref.name)


def _by_set(pods: Sequence[Pod], shapes: Sequence[PodShape], counts: Sequence[int]) -> list[int]:
    """Pods that request as much as a pod set's template belong to it; others fill up the sets in their order."""
    taken = [0] * len(shapes)
    others = 0
    for pod in pods:
        alike = (
            number
            for number, shape in enumerate(shapes)
            if taken[number] < counts[number] and shape.requests == pod.shape.requests
        )
        number = next(alike, None)
        if number is None:
            others += 1
        else:
            taken[number] += 1
    for number, count in enumerate(counts):
        more = max(0, min(others, count - taken[number]))
        taken[number] += more
        others -= more
    return taken
