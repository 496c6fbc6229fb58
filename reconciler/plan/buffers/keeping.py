"""Whether a buffer's capacity is there, since when some is missing, and which autoscaler looks for room beside headroom.

The reasons of conditions are Karpenter's (controllers/provisioning/buffers.go). Unlike there, chunks on a node that is still on its way are
not capacity that fits. The condition becomes true when the capacity is there.

An object says since when its buffer lacks capacity, so that a restart does not make an old shortage look new. An autoscaler that looks for
room too must find the room that headroom holds, or it would make that room a second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.model.autoscalers import (
    ANSWERED_WITHIN,
    ASKED_AFTER,
    CORRECTED_AFTER,
    GRACE,
    SILENCE,
    condition_of,
    time_of,
)
from reconciler.model.buffers import FULFILLED, Fulfilment
from reconciler.model.changes import DemandOutcome
from reconciler.model.conditions import Availability, Condition, ConditionStatus
from reconciler.model.demand import Demand
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView

PROVISIONING = "Provisioning"
FULFILMENT = "Fulfilment"
_SHORT, _MISSING = "RequiresNewCapacity", "CapacityMissing"
_TAKEN_BACK, _ALSO_SERVED = "TakenBack", "AlsoServed"
_MOMENT = timedelta(seconds=1)
"""Added since times in the cluster are whole seconds, and the second must be over."""


def provisioning(demand: Demand, where: Availability, starting: int = 0) -> tuple[Condition, ...]:
    """The demand's conditions with Provisioning added, and with what the placement means for whoever keeps the buffer.

    starting: chunks that have room but whose balloon pods do not run yet.
    """
    if demand.fulfilment == Fulfilment.NATIVE and not demand.holds_nodes:
        return tuple(_missing(item, demand, where) for item in demand.conditions)
    if any(item.type == PROVISIONING for item in demand.conditions):
        return demand.conditions
    return (*demand.conditions, _provisioning(demand, where, starting))


def _missing(condition: Condition, demand: Demand, where: Availability) -> Condition:
    """Headroom takes a buffer back whose autoscaler is silent; until then the condition says that its capacity is missing."""
    if condition.type != FULFILMENT or not demand.silent or not where.unplaced or demand.autoscaler is None:
        return condition
    message = f"{demand.autoscaler.name} has not written for long, and not all of the capacity is there"
    return Condition(FULFILMENT, ConditionStatus.FALSE, _MISSING, message)


def _provisioning(demand: Demand, where: Availability, starting: int) -> Condition:
    if demand.desired is None:
        return _condition(ConditionStatus.FALSE, "NotReadyForProvisioning", "the buffer is not ready")
    if demand.desired == 0 and demand.filled:
        whole = "the 1 chunk" if demand.filled == 1 else f"all {demand.filled:,} chunks"
        return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", f"its own pods fill {whole}")
    if demand.ended is not None and demand.ended.type == FULFILLED:
        return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", demand.ended.message)
    if demand.desired == 0:
        message = "the buffer asks for nothing" if demand.ended is None else demand.ended.message
        return _condition(ConditionStatus.FALSE, "BufferEmpty", message)
    chunks, words = f"{demand.desired:,} chunks", f"all {demand.desired:,} chunks have room"
    if demand.desired == 1:
        chunks, words = "1 chunk", "the 1 chunk has room"
    missing = [
        f"{count:,} {words}"
        for count, words in (
            # New nodes count as on their way: they are once the status is written, and another message would be another write.
            (where.coming + where.new, "on nodes that are on their way"),
            (where.not_ready, "on nodes that are not ready"),
            (starting, "with room for balloon pods that do not run yet"),
            (where.unplaced, "without a place"),
        )
        if count
    ]
    if missing:
        message = f"of {chunks}, {', '.join(missing)}"
        message = "; ".join(filter(None, (message, where.cut, where.stopped)))
        return _condition(ConditionStatus.FALSE, _SHORT, message)
    return _condition(ConditionStatus.TRUE, "FitsExistingCapacity", words)


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(PROVISIONING, status, reason, message)


def with_shortages(outcomes: Iterable[DemandOutcome], view: ClusterView) -> list[DemandOutcome]:
    """Outcomes of buffers that were short when their status was last written, with the time since when."""
    return [_with_shortage(outcome, view) for outcome in outcomes]


def _with_shortage(outcome: DemandOutcome, view: ClusterView) -> DemandOutcome:
    if outcome.demand.is_pending_pod or outcome.demand.request is not None:
        return outcome
    before = condition_of(view.objects.get(outcome.demand.ref), PROVISIONING)
    since = time_of(before.get("lastTransitionTime")) if before.get("reason") == _SHORT else None
    return outcome if since is None else replace(outcome, short_since=since)


def served_elsewhere(demands: Iterable[Demand]) -> frozenset[ObjectRef]:
    """Buffers that are being handed over, and those that both serve. A buffer taken back from a silent autoscaler is headroom's alone."""
    return frozenset(
        demand.ref
        for demand in demands
        if demand.fulfilment == Fulfilment.NATIVE
        or also_served(demand)
        or (demand.autoscaler is not None and not _says(demand, _TAKEN_BACK))
    )


def also_served(demand: Demand) -> bool:
    """Headroom keeps it, and an autoscaler is known to serve it as well."""
    return _says(demand, _ALSO_SERVED)


def _says(demand: Demand, reason: str) -> bool:
    return any(item.type == FULFILMENT and item.reason == reason for item in demand.conditions)


def keeping_edges(outcomes: Iterable[DemandOutcome], view: ClusterView, now: datetime) -> tuple[Edge, ...]:
    """Those that lie ahead; now: by the cluster's clock."""
    edges = (edge for outcome in outcomes for edge in _edges(outcome, view, now))
    return tuple(edge for edge in edges if edge.at > now)


def _edges(outcome: DemandOutcome, view: ClusterView, now: datetime) -> Iterable[Edge]:
    autoscaler = outcome.demand.autoscaler
    if autoscaler is None and also_served(outcome.demand):
        yield Edge(
            now + ANSWERED_WITHIN + _MOMENT, f"{outcome.demand.ref}: no autoscaler has said that it still serves it"
        )
    if autoscaler is None or autoscaler.last_write is None:
        return
    ref, written = outcome.demand.ref, autoscaler.last_write
    if outcome.demand.fulfilment != Fulfilment.NATIVE:
        yield Edge(written + CORRECTED_AFTER + _MOMENT, f"{ref}: what {autoscaler.name} says of it may be corrected")
        if autoscaler.answers and also_served(outcome.demand):
            asked = max(written + ASKED_AFTER, now + ANSWERED_WITHIN)
            yield Edge(asked + _MOMENT, f"{ref}: {autoscaler.name} is asked whether it still serves it")
    elif outcome.unplaced and not outcome.demand.holds_nodes:
        yield Edge(written + SILENCE + _MOMENT, f"{ref}: {autoscaler.name} has written nothing for ten minutes")
        told = condition_of(view.objects.get(ref), FULFILMENT)
        since = time_of(told.get("lastTransitionTime")) if told.get("reason") == _MISSING else None
        # A condition that is not there yet is written by this pass.
        began = since or max(now, written + SILENCE + _MOMENT)
        yield Edge(began + GRACE + _MOMENT, f"{ref}: its capacity has been missing for a minute")
