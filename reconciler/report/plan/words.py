"""Phrases about plans: nodes and their prices, what they hold, reasons, where chunks are, why they are served first, and the summary in one line."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo

from reconciler.model.changes import (
    Action,
    DemandOutcome,
    DomainCount,
    NodeClaimAction,
    NodeClaimChanges,
    Plan,
)
from reconciler.model.conditions import ConditionStatus
from reconciler.model.demand import NO_PRIORITY_CLASS, REQUEST_KIND, Demand, Service
from reconciler.model.marks import PRIORITY_ANNOTATION
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, ZONE_LABEL
from reconciler.model.placement import Cause, PlannedNode, UnplacedReason
from reconciler.model.provisioning_requests import PROVISIONED, TERMINAL
from reconciler.model.refs import POD_KIND, ObjectRef, counted, listed
from reconciler.model.remembered import WaitingDeletions
from reconciler.model.timelines import HOUR, MONTH, SAMPLE_PRICES, Spending, share_price
from reconciler.report.words import an_hour, change_words, dollars, hourly, moment

_RESERVED = "reserved"

_NEXT_TO_NOTHING = 0.00005
"""In USD an hour. With four digits, smaller prices would be shown as 0."""

MOST_ZONES = 2
"""The most zones to name on one line; more are counted."""

_CANDIDATES = {
    Cause.NODE_FULL: "node",
    Cause.NODE_TOO_SMALL: "node",
    Cause.NODE_LABELS: "node",
    Cause.NODE_TAINTS: "node",
    Cause.NODE_NOT_AVAILABLE: "node",
    Cause.INSTANCE_TYPE_TOO_SMALL: "instance type",
    Cause.AT_LIMIT: "instance type",
    Cause.NOT_AVAILABLE: "offering",
    Cause.BEYOND_A_CAP: "node",
}
"""By cause, what its candidates are, if all are of one kind."""
_MOST_DOMAINS = 8
"""The most domains to name in one sentence; the rest is counted."""
SPAN = f"{MONTH.days} days"
HOURS_OF_SPAN = MONTH / HOUR
"""Every price over a time is over this span, so that two figures of one plan agree."""
AT_THIS_INSTANT = (
    f"at the price of this instant: --cost computes what schedules and requests ask for over the coming {SPAN}"
)
_MOST_NAMED = 3


def demand_facts(outcome: DemandOutcome) -> list[str]:
    """Further facts of a demand, in this order: suspended, one-shot, the request's state, why it is served first, where its chunks are."""
    demand = outcome.demand
    once = "one-shot" if demand.left_of is None else f"one-shot: what is left of {demand.left_of:,}"
    return [
        *(["suspended"] if demand.suspended else []),
        *([once] if demand.one_shot else []),
        *_request_words(outcome),
        *filter(None, [_precedence_words(demand)]),
        *domain_lines(outcome),
    ]


def _request_words(outcome: DemandOutcome) -> tuple[str, ...]:
    """The state of a provisioning request: `not provisioned: CapacityIsNotFound`, `BookingExpired: CapacityBookingConsumed`."""
    if outcome.demand.request is None:
        return ()
    by_type = {condition.type: condition for condition in outcome.conditions}
    for name in TERMINAL:
        if name in by_type and by_type[name].status is ConditionStatus.TRUE:
            return (f"{name}: {by_type[name].reason}",)
    provisioned = by_type.get(PROVISIONED)
    if provisioned is None:
        return ()
    is_there = provisioned.status is ConditionStatus.TRUE
    return (f"{'provisioned' if is_there else 'not provisioned'}: {provisioned.reason}",)


def candidates(reason: UnplacedReason) -> str:
    """`12 nodes`, `4 instance types`, if several failed for the same reason."""
    return counted(reason.count, _CANDIDATES.get(reason.cause, "candidate"))


def is_paid(price: float, capacity_types: Iterable[str]) -> bool:
    """Whether nodes of these capacity types are from reservations, which providers list at almost no price."""
    return tuple(capacity_types) == (_RESERVED,) and price < _NEXT_TO_NOTHING


def launch_price(price: float, capacity_types: Iterable[str], nodes: int = 1) -> str:
    """`$0.1086/h` for all of them. A reservation is paid for whether used or not, so its nodes have no price here."""
    if not is_paid(price, capacity_types):
        return hourly(price)
    return "paid for with its reservation" if nodes == 1 else "paid for with their reservations"


def reason_words(reason: UnplacedReason) -> str:
    """The candidate that came closest, and how many candidates failed for the same reason if there are several."""
    if reason.count == 1 or not reason.example:
        return reason.example or reason.cause
    return f"{reason.example} ({reason.cause}: {candidates(reason)})"


