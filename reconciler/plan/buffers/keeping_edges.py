"""Instants at which a pass may decide again who keeps a buffer, or correct what an autoscaler says about it."""

from __future__ import annotations

from collections.abc import Iterable
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
from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import DemandOutcome
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView
from reconciler.plan.buffers.served_elsewhere import also_served

_MOMENT = timedelta(seconds=1)
"""Added since times in the cluster are whole seconds, and the second must be over."""


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
        told = condition_of(view.objects.get(ref), "Fulfilment")
        since = time_of(told.get("lastTransitionTime")) if told.get("reason") == "CapacityMissing" else None
        # A condition that is not there yet is written by this pass.
        began = since or max(now, written + SILENCE + _MOMENT)
        yield Edge(began + GRACE + _MOMENT, f"{ref}: its capacity has been missing for a minute")
