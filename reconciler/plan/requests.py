"""What becomes of ProvisioningRequests: decisions, bookings, attempts that are rolled back, requests that have ended.

Placement is told where booked capacity is, so that a booking stays where it was. Nodes of an attempt are deleted if not all of its nodes
can be made. Reserved nodes whose request is over lose the taint that kept other pods off. The view alone decides that: the node is reserved
for a request that has ended or no longer exists. So after a kill at any point the next pass finishes the work.

Requests from Git that have ended or lost their document are never applied again, and deleted after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.changes import Action, NodeClaimAction, NodeClaimCreation, ObjectChange
from reconciler.model.declared import Declared
from reconciler.model.demand import REQUEST_KIND, Demand
from reconciler.model.nodes import ATTEMPT_LABEL, HOLDS_ANNOTATION, Node, NodeClaim
from reconciler.model.placement import read_holdings
from reconciler.model.provisioning_requests import RequestRules, RequestState, reserved_taint, reserved_taints
from reconciler.model.quantity import format_duration
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import REQUESTS_KEY, RequestRecord, read_records, record_name, records_of
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin
from reconciler.plan.facts import Facts
from reconciler.plan.holding.hold import deletion
from reconciler.plan.launching.back_offs import LaunchRecord
from reconciler.plan.objects.prune import reason_to_keep
from reconciler.plan.outcomes import Tallies
from reconciler.requests.life import Decision, cancelled, decide


@dataclass(frozen=True, slots=True)
class RequestPlan:
    created: tuple[NodeClaimCreation, ...]
    """The plan's new nodes, with what requests on them ask for."""
    decisions: Mapping[ObjectRef, Decision] = field(default_factory=dict)
    records: Mapping[str, RequestRecord] = field(default_factory=dict)
    """What the inventory remembers."""
    deleted: tuple[NodeClaimAction, ...] = ()
    """Empty nodes of failed attempts."""
    freed: tuple[NodeClaimAction, ...] = ()
    """Nodes that any pod may use from now on."""
    ended: frozenset[ObjectRef] = frozenset()
    """Requests that must not run again."""
    edges: tuple[Edge, ...] = ()
    """Instants at which a request asks for something else."""


def request_plan(
    facts: Facts,
    rules: RequestRules,
    bins: Sequence[Bin],
    tallies: Tallies,
    created: tuple[NodeClaimCreation, ...],
    price_of: Callable[[Bin], float | None],
) -> RequestPlan:
    """created: the plan's new nodes.

    The document of a request that never had an object runs on after the end: only an object can tell its user how it ended."""
    view, now = facts.view, facts.cluster_now
    asked = [(demand, demand.request) for demand in facts.demands if demand.request is not None]
    reserved = [item for item in bins if item.is_reserved]
    if not (asked or reserved or REQUESTS_KEY in view.inventory.records):
        return RequestPlan(created)
    decided: list[_Decided] = []
    edges: list[Edge] = []
    records = _kept(facts, rules)
    unread = "; ".join(view.gaps) if view.unread & {"Node", "NodeClaim"} else ""
    tried = _attempts_tried(asked, view, facts.launches)
    located = _located(bins, {demand.ref: len(demand.groups) for demand, _ in asked if demand.groups})
    for demand, state in asked:
        there = replace(tallies.of_request(demand, state), unread=unread, tried=demand.ref in tried)
        decision = decide(demand, state, there, now, rules)
        if decision.record.provisioned is not None and not demand.is_shapeless:
            decision = replace(decision, record=decision.record.but(located=located.get(demand.ref, {})))
        decided.append((demand.ref, state, decision))
        name = record_name(demand.ref.namespace, demand.ref.name)
        if _is_remembered(state, decision.record):
            records[name] = decision.record
        else:
            records.pop(name, None)
        edges += _edges(demand.ref, state, decision.record, rules, view.clock_skew)
    return RequestPlan(
        _for_requests(created, decided),
        {ref: decision for ref, _, decision in decided},
        records,
        _rolled_back(bins, decided, price_of),
        _untainted(reserved, decided),
        frozenset(ref for ref, _, item in decided if item.record.ended and item.record.uid),
        tuple(sorted(edges, key=lambda edge: (edge.at, edge.why))),
    )


_Decided = tuple[ObjectRef, RequestState, Decision]


