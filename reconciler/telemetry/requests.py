"""The states of provisioning requests, and for how many pods room is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily

from reconciler.model.changes import DemandOutcome
from reconciler.model.conditions import ConditionStatus
from reconciler.model.provisioning_requests import Phase
from reconciler.report.status.demands import REQUEST_ENDS, REQUEST_STATES, request_state


def is_left(outcome: DemandOutcome) -> bool:
    """Whether another controller answers the request."""
    return outcome.demand.request is not None and outcome.demand.request.phase is Phase.LEFT


def has_ended(outcome: DemandOutcome) -> bool:
    """Whether the request asks for nothing any more, since it failed or was used."""
    return outcome.demand.request is not None and any(
        item.type in REQUEST_ENDS and item.status is ConditionStatus.TRUE for item in outcome.conditions
    )


def request_gauges(outcomes: Iterable[DemandOutcome]) -> Iterator[GaugeMetricFamily]:
    states = dict.fromkeys(REQUEST_STATES, 0)
    booked = 0
    for outcome in outcomes:
        if outcome.demand.request is not None:
            state = request_state(outcome, outcome.demand.request)
            states[state] += 1
            booked += (outcome.demand.desired or 0) if state == "booked" else 0
    counted = GaugeMetricFamily("headroom_requests", "Provisioning requests by how far they are", labels=("state",))
    for state, count in states.items():
        counted.add_metric((state,), count)
    yield counted
    yield GaugeMetricFamily(
        "headroom_booked_pods", "Pods that bookings of provisioning requests still keep room for", value=booked
    )
