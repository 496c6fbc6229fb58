"""Who keeps a buffer's capacity: headroom with placeholders, the autoscaler that serves it, or balloon pods.

Capacity is let go only once the next keeper has it. The buffer's own condition `Fulfilment` says how far a hand-over is, so that a restart
in the middle changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from reconciler.model.autoscalers import (
    ANSWERED_WITHIN,
    CAPACITY_BUFFER_KIND,
    GRACE,
    SILENCE,
    ServingAutoscaler,
    condition_of,
    serving_autoscaler,
)
from reconciler.model.buffers import Buffer, Fulfilment
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.declared import Declared
from reconciler.model.marks import is_own
from reconciler.model.quantity import time_of
from reconciler.model.refs import ObjectRef
from reconciler.model.view import LiveObject

FULFILMENT_ANNOTATION: Final = "headroom.dev/fulfilment"
FULFILMENT: Final = "Fulfilment"
"""The condition; a buffer that headroom keeps with placeholders and that nobody else serves has none."""
SERVED, HANDING_OVER, LEFT = "ServedByAutoscaler", "HandingOver", "LeftToAutoscaler"
MISSING, TAKEN_BACK, ALSO_SERVED = "CapacityMissing", "TakenBack", "AlsoServed"
BALLOONS = "BalloonPods"


@dataclass(frozen=True, slots=True)
class Keeping:
    """Who keeps the capacity of one buffer, and what follows."""

    fulfilment: Fulfilment = Fulfilment.PLACEHOLDER
    """Who keeps it."""
    holds_nodes: bool = True
    """Whether headroom protects nodes for it."""
    opens_nodes: bool = True
    """Whether headroom makes nodes for it."""
    is_placed: bool = True
    """Whether its chunks take room in the placement."""
    condition: Condition | None = None
    """What the buffer says of it; None for plain placeholders."""
    autoscaler: ServingAutoscaler | None = None
    """The one whose fields are in the status."""
    silent: bool = False
    """Whether that one has not written for long."""
    balloons: int = 0
    """How many pods of its balloon have a node."""
    waiting_balloons: tuple[ObjectRef, ...] = ()
    """Pods of its balloon without a node, if they keep the capacity."""


@dataclass(frozen=True, slots=True)
class Situation:
    buffer: Buffer
    live: LiveObject | None = None
    """Its object in the cluster."""
    now: datetime | None = None
    """The cluster's time; None where ages do not matter."""
    balloons: int = 0
    """How many pods of its balloon have a node."""
    waiting_balloons: tuple[ObjectRef, ...] = ()
    """Pods of its balloon without a node."""
    desired: int | None = None
    """Its size in chunks."""


def with_default_fulfilment(declared: Declared, default: Fulfilment) -> Declared:
    """Every buffer; those that do not say who keeps them get the default."""
    if default is Fulfilment.PLACEHOLDER:
        return declared
    return replace(declared, buffers=tuple(replace(item, default_fulfilment=default) for item in declared.buffers))


def asked_for(buffer: Buffer) -> Fulfilment | None:
    """As annotated; None where it is not, and for an unknown value, which validation reports."""
    written = buffer.annotation(FULFILMENT_ANNOTATION)
    return next((kind for kind in Fulfilment if kind.value == written), None)


def keeping(situation: Situation) -> Keeping:
    """Who keeps the buffer now.

    Headroom stands down for a known autoscaler, but not where the buffer asks for something else by its annotation.
    """
    asked = asked_for(situation.buffer)
    autoscaler = None if situation.live is None else serving_autoscaler(situation.live)
    wanted = asked or (Fulfilment.NATIVE if autoscaler is not None else situation.buffer.default_fulfilment)
    if wanted is Fulfilment.NATIVE and situation.buffer.ref.kind != CAPACITY_BUFFER_KIND:
        return Keeping()  # no autoscaler knows the kind, so that nobody else would keep it
    if wanted is Fulfilment.NATIVE:
        may_take_back = asked is None and situation.buffer.default_fulfilment is not Fulfilment.NATIVE
        return _native(situation, autoscaler, may_take_back=may_take_back)
    if wanted is Fulfilment.BALLOON:
        return _balloon(situation, autoscaler)
    return _placeholder(situation, autoscaler)


def _placeholder(situation: Situation, autoscaler: ServingAutoscaler | None) -> Keeping:
    if autoscaler is not None:
        message = f"headroom keeps this buffer as it asks for, but {autoscaler.name} serves it too"
    elif _awaits_answer(situation.live, situation.now):
        message = str(condition_of(situation.live, FULFILMENT).get("message", ""))
    else:
        return Keeping()
    return Keeping(condition=_condition(ConditionStatus.FALSE, ALSO_SERVED, message), autoscaler=autoscaler)


