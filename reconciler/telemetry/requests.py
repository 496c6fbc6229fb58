"""The states of provisioning requests, and for how many pods room is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily

from reconciler.model.changes import DemandOutcome
from reconciler.model.conditions import ConditionStatus
from reconciler.model.provisioning_requests import (
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    FAILED,
    PROVISIONED,
    Phase,
    RequestState,
)

_ENDS = {FAILED: "failed", CAPACITY_REVOKED: "capacity_revoked", BOOKING_EXPIRED: "booking_expired"}
"""By condition type, the state that an ended request counts as."""


def is_left(outcome: DemandOutcome) -> bool:
    """Whether another controller answers the request."""
    return outcome.demand.request is not None and outcome.demand.request.phase is Phase.LEFT


def has_ended(outcome: DemandOutcome) -> bool:
    """Whether the request asks for nothing any more, since it failed or was used."""
    return outcome.demand.request is not None and any(
        item.type in _ENDS and item.status is ConditionStatus.TRUE for item in outcome.conditions
    )


def request_gauges(outcomes: Iterable[DemandOutcome]) -> Iterator[GaugeMetricFamily]:
    states = dict.fromkeys(("waiting", "booked", "not_ready", "left", *_ENDS.values()), 0)
    booked = 0
    for outcome in outcomes:
        if outcome.demand.request is not None:
            state = _state_of(outcome, outcome.demand.request)
            states[state] += 1
            booked += (outcome.demand.desired or 0) if state == "booked" else 0
    counted = GaugeMetricFamily("headroom_requests", "Provisioning requests by how far they are", labels=("state",))
    for state, count in states.items():
        counted.add_metric((state,), count)
    yield counted
    yield GaugeMetricFamily(
        "headroom_booked_pods", "Pods that bookings of provisioning requests still keep room for", value=booked
    )


def _state_of(outcome: DemandOutcome, request: RequestState) -> str:
    true = {item.type for item in outcome.conditions if item.status is ConditionStatus.TRUE}
    ended = next((state for kind, state in _ENDS.items() if kind in true), "")
    if ended or request.phase is Phase.LEFT:
        return ended or "left"
    if request.phase is Phase.NOT_READY:
        return "not_ready"
    return "booked" if PROVISIONED in true else "waiting"
