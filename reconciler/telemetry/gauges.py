"""The last pass as gauges, all read at the same time, and the value of each schedule at the moment of a scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.errors import Stalled
from reconciler.model.findings import Severity
from reconciler.model.provisioning_requests import Phase
from reconciler.model.schedules import Schedule
from reconciler.ports import Clock, PassResult
from reconciler.report.status.document import REQUEST_ENDS, REQUEST_STATES, request_state
from reconciler.telemetry.buffers import OBJECT_LABELS, Shortages, buffer_gauges, labelled, labels_of, proposal_gauges
from reconciler.timetable.capacity_schedule import state_at


def is_left(outcome: DemandOutcome) -> bool:
    """Whether another controller answers the request."""
    return outcome.demand.request is not None and outcome.demand.request.phase is Phase.LEFT


def has_ended(outcome: DemandOutcome) -> bool:
    """Whether the request asks for nothing any more, since it failed or was used."""
    request = outcome.demand.request
    return request is not None and request_state(outcome, request) in REQUEST_ENDS.values()


def request_gauges(outcomes: Iterable[DemandOutcome]) -> Iterator[GaugeMetricFamily]:
    states = dict.fromkeys(REQUEST_STATES, 0)
    booked = 0
    for outcome in outcomes:
        if outcome.demand.request is not None:
            state = request_state(outcome, outcome.demand.request)
            states[state] += 1
            booked += (outcome.demand.desired or 0) if state == "booked" else 0
    by_state = (((state,), float(count)) for state, count in states.items())
    yield labelled("headroom_requests", "Provisioning requests by how far they are", ("state",), by_state)
    yield _gauge("headroom_booked_pods", "Pods that bookings of provisioning requests still keep room for", booked)


class PassGauges(Collector):
    """If a pass ended early, gauges of later stages keep the values of the previous pass.

    A replica that leads no longer serves only when its passes were: alerts and autoscalers take the greatest value of all replicas, and what
    it saw last would be served until it leads again.
    """

    def __init__(self) -> None:
        self.leads = True
        self._last: PassResult | None = None
        self._attempted: datetime | None = None
        self._succeeded: datetime | None = None
        self.shortages = Shortages()

    def take(self, result: PassResult, *, succeeded: bool, now: datetime) -> None:
        before = self._last or result
        plan, tree = result.plan or before.plan, result.tree or before.tree
        self._last = PassResult(plan=plan, tree=tree, failure=result.failure, settled=result.settled)
        self._attempted = now
        self._succeeded = now if succeeded else self._succeeded

    def collect(self) -> Iterator[GaugeMetricFamily]:
        last, attempted, succeeded = self._last, self._attempted, self._succeeded
        if last is None or attempted is None:
            return
        yield from _pass_times(attempted, succeeded)
        if not self.leads:
            return
        yield from _pass_gauges(last)
        if last.plan is not None:
            yield from _plan_gauges(last.plan)
            yield from _demand_gauges(last.plan.demands)
            yield from proposal_gauges(last.plan.demands)
            yield from buffer_gauges(last.plan.demands, self.shortages, attempted)
            yield from request_gauges(last.plan.demands)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _pass_times(attempted: datetime, succeeded: datetime | None) -> Iterator[GaugeMetricFamily]:
    yield _gauge("headroom_reconcile_last_attempt_timestamp_seconds", "When the last pass ended", attempted.timestamp())
    if succeeded is not None:
        yield _gauge(
            "headroom_reconcile_last_success_timestamp_seconds",
            "When the last pass without any failure ended",
            succeeded.timestamp(),
        )


def _pass_gauges(last: PassResult) -> Iterator[GaugeMetricFamily]:
    yield _gauge("headroom_settled", "1 when nothing is left to change and nothing is on its way", last.settled)
    stalled = _stall(last)
    yield labelled(
        "headroom_source_stalled",
        "1 while the repository's newest state cannot be taken; the last good one stays in force",
        ("reason",),
        [((stalled,), 1)] if stalled else [(("",), 0)],
    )
    if last.tree is not None and last.tree.revision is not None:
        yield labelled(
            "headroom_git_revision_info", "The revision in force", ("revision",), [((last.tree.revision,), 1)]
        )


def _stall(last: PassResult) -> str:
    if isinstance(last.failure, Stalled):
        return last.failure.reason
    return last.tree.stalled[0] if last.tree is not None and last.tree.stalled else ""


_ACTIONS = ("create", "delete", "hold", "release", "untaint")


def _plan_gauges(plan: Plan) -> Iterator[GaugeMetricFamily]:
    yield labelled(
        "headroom_plan_nodeclaims",
        "NodeClaims that the last plan acts on",
        ("action",),
        [((action,), len(getattr(plan.node_claims, action))) for action in _ACTIONS],
    )
    actions = Counter(change.action.value for change in plan.objects)
    yield labelled(
        "headroom_plan_objects",
        "Declared objects that the last plan changes",
        ("action",),
        [((action,), actions[action]) for action in ("create", "delete", "update")],
    )
    yield _gauge("headroom_held_nodes", "Bins that hold chunks: nodes, and NodeClaims on their way", _held_bins(plan))
    yield labelled(
        "headroom_plan_price_per_hour",
        "Price of all nodes, before and after the last plan",
        ("when", "currency"),
        [
            (("before", plan.cost.currency), plan.cost.per_hour_before),
            (("after", plan.cost.currency), plan.cost.per_hour_after),
        ],
    )
    yield _gauge(
        "headroom_consolidation_savings_dollars_per_hour",
        "What the nodes that chunks have left, and Karpenter has not consolidated yet, will save",
        sum(item.saves for item in plan.departures),
    )
    severities = Counter(finding.severity for finding in plan.findings)
    yield labelled(
        "headroom_findings",
        "Problems in what is declared",
        ("severity",),
        [((severity.value,), severities[severity]) for severity in Severity],
    )
    yield _gauge("headroom_plan_blocked", "Reasons why nothing may be deleted or released now", len(plan.blocked))


def _held_bins(plan: Plan) -> int:
    """How many bins hold chunks. Demands that another party keeps hold no nodes."""
    watched = {outcome.demand.ref for outcome in plan.demands if not outcome.demand.holds_nodes}
    return sum(any(holding.demand not in watched for holding in item.holdings) for item in plan.occupied)


def _demand_gauges(outcomes: tuple[DemandOutcome, ...]) -> Iterator[GaugeMetricFamily]:
    """The gauges of demands. A provisioning request lacks nothing, since it gets an answer and not a promise of room. A suspended
    buffer lacks nothing either, since it is to get nothing."""
    shown = [outcome for outcome in outcomes if not outcome.demand.is_pending_pod and not is_left(outcome)]
    yield labelled(
        "headroom_plan_desired_chunks",
        "Chunks that a demand asks for; absent while it is not ready",
        OBJECT_LABELS,
        [(labels_of(outcome), outcome.demand.desired) for outcome in shown if outcome.demand.desired is not None],
    )
    yield labelled(
        "headroom_plan_unplaced_chunks",
        "Chunks with no place, neither on what exists nor on what could be made",
        OBJECT_LABELS,
        [
            (labels_of(item), 0 if item.demand.suspended else item.unplaced)
            for item in shown
            if item.demand.request is None
        ],
    )
    yield labelled(
        "headroom_demand_ready",
        "1 when it is known what the demand asks for; absent for a provisioning request that has ended",
        OBJECT_LABELS,
        [(labels_of(outcome), outcome.demand.desired is not None) for outcome in shown if not has_ended(outcome)],
    )


class ScheduledCapacity(Collector):
    """schedules: returns those in force, called at every scrape.

    The name and labels are those of the Karpenter design "Scheduled Capacity", so that queries of a HorizontalAutoscaler or KEDA work as
    the proposal says.
    """

    def __init__(self, schedules: Callable[[], tuple[Schedule, ...]], clock: Clock) -> None:
        self._schedules = schedules
        self._clock = clock

    def collect(self) -> Iterator[GaugeMetricFamily]:
        now = self._clock.now()
        family = GaugeMetricFamily(
            "karpenter_scheduled_capacity",
            "The value of a MetricsProducer's schedule now",
            labels=("name", "namespace"),
        )
        for schedule in self._schedules():
            # Where headroom fails on one, of which passes tell, all others are served.
            with suppress(Exception):
                outcome = state_at(schedule, now)
                family.add_metric((outcome.name, outcome.namespace), outcome.current_value)
        yield family
