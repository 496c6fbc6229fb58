"""The last pass as gauges, all from one snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.conditions import ConditionStatus
from reconciler.model.errors import Failure, Stalled
from reconciler.model.findings import Severity
from reconciler.model.provisioning_requests import (
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    FAILED,
    PROVISIONED,
    Phase,
    RequestState,
)
from reconciler.model.quantity import CPU, MEMORY
from reconciler.model.source import SourceTree

_BUFFER_KINDS = {"Buffer", "CapacityBuffer"}
_DEMAND = ("kind", "namespace", "name")
_ENDS = {FAILED: "failed", CAPACITY_REVOKED: "capacity_revoked", BOOKING_EXPIRED: "booking_expired"}
"""By condition type: what a request that has ended is counted as."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    plan: Plan | None
    tree: SourceTree | None
    failure: Failure | None
    settled: bool
    attempted: datetime
    succeeded: datetime | None


class PassGauges(Collector):
    """What a pass that stopped early did not find out is told as the pass before it had it."""

    def __init__(self) -> None:
        self._snapshot: _Snapshot | None = None

    def take(
        self,
        *,
        plan: Plan | None,
        tree: SourceTree | None,
        failure: Failure | None,
        settled: bool,
        succeeded: bool,
        now: datetime,
    ) -> None:
        before = self._snapshot
        self._snapshot = _Snapshot(
            plan=plan or (before.plan if before else None),
            tree=tree or (before.tree if before else None),
            failure=failure,
            settled=settled,
            attempted=now,
            succeeded=now if succeeded else (before.succeeded if before else None),
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        snapshot = self._snapshot
        if snapshot is None:
            return
        yield from _pass_gauges(snapshot)
        if snapshot.plan is not None:
            yield from _plan_gauges(snapshot.plan)
            yield from _demand_gauges(snapshot.plan.demands)
            yield from _request_gauges(snapshot.plan.demands)
            yield from _seed_gauges(snapshot.plan.demands)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _labelled(
    name: str, text: str, labels: Iterable[str], samples: Iterable[tuple[tuple[str, ...], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=tuple(labels))
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _pass_gauges(snapshot: _Snapshot) -> Iterator[GaugeMetricFamily]:
    yield _gauge(
        "headroom_reconcile_last_attempt_timestamp_seconds", "When the last pass ended", snapshot.attempted.timestamp()
    )
    if snapshot.succeeded is not None:
        yield _gauge(
            "headroom_reconcile_last_success_timestamp_seconds",
            "When the last pass without any failure ended",
            snapshot.succeeded.timestamp(),
        )
    yield _gauge("headroom_settled", "1 when nothing is left to change and nothing is on its way", snapshot.settled)
    stalled = _stall(snapshot)
    yield _labelled(
        "headroom_source_stalled",
        "1 while the repository's newest state cannot be taken; the last good one stays in force",
        ("reason",),
        [((stalled,), 1)] if stalled else [(("",), 0)],
    )
    if snapshot.tree is not None and snapshot.tree.revision is not None:
        yield _labelled(
            "headroom_git_revision_info", "The revision in force", ("revision",), [((snapshot.tree.revision,), 1)]
        )


def _stall(snapshot: _Snapshot) -> str:
    if isinstance(snapshot.failure, Stalled):
        return snapshot.failure.reason
    return snapshot.tree.stalled[0] if snapshot.tree is not None and snapshot.tree.stalled else ""


def _plan_gauges(plan: Plan) -> Iterator[GaugeMetricFamily]:
    claims = plan.node_claims
    yield _labelled(
        "headroom_plan_nodeclaims",
        "NodeClaims that the last plan acts on",
        ("action",),
        [
            (("create",), len(claims.create)),
            (("delete",), len(claims.delete)),
            (("hold",), len(claims.hold)),
            (("release",), len(claims.release)),
        ],
    )
    actions = Counter(change.action.value for change in plan.objects)
    yield _labelled(
        "headroom_plan_objects",
        "Declared objects that the last plan changes",
        ("action",),
        [((action,), actions[action]) for action in ("create", "delete", "update")],
    )
    yield _gauge(
        "headroom_held_nodes",
        "Bins that hold chunks: nodes, and NodeClaims on their way",
        sum(1 for bin_ in plan.occupied if bin_.holdings),
    )
    yield _labelled(
        "headroom_plan_price_per_hour",
        "Price of all nodes, before and after the last plan",
        ("when", "currency"),
        [
            (("before", plan.cost.currency), plan.cost.per_hour_before),
            (("after", plan.cost.currency), plan.cost.per_hour_after),
        ],
    )
    severities = Counter(finding.severity for finding in plan.findings)
    yield _labelled(
        "headroom_findings",
        "Problems in what is declared",
        ("severity",),
        [((severity.value,), severities[severity]) for severity in Severity],
    )
    yield _gauge("headroom_plan_blocked", "Reasons why nothing may be deleted or released now", len(plan.blocked))


def _demand_gauges(outcomes: tuple[DemandOutcome, ...]) -> Iterator[GaugeMetricFamily]:
    """A provisioning request is answered: that there is no room for it now is no lack of something promised."""
    own = [outcome for outcome in outcomes if not outcome.demand.is_pending_pod and not _is_left(outcome)]
    yield _labelled(
        "headroom_plan_desired_chunks",
        "Chunks that a demand asks for; absent while it is not ready",
        _DEMAND,
        [(_name(outcome), outcome.demand.desired) for outcome in own if outcome.demand.desired is not None],
    )
    yield _labelled(
        "headroom_plan_unplaced_chunks",
        "Chunks with no place, neither on what exists nor on what could be made",
        _DEMAND,
        [(_name(outcome), outcome.unplaced) for outcome in own if outcome.demand.request is None],
    )
    yield _labelled(
        "headroom_demand_ready",
        "1 when it is known what the demand asks for",
        _DEMAND,
        [(_name(outcome), outcome.demand.desired is not None) for outcome in own],
    )


def _is_left(outcome: DemandOutcome) -> bool:
    return outcome.demand.request is not None and outcome.demand.request.phase is Phase.LEFT


def _request_gauges(outcomes: tuple[DemandOutcome, ...]) -> Iterator[GaugeMetricFamily]:
    states = dict.fromkeys(("waiting", "booked", "not_ready", "left", *_ENDS.values()), 0)
    booked = 0
    for outcome in outcomes:
        if outcome.demand.request is not None:
            state = _state_of(outcome, outcome.demand.request)
            states[state] += 1
            booked += (outcome.demand.desired or 0) if state == "booked" else 0
    yield _labelled(
        "headroom_requests",
        "Provisioning requests by how far they are",
        ("state",),
        [((state,), count) for state, count in states.items()],
    )
    yield _gauge("headroom_booked_pods", "Pods that bookings of provisioning requests still keep room for", booked)


def _state_of(outcome: DemandOutcome, request: RequestState) -> str:
    true = {item.type for item in outcome.conditions if item.status is ConditionStatus.TRUE}
    ended = next((state for kind, state in _ENDS.items() if kind in true), "")
    if ended or request.phase is Phase.LEFT:
        return ended or "left"
    if request.phase is Phase.NOT_READY:
        return "not_ready"
    return "booked" if PROVISIONED in true else "waiting"


def _seed_gauges(outcomes: tuple[DemandOutcome, ...]) -> Iterator[GaugeMetricFamily]:
    """Under the names of the Karpenter RFC "CapacityBuffer": what stands or is on its way."""
    buffers = [outcome for outcome in outcomes if outcome.demand.ref.kind in _BUFFER_KINDS]
    for name, text, resource, unit in (
        ("karpenter_buffer_capacity_cpu_cores", "CPU kept ready for a buffer", CPU, 1000),
        ("karpenter_buffer_capacity_memory_bytes", "Memory kept ready for a buffer", MEMORY, 1),
    ):
        yield _labelled(
            name,
            text,
            ("namespace", "name"),
            [
                ((outcome.demand.ref.namespace, outcome.demand.ref.name), _kept(outcome, resource) / unit)
                for outcome in buffers
            ],
        )


def _kept(outcome: DemandOutcome, resource: str) -> int:
    """A buffer has one group, so that its chunks are all alike."""
    return sum(group.shape.requests.get(resource) for group in outcome.demand.groups[:1]) * outcome.on_existing


def _name(outcome: DemandOutcome) -> tuple[str, str, str]:
    ref = outcome.demand.ref
    return (ref.kind, ref.namespace, ref.name)
