"""Puts a plan together: objects, new nodes, holds, releases, cost and what becomes of each demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from reconciler.model.buffers import ONE_SHOTS_KEY, SHARES_KEY
from reconciler.model.changes import (
    DemandOutcome,
    NodeClaimChanges,
    NodeClaimCreation,
    ObjectChange,
    Plan,
    StockOut,
    new_node_pools,
)
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.departures import Departure
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType, NodePool
from reconciler.model.placement import Placement
from reconciler.model.provisioning_requests import RequestRules
from reconciler.model.refs import ObjectRef
from reconciler.model.request_records import REQUESTS_KEY, records_memory
from reconciler.model.schedules import Edge, PoolBudgets, Schedule
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, all_bins
from reconciler.plan.buffers.balloons import priority_class_changes, with_balloons
from reconciler.plan.buffers.keeping_edges import keeping_edges
from reconciler.plan.buffers.one_shots import one_shot_edges, one_shot_memory
from reconciler.plan.buffers.served_elsewhere import served_elsewhere
from reconciler.plan.buffers.shares import share_edges, shares_memory
from reconciler.plan.buffers.shortages import with_shortages
from reconciler.plan.capped_nodes import capped_nodes
from reconciler.plan.clock_skew import clock_findings
from reconciler.plan.cost import Prices, cost_of
from reconciler.plan.holding.consolidation import DEPARTURES_KEY, departures_memory, is_serving, opened
from reconciler.plan.holding.domains import domain_counts, topology_keys
from reconciler.plan.holding.hold import Holds, holds
from reconciler.plan.holding.nominated import nominated_notes
from reconciler.plan.launching.back_offs import BACK_OFFS_KEY, LAUNCHES_KEY, LaunchRecord
from reconciler.plan.launching.caps import Capped, Cut, PlanCaps, cap_notes, cost_notes
from reconciler.plan.launching.hostnames import hostname_findings
from reconciler.plan.launching.makers import made_by_others
from reconciler.plan.launching.names import creations
from reconciler.plan.launching.stock_out_reasons import retry_words, stock_outs
from reconciler.plan.launching.unrendered import COST_NOTE, TEMPLATE_FAILED, without_unrendered
from reconciler.plan.node_pools.disruption_budgets import budget_outcomes, pool_states, with_new_nodes
from reconciler.plan.node_pools.static_nodes import static_pool_changes
from reconciler.plan.node_pools.static_pools import static_pool_findings
from reconciler.plan.objects.drift import Drift
from reconciler.plan.objects.objects import ObjectPlan, Owner, new_inventory_finding, object_changes
from reconciler.plan.objects.prune import Pruning, prune, with_waiting
from reconciler.plan.objects.prune_hour import PRUNES_KEY
from reconciler.plan.outcomes import Tallies, pending_outcome
from reconciler.plan.requests.collection import collect, remembered, still_to_run
from reconciler.plan.requests.requests import RequestPlan, attempts_tried, for_requests, request_plan
from reconciler.plan.requests.rollback import rolled_back
from reconciler.plan.requests.untaint import untainted
from reconciler.timetable.capacity_schedule import state_at


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Everything a plan is made from.

    declared: the repository's own documents, each in a version that the cluster serves. live: the cluster's.
    node_pools, schedules: those in force, the repository's over the live ones. demands: in the order of placement.
    price_source: where prices come from and as of when. blocked: why nothing may be pruned, released or deleted, such as a rewound branch
    or a stalled source; gaps of the view are added here. replaced: bins that must hold no more chunks, from
    `leaving_bins`. departures: nodes that chunks leave for cheaper room. launches: from `launch_record`.
    removals_allowed: the revision lifts the share of what removals may take within an hour. local_budgets: compiled into UTC. owner: this
    inventory. suspended: the plan will not be applied. balloon_image: of balloon pods. unrendered: objects for which no
    template can be rendered, with the reason; none of them is created or changed. refused: nodes for requests that are over a cap; those
    requests are placed without new nodes.
    """

    revision: str | None
    now: datetime
    view: ClusterView
    declared: Declared = field(default_factory=Declared)
    live: Declared = field(default_factory=Declared)
    demands: tuple[Demand, ...] = ()
    placement: Placement = field(default_factory=Placement)
    node_pools: tuple[NodePool, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    instance_types: tuple[InstanceType, ...] = ()
    price_source: str = ""
    caps: PlanCaps = field(default_factory=PlanCaps)
    findings: tuple[Finding, ...] = ()
    blocked: tuple[str, ...] = ()
    replaced: frozenset[str] = frozenset()
    launches: LaunchRecord = field(default_factory=LaunchRecord)
    refused: tuple[Cut, ...] = ()
    departures: tuple[Departure, ...] = ()
    removals_allowed: bool = False
    local_budgets: tuple[PoolBudgets, ...] = ()
    edges: tuple[Edge, ...] = ()
    include_pending: bool = False
    suspended: bool = False
    owner: Owner = field(default_factory=Owner)
    drift: Drift = Drift.CORRECT
    balloon_image: str = ""
    unrendered: Mapping[ObjectRef, str] = field(default_factory=dict)
    requests: RequestRules = field(default_factory=RequestRules)

    @property
    def cluster_now(self) -> datetime:
        """The time by the cluster's clock, which dates its objects."""
        return self.now - self.view.clock_skew


def make_plan(inputs: PlanInputs) -> Plan:
    """The plan depends on its inputs alone, and not on the order of their parts."""
    view, placement = inputs.view, inputs.placement
    blocked = _blocked(inputs)
    watched = frozenset(demand.ref for demand in inputs.demands if not demand.holds_nodes)
    bins = all_bins(view, placement.occupied, watched, served_elsewhere(inputs.demands))
    prices = Prices(inputs.instance_types)
    capped = capped_nodes(placement.planned, inputs.demands, bins, prices, inputs.caps)
    created, capped = _created(inputs, replace(capped, cuts=(*capped.cuts, *inputs.refused)))
    tallies = _tallies(inputs, bins, created, capped)
    requests = _requests(inputs, bins, tallies)
    created = made_by_others(for_requests(created, inputs.demands, requests.decisions), inputs.demands)
    held = _held(inputs, bins, created, capped, prices, blocked=bool(blocked))
    held = held if blocked else held.with_deleted(rolled_back(bins, inputs.demands, requests.decisions, prices.of))
    freed = () if blocked else untainted(bins, inputs.demands, requests.decisions)
    missed = stock_outs(inputs.launches, inputs.demands, created, placement.unplaced, inputs.cluster_now)
    objects, pruning, applied = _objects(inputs, requests, bins, blocked=bool(blocked))
    outcomes = with_waiting(with_shortages(_outcomes(inputs, bins, created, tallies, requests), view), pruning)
    once = one_shot_memory(outcomes, bins, view, inputs.cluster_now)
    resized = static_pool_changes(inputs.node_pools, view.objects, applied, bins, inputs.instance_types)
    static = static_pool_findings(inputs.node_pools, bins, view, inputs.cluster_now)
    states = with_new_nodes(pool_states(bins), new_node_pools(created, resized))
    return Plan(
        revision=inputs.revision,
        now=inputs.now,
        demands=tuple(item for item in outcomes if inputs.include_pending or not item.demand.is_pending_pod),
        node_claims=NodeClaimChanges(created, held.delete, held.hold, held.release, freed),
        objects=applied,
        static_pools=resized,
        schedules=tuple(state_at(schedule, inputs.now) for schedule in inputs.schedules),
        budgets=budget_outcomes(inputs.node_pools, states, inputs.now),
        cost=cost_of(
            bins,
            prices,
            created=created,
            deleted=held.delete,
            released=held.release,
            static=resized,
            assumptions=_assumptions(inputs, capped),
        ),
        findings=_findings(inputs, (*objects.findings, *pruning.findings, *static)),
        pending=pending_outcome(outcomes),
        occupied=placement.occupied,
        unused=_unused(bins, inputs.replaced),
        local_budgets=inputs.local_budgets,
        include_pending=inputs.include_pending,
        blocked=blocked,
        notes=_notes(inputs, (*objects.notes, *pruning.notes, *held.notes, *cap_notes(capped)), missed),
        memory=_memory(inputs, created, held, pruning)
        | records_memory(remembered(requests, applied, inputs.cluster_now))
        | once
        | shares_memory(inputs.demands, view),
        stock_outs=missed,
        edges=_edges(inputs, (*requests.edges, *pruning.edges, *one_shot_edges(outcomes, once, view)), outcomes),
        waiting=pruning.waiting,
        departures=tuple(item for item in inputs.departures if item.is_under_way(inputs.cluster_now)),
    )


def _tallies(inputs: PlanInputs, bins: Sequence[Bin], created: Sequence[NodeClaimCreation], capped: Capped) -> Tallies:
    return Tallies(
        *(bins, created, inputs.placement.unplaced, capped.cuts),
        replaced=inputs.replaced,
        serving=frozenset(item.name for item in bins if is_serving(item, inputs.departures)),
        later=capped.later,
        retry=retry_words(inputs.launches, inputs.cluster_now),
    )


def _unused(bins: Sequence[Bin], replaced: frozenset[str]) -> dict[str, str]:
    return {item.name: item.claim.why_left for item in bins if item.claim is not None and item.name in replaced}


def _edges(inputs: PlanInputs, own: Sequence[Edge], outcomes: Sequence[DemandOutcome]) -> tuple[Edge, ...]:
    of_keepers = keeping_edges(outcomes, inputs.view, inputs.cluster_now)
    of_shares = share_edges(inputs.demands, inputs.view.clock_skew)
    return tuple(sorted((*inputs.edges, *own, *of_keepers, *of_shares), key=attrgetter("at")))


def _created(inputs: PlanInputs, capped: Capped) -> tuple[tuple[NodeClaimCreation, ...], Capped]:
    """Named first: a name must not depend on whether another claim can be rendered."""
    apart = {demand.ref for demand in inputs.demands if demand.whole or demand.is_pending_pod}
    capped = inputs.launches.probing(capped, inputs.cluster_now, apart)
    created = creations(capped.kept, (claim.name for claim in inputs.view.node_claims))
    return without_unrendered(created, capped, inputs.unrendered)


def _objects(
    inputs: PlanInputs, requests: RequestPlan, bins: Sequence[Bin], *, blocked: bool
) -> tuple[ObjectPlan, Pruning, tuple[ObjectChange, ...]]:
    """What becomes of objects: updates to the repository's, deletions of others, and all changes in the order of applying."""
    view = inputs.view
    declared = with_balloons(inputs.declared, inputs.demands, view, inputs.balloon_image)
    objects = object_changes(still_to_run(declared, requests), view, inputs.owner, inputs.drift)
    pruning = prune(
        declared,
        view,
        applyset_id=inputs.owner.id,
        rules=replace(inputs.caps.pruning, lifted=inputs.caps.pruning.lifted or inputs.removals_allowed),
        blocked=blocked,
        now=inputs.cluster_now,
        bins=bins,
        live=inputs.live,
    )
    collection = collect(
        inputs.demands, requests, view, inputs.cluster_now, rules=inputs.requests, applyset_id=inputs.owner.id
    )
    added = priority_class_changes(inputs.demands, view)
    changes = (change for change in objects.changes if change.ref not in inputs.unrendered)
    return objects, pruning, (*added, *changes, *pruning.changes, *(() if blocked else collection))


def _held(
    inputs: PlanInputs,
    bins: Sequence[Bin],
    created: Sequence[NodeClaimCreation],
    capped: Capped,
    prices: Prices,
    *,
    blocked: bool,
) -> Holds:
    return holds(
        bins,
        now=inputs.cluster_now,
        node_pools={pool.name: pool for pool in inputs.node_pools},
        replaced=inputs.replaced,
        replacement_waits=bool(created)
        or any(item.is_on_its_way and item.chunks for item in bins)
        or any(cut.passing or cut.cause == TEMPLATE_FAILED for cut in capped.cuts),
        opened=opened(bins, inputs.departures, inputs.cluster_now),
        price_of=prices.of,
        blocked=blocked,
    )


def _requests(inputs: PlanInputs, bins: Sequence[Bin], tallies: Tallies) -> RequestPlan:
    unread = "; ".join(inputs.view.gaps) if inputs.view.unread & {"Node", "NodeClaim"} else ""
    tried = attempts_tried(inputs.demands, inputs.view, inputs.launches)
    availability = {
        demand.ref: replace(tallies.of_request(demand, demand.request), unread=unread, tried=demand.ref in tried)
        for demand in inputs.demands
        if demand.request
    }
    declared = inputs.declared
    return request_plan(
        *(inputs.demands, availability, bins, inputs.view, inputs.cluster_now),
        rules=inputs.requests,
        unknown=bool(declared.broken or declared.broken_files),
    )


def _outcomes(
    inputs: PlanInputs,
    bins: Sequence[Bin],
    created: Sequence[NodeClaimCreation],
    tallies: Tallies,
    requests: RequestPlan,
) -> list[DemandOutcome]:
    domains = domain_counts(topology_keys(inputs.demands), bins, created)
    outcomes = []
    for demand in inputs.demands:
        outcome = tallies.outcome(demand)
        if demand.ref in domains:
            outcome = replace(outcome, domains=domains[demand.ref])
        if demand.ref in requests.decisions:
            outcome = replace(outcome, conditions=requests.decisions[demand.ref].conditions)
        outcomes.append(outcome)
    return outcomes


def _notes(inputs: PlanInputs, of_the_changes: Sequence[str], missed: Sequence[StockOut]) -> tuple[str, ...]:
    notes = [*nominated_notes(inputs.view), *of_the_changes]
    if not inputs.instance_types and inputs.placement.unplaced:
        notes.append(
            "no instance type is known, so that no node can be planned: name a catalog with --catalog "
            "FILE or karpenter-metrics:URL",
        )
    notes += [item.message for item in missed]
    notes += [item.words for item in inputs.departures if item.is_under_way(inputs.cluster_now)]
    if inputs.suspended:
        notes.append("headroom is suspended: nothing of this is applied")
    return tuple(notes)


def _findings(inputs: PlanInputs, of_the_changes: Sequence[Finding]) -> tuple[Finding, ...]:
    of_the_view = (*hostname_findings(inputs.view.nodes), *clock_findings(inputs.view.clock_skew))
    new = new_inventory_finding(inputs.view, inputs.owner)
    found = {*inputs.findings, *of_the_changes, *of_the_view, *(() if new is None else (new,))}
    return tuple(sorted(found, key=_finding_order))


def _blocked(inputs: PlanInputs) -> tuple[str, ...]:
    gaps = () if inputs.view.complete else inputs.view.gaps or ("the cluster could not be read in full",)
    return tuple(dict.fromkeys((*inputs.blocked, *gaps)))


def _assumptions(inputs: PlanInputs, capped: Capped) -> tuple[str, ...]:
    """Assumptions that the cost rests on."""
    failed = any(cut.cause == TEMPLATE_FAILED for cut in capped.cuts)
    own = (*_overlay_notes(inputs), *cost_notes(capped), *((COST_NOTE,) if failed else ()))
    return (inputs.price_source, *inputs.placement.assumptions, *own)


def _overlay_notes(inputs: PlanInputs) -> tuple[str, ...]:
    overlays = (*inputs.declared.node_overlays, *inputs.live.node_overlays)
    if any(overlay.price is not None or overlay.price_adjustment is not None for overlay in overlays):
        return ("price overlays count for new nodes; existing nodes have the catalog's price",)
    return ()


def _finding_order(finding: Finding) -> tuple[tuple[str, int, int, str, str, str], str]:
    return (finding.sort_key, str(finding.ref))


def _memory(inputs: PlanInputs, created: Sequence[NodeClaimCreation], held: Holds, pruning: Pruning) -> dict[str, Any]:
    """The inventory's memory with this package's entries replaced; those of others stay."""
    own = {LAUNCHES_KEY, BACK_OFFS_KEY, PRUNES_KEY, REQUESTS_KEY, ONE_SHOTS_KEY, SHARES_KEY, DEPARTURES_KEY}
    others = {key: value for key, value in inputs.view.inventory.memory.items() if key not in own}
    deleted = [action.node_claim for action in held.delete if action.node_claim is not None]
    launches = inputs.launches.memory(created, deleted, inputs.cluster_now)
    names = (creation.name for creation in created)
    left = departures_memory(inputs.departures, names, inputs.cluster_now)
    return dict(sorted((others | launches | dict(pruning.memory) | left).items()))