def lack_words(reasons: Iterable[UnplacedReason], service: Service) -> list[str]:
    """Why chunks have no place; where no candidate says so, why the demand lacks what it asks for."""
    return [reason_words(reason) for reason in reasons] or ([service.why] if service.why else [])


def place_words(planned: PlannedNode) -> str:
    """`on-demand in zone-a or zone-b`."""
    zones = " or ".join(planned.zones) if len(planned.zones) <= MOST_ZONES else f"any of {len(planned.zones)} zones"
    return f"{' or '.join(planned.capacity_types)} in {zones}"


def waiting_words(waiting: WaitingDeletions, zone: tzinfo | None = None) -> str:
    """`3 objects wait to be deleted (at most 5 of 11 objects go within an hour, the next by 2026-11-21 16:45 UTC)`; "" for none."""
    if not waiting:
        return ""
    count = len(waiting.refs)
    words = f"{counted(count, 'object')} {'waits' if count == 1 else 'wait'} to be deleted"
    if waiting.next_at is None:
        return f"{words} (nothing may be deleted at present)"
    return f"{words} ({waiting.cap}, the next by {moment(waiting.next_at, zone)})"


def missing_words(plan: Plan) -> str:
    """`8 of 8 chunks of ProvisioningRequest/research/training have no room`; of several demands the sum; "" for none."""
    short = [item for item in plan.demands if item.unplaced and item.demand.desired and not item.demand.is_pending_pod]
    unplaced = sum(item.unplaced for item in short)
    if not short:
        return ""
    verb = "has" if unplaced == 1 else "have"
    kinds = {item.demand.ref.kind for item in short}
    several = f"{kinds.pop()}s" if len(kinds) == 1 else "buffers and requests"
    of = f"of {short[0].demand.ref}" if len(short) == 1 else f"of {len(short):,} {several}"
    return f"{unplaced:,} of {counted(sum(item.demand.desired or 0 for item in short), 'chunk')} {of} {verb} no room"


def node_actions(claims: NodeClaimChanges) -> tuple[tuple[str, tuple[NodeClaimAction, ...]], ...]:
    """What becomes of existing nodes, by verb, in the order in which every report tells it."""
    return (("hold", claims.hold), ("release", claims.release), ("untaint", claims.untaint), ("delete", claims.delete))


def summary(plan: Plan, zone: tzinfo | None = None) -> str:
    """One line that is never cut: `2 nodes to create and 1 node to release; 3 objects to apply and 1 object to delete`."""
    claims = plan.node_claims
    nodes = [
        f"{counted(len(items), 'node')} to {verb}"
        for verb, items in (("create", claims.create), *node_actions(claims))
        if items
    ]
    deleted = sum(change.action is Action.DELETE for change in plan.objects)
    objects = [
        f"{counted(count, 'object')} to {verb}"
        for count, verb in ((len(plan.objects) - deleted, "apply"), (deleted, "delete"))
        if count
    ]
    static = listed(
        f"{counted(count, 'node')} {word}"
        for word, count in (
            ("more", sum(max(0, item.after - item.before) for item in plan.static_pools)),
            ("fewer", sum(max(0, item.before - item.after) for item in plan.static_pools)),
        )
        if count
    )
    for_pods = sum(any(holding.demand.kind == POD_KIND for holding in item.planned.holdings) for item in claims.create)
    what_if = f"{for_pods:,} of the nodes to create only as a what-if for pending pods" if for_pods else ""
    static = f"{static} in static NodePools" if static else ""
    waiting = waiting_words(plan.waiting, zone)
    missing = missing_words(plan)
    parts = [part for part in (listed(nodes), listed(objects), static, what_if) if part]
    if parts:
        return "; ".join(filter(None, (missing, *parts, waiting)))
    if waiting or missing:
        told = "; ".join(filter(None, (missing, waiting)))
        return f"No change now: {told}{', and there are errors' if plan.has_errors else ''}"
    return "No change, but there are errors" if plan.has_errors else "No change: the cluster is as declared"


def domain_totals(outcome: DemandOutcome) -> dict[str, dict[str, int]]:
    """How many chunks, by label and value in words. Labels are sorted, and single values come before undecided ones."""
    totals: dict[str, dict[str, int]] = {}
    for item in sorted(outcome.domains, key=lambda item: (item.key, len(item.values) != 1, item.values)):
        of_key = totals.setdefault(item.key, {})
        words = value_words(item)
        of_key[words] = of_key.get(words, 0) + item.count
    return totals


def value_words(item: DomainCount) -> str:
    """`r1`; `zone-a or zone-b` if several are possible; many are counted."""
    if not item.values:
        return "no such label"
    return " or ".join(item.values) if len(item.values) <= MOST_ZONES else f"any of {len(item.values)}"


