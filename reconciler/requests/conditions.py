"""Whether headroom provides for a ProvisioningRequest, and with which parameters. And the conditions of one in words; which of them hold
is decided in `life.py`.

A ProvisioningClass gives its requests defaults and says what they may set. A request whose conditions another controller writes is left to
that controller, whatever its class.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from reconciler.model.conditions import Availability, Condition, ConditionStatus
from reconciler.model.declared import Declared
from reconciler.model.provisioning_requests import (
    ACCEPTED,
    CAPACITY_AVAILABLE,
    FAILED,
    PROCESSOR_INSTANCE,
    PROVISIONED,
    TERMINAL,
    ProvisioningClass,
    ProvisioningRequest,
    RequestKind,
    RequestRules,
    RequestState,
)
from reconciler.model.quantity import format_duration
from reconciler.model.refs import counted
from reconciler.model.remembered import RequestRecord

FOUND, NOT_FOUND, MADE = "CapacityIsFound", "CapacityIsNotFound", "CapacityIsProvisioned"
"""Reasons of Provisioned, as Cluster Autoscaler has them."""
LOST = "CapacityIsLost"
"""Provisioned is still True: the lost part is made good as long as the booking lasts."""
UNDER_WAY, FAILED_ATTEMPT, CAPPED, PODS_WAIT = "AttemptUnderWay", "AttemptFailed", "BeyondACap", "PodsWaitForNodes"
OVER_QUOTA = "QuotaExceeded"
RAN_BEFORE = "RanBefore"
_NEXT = re.compile(r", the next one begins at [0-9:]+ UTC")


def accepted(state: RequestState, *others: Condition) -> tuple[Condition, ...]:
    """Accepted True, and other conditions beside it."""
    message = "; ".join(("the request is valid and its pod templates are there", *state.ignored))
    return (Condition(ACCEPTED, ConditionStatus.TRUE, "Accepted", message), *others)


def provisioned(state: RequestState, record: RequestRecord, *, loss: str = "") -> tuple[Condition, ...]:
    """All of the capacity is there, or was, less what `loss` says in words."""
    made = record.attempt > 0
    message = f"room for {counted(state.pods, 'pod')} {'was made' if made else 'was found'}; it is booked for {format_duration(state.booked_for)}"
    reason = LOST if loss else MADE if made else FOUND
    message = f"{message}; {loss}" if loss else message
    said = [Condition(PROVISIONED, ConditionStatus.TRUE, reason, message)]
    if state.kind is RequestKind.CHECK:
        said.append(Condition(CAPACITY_AVAILABLE, ConditionStatus.TRUE, reason, message))
    return accepted(state, *said)


def loss_words(there: Availability) -> str:
    """What part of a booking is gone, and how it is made good; "" if all of it is there."""
    if there.unplaced:
        return f"the room of {there.unplaced:,} of them is gone, and is made good as soon as there is other room: {there.why}"
    lost = there.new + there.coming
    which = f"{there.new:,} of these" if there.coming else "it"
    waits = f"nodes for {which} are not made while headroom is suspended"
    then = waits if there.new and there.suspended else "nodes for it are on their way"
    return f"the room of {lost:,} of them was lost, and {then}" if lost else ""


def not_yet(reason: str, message: str) -> Condition:
    return Condition(PROVISIONED, ConditionStatus.FALSE, reason, message)


def no_room(message: str) -> tuple[Condition, Condition]:
    available = Condition(CAPACITY_AVAILABLE, ConditionStatus.FALSE, NOT_FOUND, message)
    return not_yet(NOT_FOUND, message), available


def under_way(record: RequestRecord, there: Availability, state: RequestState) -> Condition:
    """How far an attempt is."""
    parts = (
        (state.served, "have a node"),
        (there.ready, "ready"),
        (there.coming, "on nodes on their way"),
        (there.not_ready, "on nodes that are not ready for a moment"),
        (there.new, "on nodes to be made"),
        (there.waiting, "exist and wait for a node from Karpenter"),
    )
    words = ", ".join(f"{count:,} {where}" for count, where in parts if count)
    return not_yet(UNDER_WAY, f"attempt {record.attempt}: {words}")


def over_quota(state: RequestState, message: str) -> tuple[Condition, ...]:
    """Its pods could not be created, so that nothing is made for them."""
    return accepted(state, not_yet(OVER_QUOTA, message))


def pods_wait(there: Availability) -> Condition:
    """All of its pods are there before their nodes."""
    message = f"all of its pods exist, and {there.waiting + there.coming + there.not_ready:,} of them wait for nodes, which Karpenter makes"
    return not_yet(PODS_WAIT, message)


def failed_attempt(record: RequestRecord, why: str) -> Condition:
    when = "" if record.retry_at is None else f", the next one begins at {record.retry_at:%H:%M:%S} UTC"
    return not_yet(FAILED_ATTEMPT, f"attempt {record.attempt} failed{when}" + (f": {why}" if why else ""))


def backing_off(state: RequestState) -> Condition:
    """The condition as it was written when the attempt failed, since nothing else remembers the reason."""
    for known in state.status_conditions:
        if known.type == PROVISIONED and known.reason == FAILED_ATTEMPT:
            return known
    return failed_attempt(state.record, "")


def of_failed(state: RequestState) -> tuple[Condition, ...]:
    """Provisioned of a request that fails: it announces no next attempt, and none is under way."""
    for known in state.status_conditions:
        if known.type == PROVISIONED and known.status is ConditionStatus.FALSE:
            if known.reason == UNDER_WAY:
                return (not_yet(FAILED_ATTEMPT, f"not all of it was there in time: {known.message}"),)
            return (not_yet(known.reason, _NEXT.sub("", known.message)),)
    return ()


def too_late(state: RequestState) -> str:
    """Also says what stood in its way last, by its conditions. A request that was not accepted was never tried."""
    by_type = {item.type: item for item in state.status_conditions}
    said = by_type.get(ACCEPTED)
    if said is not None and said.status is ConditionStatus.FALSE:
        return f"it could not be accepted in time: {said.message}"
    message = "the capacity was not there in time"
    last = by_type.get(PROVISIONED)
    return message if last is None or not last.message else f"{message}: {_NEXT.sub('', last.message)}"


def as_ended(state: RequestState) -> tuple[Condition, ...]:
    """The conditions that its object has. They are written again if a kill prevented it."""
    if any(item.type in TERMINAL and item.status is ConditionStatus.TRUE for item in state.status_conditions):
        return state.status_conditions
    condition_type, _, reason = state.record.outcome.partition("/")
    ended = "" if state.record.ended is None else f"it ended at {state.record.ended:%Y-%m-%d %H:%M:%S} UTC"
    if not state.is_same_object:
        message = f"a request of this name ran before and {ended or 'has ended'}; a new one needs a new name"
        return merged(state, (Condition(FAILED, ConditionStatus.TRUE, RAN_BEFORE, message),))
    if reason != NOT_FOUND:
        last = Condition(condition_type, ConditionStatus.TRUE, reason or condition_type, ended)
        return merged(state, (*(of_failed(state) if condition_type == FAILED else ()), last))
    message = f"there was no room for all of it; {ended}"
    available = Condition(CAPACITY_AVAILABLE, ConditionStatus.FALSE, NOT_FOUND, message)
    return merged(state, accepted(state, available, Condition(FAILED, ConditionStatus.TRUE, NOT_FOUND, message)))


def merged(state: RequestState, new: Sequence[Condition]) -> tuple[Condition, ...]:
    """The object's conditions, replaced by these of the same type. A condition that ended the request stays as it is."""
    by_type = {item.type: item for item in state.status_conditions}
    for item in new:
        before = by_type.get(item.type)
        if before is None or item.type not in TERMINAL or before.status is not ConditionStatus.TRUE:
            by_type[item.type] = item
    return tuple(by_type[name] for name in sorted(by_type))