def _native(situation: Situation, autoscaler: ServingAutoscaler | None, *, may_take_back: bool) -> Keeping:
    if autoscaler is None:
        return _not_served(situation)
    silent = may_take_back and _is_silent(autoscaler, situation.now)
    if may_take_back and _is_taken_back(situation, autoscaler, silent=silent):
        message = f"{autoscaler.name} has not written for long, and the capacity was missing: headroom keeps the buffer"
        return Keeping(condition=_condition(ConditionStatus.FALSE, TAKEN_BACK, message), autoscaler=autoscaler)
    if not autoscaler.reports and _held_before(situation.live):
        return _handing_over(f"until {autoscaler.name} reports that it is provisioned", autoscaler)
    message = f"{autoscaler.name} serves this buffer: headroom holds nothing for it"
    condition = _condition(ConditionStatus.TRUE, SERVED, message)
    return Keeping(
        Fulfilment.NATIVE,
        holds_nodes=False,
        opens_nodes=False,
        condition=condition,
        autoscaler=autoscaler,
        silent=silent,
    )


def _not_served(situation: Situation) -> Keeping:
    """No autoscaler has picked the buffer up yet: headroom keeps what it had before, and adds nothing."""
    if _held_before(situation.live):
        return _handing_over("until an autoscaler serves the buffer", None)
    message = "left to the autoscaler, which has not picked it up yet"
    condition = _condition(ConditionStatus.UNKNOWN, LEFT, message)
    return Keeping(Fulfilment.NATIVE, holds_nodes=False, opens_nodes=False, is_placed=False, condition=condition)


def _handing_over(until: str, autoscaler: ServingAutoscaler | None) -> Keeping:
    message = f"headroom holds what it has for the buffer {until}"
    condition = _condition(ConditionStatus.FALSE, HANDING_OVER, message)
    return Keeping(Fulfilment.NATIVE, opens_nodes=False, condition=condition, autoscaler=autoscaler)


def _balloon(situation: Situation, autoscaler: ServingAutoscaler | None) -> Keeping:
    hands_over = (situation.desired or 0) > situation.balloons and _held_before(situation.live)
    condition = _condition(ConditionStatus.TRUE, BALLOONS, "balloon pods of low priority keep the capacity")
    if hands_over:
        message = "headroom holds what it has for the buffer until its balloon pods run"
        condition = _condition(ConditionStatus.FALSE, HANDING_OVER, message)
    return Keeping(
        Fulfilment.BALLOON,
        holds_nodes=hands_over,
        opens_nodes=False,
        condition=condition,
        autoscaler=autoscaler,
        balloons=situation.balloons,
        waiting_balloons=() if hands_over else situation.waiting_balloons,
    )


def _awaits_answer(live: LiveObject | None, now: datetime | None) -> bool:
    """Headroom has just overwritten the status of an autoscaler that serves the buffer too. If that one is alive, it writes again within
    moments."""
    if live is None or now is None or condition_of(live, FULFILMENT).get("reason") != ALSO_SERVED:
        return False
    written = time_of(max((at for name, at in live.status_writes.items() if is_own(name)), default=""))
    return written is not None and now - written <= ANSWERED_WITHIN


def _held_before(live: LiveObject | None) -> bool:
    """Headroom kept the buffer until now: the Provisioning condition is its own, and nobody has taken over since."""
    if live is None or condition_of(live, FULFILMENT).get("reason") in {SERVED, MISSING, LEFT, BALLOONS}:
        return False
    provisioning = "status.conditions.Provisioning"
    return any(provisioning in fields for manager, fields in live.managers.items() if is_own(manager))


def _is_silent(autoscaler: ServingAutoscaler, now: datetime | None) -> bool:
    return now is not None and autoscaler.last_write is not None and now - autoscaler.last_write > SILENCE


def _is_taken_back(situation: Situation, autoscaler: ServingAutoscaler, *, silent: bool) -> bool:
    """Capacity went missing, and the autoscaler has not reported it as provisioned again."""
    condition = condition_of(situation.live, FULFILMENT)
    since = time_of(condition.get("lastTransitionTime"))
    if since is None or situation.now is None:
        return False
    if condition.get("reason") == TAKEN_BACK:
        has_come_back = autoscaler.last_write is not None and autoscaler.last_write > since
        return not (has_come_back and autoscaler.reports)
    return condition.get("reason") == MISSING and silent and situation.now - since >= GRACE


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(FULFILMENT, status, reason, message)
