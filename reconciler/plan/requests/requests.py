"""What becomes of all ProvisioningRequests in a pass: their conditions, what is remembered about them, and when to look again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.conditions import Availability
from reconciler.model.demand import Demand
from reconciler.model.nodes import ATTEMPT_LABEL, HOLDS_ANNOTATION, Node, NodeClaim
from reconciler.model.placement import read_holdings
from reconciler.model.provisioning_requests import RequestRules, RequestState, reserved_taints
from reconciler.model.refs import ObjectRef
from reconciler.model.request_records import RequestRecord, read_records, record_name
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin
from reconciler.plan.launching.back_offs import LaunchRecord
from reconciler.requests.life import Decision, decide


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """decisions: by request. records: what the inventory remembers. edges: instants at which a request asks for something else."""

    decisions: Mapping[ObjectRef, Decision] = field(default_factory=dict)
    records: Mapping[str, RequestRecord] = field(default_factory=dict)
    edges: tuple[Edge, ...] = ()


def request_plan(
    demands: Iterable[Demand],
    availability: Mapping[ObjectRef, Availability],
    bins: Sequence[Bin],
    view: ClusterView,
    now: datetime,
    *,
    rules: RequestRules,
    unknown: bool,
) -> RequestPlan:
    """now: by the cluster's clock. unknown: some documents could not be read, so a request may be declared although none is seen."""
    decisions: dict[ObjectRef, Decision] = {}
    asked = [(demand, demand.request) for demand in demands if demand.request is not None]
    records = _kept(read_records(view.inventory.memory), view, now, rules, unknown=unknown)
    edges: list[Edge] = []
    located = _located(bins, {demand.ref: len(demand.groups) for demand, _ in asked})
    for demand, state in asked:
        decision = decide(demand, state, availability.get(demand.ref, Availability()), now, rules)
        if decision.record.provisioned is not None:
            decision = replace(decision, record=replace(decision.record, located=located.get(demand.ref, {})))
        decisions[demand.ref] = decision
        name = record_name(demand.ref.namespace, demand.ref.name)
        if _is_remembered(state, decision.record):
            records[name] = decision.record
        else:
            records.pop(name, None)
        edges += _edges(demand.ref, state, decision.record, rules, view.clock_skew)
    return RequestPlan(decisions, records, tuple(sorted(edges, key=lambda edge: (edge.at, edge.why))))


def _kept(
    records: Mapping[str, RequestRecord], view: ClusterView, now: datetime, rules: RequestRules, *, unknown: bool
) -> dict[str, RequestRecord]:
    """Records of requests that are neither declared nor in the cluster. They are kept for a while, so that a reverted commit runs nothing
    again."""
    if unknown or not view.complete:
        return dict(records)
    return {
        name: record
        for name, record in records.items()
        if record.ended is not None and now < record.ended + rules.kept_for
    }


def _is_remembered(state: RequestState, record: RequestRecord) -> bool:
    """It has begun or ended. The end of a request that is not from Git is in its conditions."""
    if not record.uid:
        return False
    if record.ended is not None:
        return state.declared
    return record.attempt > 0 or record.provisioned is not None


def _located(bins: Iterable[Bin], groups: Mapping[ObjectRef, int]) -> dict[ObjectRef, dict[str, tuple[int, ...]]]:
    """Chunks of each pod set, by request and node. Left out are nodes whose annotation says as much."""
    found: dict[ObjectRef, dict[str, tuple[int, ...]]] = {}
    for item in bins:
        said = _holdings_said(item)
        counts: dict[ObjectRef, list[int]] = {}
        for holding in item.chunks:
            if holding.demand in groups:
                counts.setdefault(holding.demand, [0] * groups[holding.demand])[holding.group] += holding.count
        for ref, amounts in counts.items():
            if any(said.get((str(ref), group), 0) < amount for group, amount in enumerate(amounts)):
                found.setdefault(ref, {})[item.name] = tuple(amounts)
    return found