PARAMETER_NOT_ALLOWED, CLASS_NOT_ALLOWED, LEFT_TO_ANOTHER = "ParameterNotAllowed", "ClassNotAllowed", "LeftToAnother"


def accepted_requests(
    declared: Declared, rules: RequestRules
) -> tuple[tuple[ProvisioningRequest, Condition | None], ...]:
    """The requests of known classes, with their class's defaults, each with its condition Accepted if nothing is done for it. Other classes
    are left to whoever provides them."""
    classes = {item.class_name: item for item in declared.provisioning_classes}
    provided = (request for request in declared.provisioning_requests if request.kind is not None)
    return tuple(_accepted(request, classes, rules) for request in provided)


def _accepted(
    request: ProvisioningRequest, classes: Mapping[str, ProvisioningClass], rules: RequestRules
) -> tuple[ProvisioningRequest, Condition | None]:
    other = _provider_of(request)
    if other:
        message = f"{other}, so headroom stands down"
        return request, Condition(ACCEPTED, ConditionStatus.UNKNOWN, LEFT_TO_ANOTHER, message)
    provisioning_class = classes.get(request.class_name)
    if provisioning_class is None:
        return request, _undeclared(request, classes) if rules.only_declared_classes else None
    return replace(request, defaults=provisioning_class.defaults), _against(request, provisioning_class)


def _undeclared(request: ProvisioningRequest, classes: Collection[str]) -> Condition:
    message = (
        f"class {request.class_name} has no ProvisioningClass, and only classes that have one are provided for"
        f" (requests.onlyDeclaredClasses): {', '.join(sorted(classes)) or 'there is none'}"
    )
    return Condition(ACCEPTED, ConditionStatus.FALSE, CLASS_NOT_ALLOWED, message)


def _provider_of(request: ProvisioningRequest) -> str:
    """Which other controller provides for the request, as a clause; "" for none."""
    if request.status_manager is not None:
        return f"{request.status_manager} writes its conditions"
    instance = request.parameter(PROCESSOR_INSTANCE)
    if instance and request.kind is RequestKind.CHECK:
        return f"it is for the Cluster Autoscaler of instance {instance}"
    return ""


def _against(request: ProvisioningRequest, provisioning_class: ProvisioningClass) -> Condition | None:
    if provisioning_class.allowed is None:
        return None
    refused = [name for name, _ in request.parameters if name not in provisioning_class.allowed]
    if not refused:
        return None
    message = (
        f"class {request.class_name} does not allow {', '.join(refused)};"
        f" it allows {', '.join(provisioning_class.allowed) or 'no parameter'}"
    )
    return Condition(ACCEPTED, ConditionStatus.FALSE, PARAMETER_NOT_ALLOWED, message)