def domain_lines(outcome: DemandOutcome) -> list[str]:
    """`by example.com/rack: 3 in r1 and 2 in r2`, one line for each label."""
    return [f"by {key}: {_counts(values.items())}" for key, values in domain_totals(outcome).items()]


def _counts(values: Iterable[tuple[str, int]]) -> str:
    items = list(values)
    parts = [f"{count:,} {'with' if name == 'no such label' else 'in'} {name}" for name, count in items[:_MOST_DOMAINS]]
    rest = items[_MOST_DOMAINS:]
    if rest:
        parts.append(f"{sum(count for _, count in rest):,} in {len(rest)} others")
    return listed(parts)


def bin_words(outcome: DemandOutcome, name: str) -> str:
    """The node's values of the labels that the demand's constraints use: `example.com/rack=r1, topology.kubernetes.io/zone=zone-a`."""
    pairs = dict.fromkeys((item.key, value_words(item)) for item in outcome.domains if item.bin == name)
    return ", ".join(f"{key}={value}" if value != "no such label" else f"no {key}" for key, value in pairs)


def own_domains(plan: Plan) -> dict[str, str]:
    """By new node, its values of the labels in its chunks' constraints, except zone and capacity type, which are always shown."""
    labels: dict[str, dict[str, None]] = {}
    for outcome in plan.demands:
        for item in outcome.domains:
            if item.key not in {ZONE_LABEL, CAPACITY_TYPE_LABEL} and item.values:
                labels.setdefault(item.bin, {})[f"{item.key}={value_words(item)}"] = None
    return {name: ", ".join(sorted(words)) for name, words in labels.items()}


def order_words(outcomes: Iterable[DemandOutcome]) -> str:
    """The order in which demands are served, with its exception if that applies."""
    buffers = "buffers"
    if any(outcome.demand.kept_from is not None for outcome in outcomes):
        buffers = "the buffers that serve them (the others come first)"
    return (
        "Served in this order: pending pods and bookings first, then by pod priority, headroom.dev/priority, requests before "
        f"{buffers}, age and name."
    )


def _precedence_words(demand: Demand) -> str:
    """`pod priority 1,000, headroom.dev/priority 5`; "" for a demand that is ordered by age alone."""
    words = ["booked"] if demand.booked else []
    if demand.priority != NO_PRIORITY_CLASS and not demand.is_pending_pod:
        words.append(f"pod priority {demand.priority:,}")
    if demand.declared_priority:
        words.append(f"{PRIORITY_ANNOTATION} {demand.declared_priority:,}")
    if demand.kept_from is not None:
        words.append("serves no requests")
    return ", ".join(words)


def sample_words(*plans: Plan) -> str:
    """Says that the prices are invented, where they are; "" elsewhere. It stands before every price."""
    notes = (note for plan in plans for note in plan.cost.assumptions)
    return (
        "Sample prices, invented: no cloud charges them"
        if any(note.startswith(SAMPLE_PRICES) for note in notes)
        else ""
    )


def price_notes(plan: Plan) -> list[str]:
    """What to know of the price of an instant, times a month."""
    for_a_while = _paid_for_a_while(plan)
    return [*([AT_THIS_INSTANT] if plan.schedules or for_a_while else []), *for_a_while]


def _paid_for_a_while(plan: Plan) -> list[str]:
    """What new nodes cost for requests and one-shot buffers: their part of nodes that hold others' chunks too."""
    asked = {outcome.demand.ref: outcome.demand for outcome in plan.demands}
    shares: dict[ObjectRef, float] = {}
    for item in plan.node_claims.create:
        if item.planned.price_known:
            share_price(item.planned.price, item.planned.holdings, asked, shares)
    requests = [ref for ref in shares if ref.kind == REQUEST_KIND]
    once = [ref for ref in shares if ref in asked and asked[ref].one_shot]
    notes = []
    for refs, until in ((requests, "while the capacity is booked"), (once, "until the capacity is used")):
        price = sum(shares[ref] for ref in refs)
        if price:
            month, about = dollars(price * HOURS_OF_SPAN), listed(map(str, sorted(refs)), most=_MOST_NAMED)
            notes.append(f"{an_hour(price)}/h of the new nodes, {month} over {SPAN}, is for {about}: paid only {until}")
    return notes


def before(plan: Plan, spending: Spending) -> float:
    """The cost of the present nodes over the same span, in USD."""
    return plan.cost.per_hour_before * ((spending.end - spending.start) / HOUR)


def spending_words(plan: Plan, spending: Spending) -> str:
    """`over the coming 30 days $12.00 (+$12.00 against the nodes as they are now)`."""
    change = change_words(before(plan, spending), spending.total)
    return f"over the coming {SPAN} {dollars(spending.total)} ({change} against the nodes as they are now)"