def _kept(facts: Facts, rules: RequestRules) -> dict[str, RequestRecord]:
    """Records of requests that are neither declared nor in the cluster. They are kept for a while, so that a reverted commit runs nothing
    again. While some documents cannot be read, a request may be declared although none is seen."""
    records = read_records(facts.view.inventory.records)
    if facts.repository.broken or facts.repository.broken_files or not facts.view.complete:
        return records
    return {
        name: record
        for name, record in records.items()
        if record.ended is not None and facts.cluster_now < record.ended + rules.kept_for
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
        said = read_holdings(item.held_for)
        counts: dict[ObjectRef, list[int]] = {}
        for holding in item.chunks:
            if holding.demand in groups:
                counts.setdefault(holding.demand, [0] * groups[holding.demand])[holding.group] += holding.count
        for ref, amounts in counts.items():
            if any(said.get((str(ref), group), 0) < amount for group, amount in enumerate(amounts)):
                found.setdefault(ref, {})[item.name] = tuple(amounts)
    return found


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


def _attempts_tried(
    asked: Iterable[tuple[Demand, RequestState]], view: ClusterView, launches: LaunchRecord
) -> frozenset[ObjectRef]:
    """Requests whose current attempt has made NodeClaims or set nodes aside, even if those are gone since the last pass."""
    under_way = {
        str(demand.ref): (demand.ref, state.record.attempt_label) for demand, state in asked if state.record.under_way
    }
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


def _for_requests(created: tuple[NodeClaimCreation, ...], decided: Iterable[_Decided]) -> tuple[NodeClaimCreation, ...]:
    """New nodes with what the requests on them ask for: a bounded life, and labels.

    The labels name the attempt that a node is made in, or makes good. With several requests on one node, the first in order counts. A node
    that is reserved has the value of its taint as a label, which pods can select.
    """
    asking = {
        ref: (decision.record.attempt_label, state.runs_for)
        for ref, state, decision in decided
        if decision.makes_nodes and decision.record.uid
    }
    if not asking:
        return created
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


@dataclass(frozen=True, slots=True)
class Bookings:
    held: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    """The name of a node, or of a NodeClaim without one; the request; its chunks there by pod set."""
    kept: frozenset[str] = frozenset()
    """Nodes that are not replaced while the booking lasts."""
    since: datetime | None = None
    """When the first of the attempts under way began; None if there are none."""


def bookings(view: ClusterView) -> Bookings:
    """From the records of requests: those that are provisioned and have not ended, and attempts under way."""
    records = read_records(view.inventory.records)
    since = min((item.began for item in records.values() if item.under_way and item.began is not None), default=None)
    booked = {
        name: record for name, record in records.items() if record.provisioned is not None and record.ended is None
    }
    if not booked:
        return Bookings(since=since)
    held = tuple(
        (node, f"{REQUEST_KIND}/{name}", counts)
        for name, record in sorted(booked.items())
        for node, counts in sorted(record.located.items())
    )
    names = {f"{REQUEST_KIND}/{name}" for name in booked}
    return Bookings(held, view.holding(names).union(node for node, _, _ in held), since)


def _rolled_back(
    bins: Iterable[Bin], decided: Iterable[_Decided], price_of: Callable[[Bin], float | None]
) -> tuple[NodeClaimAction, ...]:
    """Empty nodes of failed attempts, whatever their NodePool's policy: nobody asked for a part of a request.

    Nodes that hold pods or other chunks by now stay. Nodes of a request that is gone are released like others.
    """
    by_uid = {decision.record.uid: (ref, decision) for ref, _, decision in decided if decision.record.uid}
    actions = []
    for item in bins if by_uid else ():
        claim, used = item.node_claim, item.chunks or item.pods or item.in_use
        if claim is None or used or item.is_going or not item.is_placeholder:
            continue
        uid, _, number = (claim.label(ATTEMPT_LABEL) or "").rpartition(".")
        if uid not in by_uid or item.is_kept_by_a_person:
            continue
        ref, decision = by_uid[uid]
        if _has_failed(decision, number):
            reason = f"attempt {number} of {ref} has failed, so its nodes are deleted"
            actions.append(deletion(item, reason, price_of))
    return tuple(actions)


def _has_failed(decision: Decision, number: str) -> bool:
    record = decision.record
    if record.ended is not None:
        return decision.has_failed
    return number != str(record.attempt) or not (record.under_way or record.provisioned is not None)


def _untainted(reserved: Iterable[Bin], decided: Iterable[_Decided]) -> tuple[NodeClaimAction, ...]:
    """Nodes that any pod may use from now on. A NodeClaim cannot be changed: its node is freed in a later pass, once it exists."""
    live = {reserved_taint(ref).value for ref, _, decision in decided if decision.record.ended is None}
    return tuple(
        NodeClaimAction(
            item.node_claim.name if item.node_claim is not None else None,
            item.name,
            item.node_pool,
            f"the provisioning request that it was reserved for ({value}) is over",
        )
        for item in reserved
        if not item.is_going
        for value in _values(item)[:1]
        if not live.intersection(_values(item))
    )


def _values(item: Bin) -> list[str]:
    return [] if item.node is None else [taint.value for taint in reserved_taints(item.node.taints)]


def remembered_requests(requests: RequestPlan, changes: Iterable[ObjectChange], now: datetime) -> dict[str, Any]:
    """What the inventory remembers, with those cancelled whose object was deleted while they were under way. Removing the document ends a
    request for good, as deleting the object does. now: by the cluster's clock."""
    gone = {
        record_name(change.ref.namespace, change.ref.name)
        for change in changes
        if change.ref.kind == REQUEST_KIND and change.action is Action.DELETE
    }
    records = {
        name: cancelled(record, now) if name in gone and record.ended is None else record
        for name, record in requests.records.items()
    }
    return records_of(REQUESTS_KEY, records)


def collect(facts: Facts, requests: RequestPlan, rules: RequestRules, applyset_id: str) -> tuple[ObjectChange, ...]:
    """Deletions of objects that headroom applied and whose request ended long ago."""
    due = []
    for demand in facts.demands:
        decision = requests.decisions.get(demand.ref)
        if decision is None or demand.request is None or not demand.request.declared:
            continue
        ended = decision.record.ended
        members = facts.view.inventory.members
        if ended is None or facts.cluster_now < ended + rules.kept_for or demand.ref not in members:
            continue
        live = facts.view.objects.get(demand.ref)
        if live is not None and reason_to_keep(live, Declared(), applyset_id) is None:
            reason = f"it ended {format_duration(rules.kept_for)} ago"
            due.append(ObjectChange(demand.ref, Action.DELETE, reason=reason))
    return tuple(due)