def _holdings_said(item: Bin) -> Mapping[tuple[str, int], int]:
    words = next((words for side in reversed(item.sides) if (words := side.annotation(HOLDS_ANNOTATION))), "")
    return read_holdings(words) if words else {}


def _edges(
    ref: ObjectRef, state: RequestState, record: RequestRecord, rules: RequestRules, skew: timedelta
) -> Iterable[Edge]:
    """By this machine's clock."""
    if record.ended is not None:
        if state.declared and state.exists:
            yield Edge(record.ended + rules.kept_for + skew, f"{ref} is due to be collected")
    elif record.provisioned is not None:
        yield Edge(record.provisioned + state.booked_for + skew, f"the booking of {ref} ends")
    elif state.exists:
        if record.retry_at is not None:
            yield Edge(record.retry_at + skew, f"{ref} is tried again")
        if state.valid_until is not None:
            yield Edge(state.valid_until + skew, f"{ref} is not valid any more")


def attempts_since(view: ClusterView) -> datetime | None:
    """When the first of the attempts under way began; None if there are none."""
    records = read_records(view.inventory.memory).values()
    return min((record.began for record in records if record.under_way and record.began is not None), default=None)


def attempts_tried(demands: Iterable[Demand], view: ClusterView, launches: LaunchRecord) -> frozenset[ObjectRef]:
    """Requests whose current attempt has made NodeClaims or set nodes aside, even if those are gone since the last pass."""
    asked = [(demand.ref, demand.request.record) for demand in demands if demand.request is not None]
    under_way = {str(ref): (ref, record.attempt_label) for ref, record in asked if record.under_way}
    if not under_way:
        return frozenset()
    sides: tuple[Node | NodeClaim, ...] = (*view.node_claims, *view.nodes)
    labels = {side.label(ATTEMPT_LABEL) for side in sides}
    words = (
        *(side.annotation(HOLDS_ANNOTATION) for side in sides),
        *(item.holds for item in launches.vanished.values()),
    )
    held = {name for text in set(words) if text for name, _ in read_holdings(text)}
    return frozenset(ref for name, (ref, label) in under_way.items() if label in labels or name in held)


def made_in_attempts(bins: Iterable[Bin], demands: Iterable[Demand]) -> dict[ObjectRef, int]:
    """How many nodes the current attempt of each request has."""
    attempts = {
        demand.request.record.attempt_label: demand.ref
        for demand in demands
        if demand.request is not None and demand.request.record.under_way
    }
    made: dict[ObjectRef, int] = {}
    for item in bins if attempts else ():
        label = "" if item.claim is None or item.is_going else item.claim.label(ATTEMPT_LABEL)
        if label in attempts:
            made[attempts[label]] = made.get(attempts[label], 0) + 1
    return made


def for_requests(
    created: Sequence[NodeClaimCreation], demands: Iterable[Demand], decisions: Mapping[ObjectRef, Decision]
) -> tuple[NodeClaimCreation, ...]:
    """New nodes with what the requests on them ask for: a bounded life, and labels.

    The labels name the attempt that a node is made in, or makes good. With several requests on one node, the first in order counts. A node
    that is reserved has the value of its taint as a label, which pods can select.
    """
    asking = {
        demand.ref: (decision.record.attempt_label, demand.request.runs_for)
        for demand in demands
        if demand.request is not None and (decision := decisions.get(demand.ref)) is not None
        if decision.makes_nodes and decision.record.uid
    }
    if not asking:
        return tuple(created)
    order = {ref: number for number, ref in enumerate(asking)}

    def completed(creation: NodeClaimCreation) -> NodeClaimCreation:
        own = sorted(
            {item.demand for item in creation.planned.holdings if item.demand in asking}, key=order.__getitem__
        )
        if not own:
            return creation
        reserved = ((taint.key, taint.value) for taint in reserved_taints(creation.planned.taints))
        return replace(
            creation,
            labels=((ATTEMPT_LABEL, asking[own[0]][0]), *reserved),
            lives_for=min(filter(None, (asking[ref][1] for ref in own)), default=None),
        )

    return tuple(map(completed, created))
