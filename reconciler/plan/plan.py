"""Puts a plan together: objects, new nodes, holds, releases, cost and what becomes of each demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from reconciler.model.buffers import ONE_SHOTS_KEY, SHARES_KEY
from reconciler.model.changes import (
    Action,
    DemandOutcome,
    NodeClaimChanges,
    NodeClaimCreation,
    ObjectChange,
    Plan,
    new_node_pools,
)
from reconciler.model.findings import Finding
from reconciler.model.placement import Cause, StockOut
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import PRUNES_KEY, REQUESTS_KEY, records_of
from reconciler.model.rules import ALL_REMOVALS
from reconciler.model.schedules import Edge
from reconciler.plan.bins import Bin, all_bins, creations, made_by_others, maker_of
from reconciler.plan.buffers.keeping import (
    keeping_edges,
    priority_class_changes,
    served_elsewhere,
    with_balloons,
    with_shortages,
)
from reconciler.plan.buffers.records import remembered_buffers
from reconciler.plan.cost import Prices, cost_of
from reconciler.plan.facts import (
    Facts,
    PlanRules,
    clock_findings,
    hostname_findings,
    launch_notes,
    nominated_notes,
)
from reconciler.plan.holding.consolidation import (
    DEPARTURES_KEY,
    departure_records,
    is_serving,
    rooms,
    with_claims,
)
from reconciler.plan.holding.hold import Holds, holds
from reconciler.plan.holding.replacement import DEVICES_KEY
from reconciler.plan.launching.back_offs import LAUNCH_KEYS, retry_words, stock_outs
from reconciler.plan.launching.caps import (
    COST_NOTE,
    Capped,
    after_pods,
    cap_notes,
    capped_nodes,
    cost_notes,
    without_unrendered,
)
from reconciler.plan.launching.misfits import without_misfits
from reconciler.plan.node_pools.disruption_budgets import budget_outcomes, pool_states, with_new_nodes
from reconciler.plan.node_pools.static_pools import static_pool_changes, static_pool_findings
from reconciler.plan.objects.objects import ObjectPlan, Owner, new_inventory_finding, object_changes
from reconciler.plan.objects.prune import Pruning, prune, with_waiting
from reconciler.plan.outcomes import Tallies, domain_counts, pending_outcome, topology_keys
from reconciler.plan.requests import RequestPlan, collect, remembered_requests, request_plan
from reconciler.timetable.capacity_schedule import state_at


def make_plan(facts: Facts, rules: PlanRules | None = None, unrendered: Mapping[ObjectRef, str] | None = None) -> Plan:
    """The plan depends on its arguments alone, and not on the order of their parts.

    unrendered: objects for which no template can be rendered, with the reason; none of them is created or changed.
    """
    rules, unrendered = rules or PlanRules(), unrendered or {}
    view, placement, blocked, now = facts.view, facts.placement, facts.blocked, facts.cluster_now
    watched = frozenset(demand.ref for demand in facts.demands if not demand.holds_nodes)
    shapeless = [demand.ref for demand in facts.demands if demand.is_shapeless]
    bins = all_bins(view, placement.occupied, watched, served_elsewhere(facts.demands), facts.scarce, shapeless)
    prices = Prices(facts.instance_types)
    waiting = Capped(placement.planned)
    if view.node_claims or facts.launches.misfits:
        facts, waiting = _without_misfits(facts, waiting, bins)
    capped = capped_nodes(waiting.kept, facts.demands, bins, prices, rules.caps)
    cuts = (*waiting.cuts, *capped.cuts, *facts.refused)
    created, capped = _created(facts, replace(capped, cuts=cuts), unrendered)
    tallies = Tallies(
        bins,
        created,
        placement.unplaced,
        capped.cuts,
        leaving=facts.leaving,
        serving=frozenset(item.name for item in bins if is_serving(item, facts.departures)),
        later=capped.later,
        retry=retry_words(facts.launches, now),
        refusals=facts.refusals,
        suspended=facts.suspended,
        now=now,
    )
    requests = request_plan(facts, rules.requests, bins, tallies, created, prices.of)
    created = made_by_others(requests.created, facts.demands)
    held = _held(facts, bins, created, capped, prices) if bins else Holds()
    held = held if blocked or not requests.deleted else held.with_deleted(requests.deleted)
    missed = stock_outs(facts.launches, facts.demands, created, now)
    objects, pruning, applied = _objects(facts, rules, requests, bins, unrendered)
    outcomes = with_waiting(with_shortages(_outcomes(facts, bins, created, tallies, requests), view), pruning)
    of_buffers, edges = remembered_buffers(facts, outcomes, bins)
    edges = (*facts.edges, *requests.edges, *pruning.edges, *edges, *keeping_edges(outcomes, view, now))
    pools = facts.effective.node_pools
    static = [pool for pool in pools if pool.replicas is not None]
    resized = static_pool_changes(pools, view.objects, applied, bins, facts.instance_types) if static else ()
    kept = static_pool_findings(static, bins, view, now) if static else ()
    freed = () if blocked else requests.freed
    node_claims = NodeClaimChanges(created, held.delete, held.hold, held.release, freed)
    states = with_new_nodes(pool_states(bins), new_node_pools(created, resized))
    return Plan(
        revision=facts.tree.revision,
        now=facts.now,
        demands=tuple(item for item in outcomes if facts.include_pending or not item.demand.is_pending_pod),
        node_claims=node_claims,
        objects=applied,
        static_pools=resized,
        schedules=tuple(state_at(schedule, facts.now) for schedule in facts.effective.schedules),
        budgets=budget_outcomes(pools, states, facts.now),
        cost=cost_of(bins, prices, node_claims, static=resized, assumptions=_assumptions(facts, capped)),
        findings=_findings(facts, rules.owner, (*objects.findings, *pruning.findings, *kept), applied),
        pending=pending_outcome(outcomes),
        occupied=placement.occupied,
        unused={
            item.name: item.node_claim.why_left
            for item in bins
            if item.node_claim is not None and item.name in facts.leaving
        },
        local_budgets=facts.local_budgets,
        include_pending=facts.include_pending,
        blocked=blocked,
        notes=_notes(facts, (*objects.notes, *pruning.notes, *held.notes, *cap_notes(capped)), missed),
        records=_records(facts, created, held, pruning) | remembered_requests(requests, applied, now) | of_buffers,
        stock_outs=missed,
        edges=tuple(sorted(edges, key=attrgetter("at"))),
        waiting=pruning.waiting,
        departures=tuple(item for item in facts.departures if item.is_under_way(now)),
    )


def _without_misfits(facts: Facts, capped: Capped, bins: Sequence[Bin]) -> tuple[Facts, Capped]:
    now = facts.cluster_now
    capped, misfits = without_misfits(
        capped, facts.launches.misfits, bins, now, leaving=facts.leaving, apart=_apart(facts)
    )
    ends = [item.until for item in misfits.values() if now < item.until]
    edges = [Edge(end + facts.view.clock_skew, "nodes that took none of their chunks are tried again") for end in ends]
    launches = replace(facts.launches, misfits=misfits)
    return replace(facts, launches=launches, edges=(*facts.edges, *edges)), capped


def _apart(facts: Facts) -> frozenset[ObjectRef]:
    """Demands whose nodes are made all or none, and pods, whose nodes Karpenter makes."""
    return frozenset(demand.ref for demand in facts.demands if demand.whole or demand.is_pending_pod)


def _created(
    facts: Facts, capped: Capped, unrendered: Mapping[ObjectRef, str]
) -> tuple[tuple[NodeClaimCreation, ...], Capped]:
    """Named first: a name must not depend on whether another claim can be rendered."""
    apart = _apart(facts)
    others = {demand.ref for demand in facts.demands if maker_of(demand)}
    capped = after_pods(facts.launches.probing(capped, facts.cluster_now, apart), facts.pods_first, apart | others)
    created = creations(capped.kept, (claim.name for claim in facts.view.node_claims))
    return without_unrendered(created, capped, unrendered)


def _objects(
    facts: Facts,
    rules: PlanRules,
    requests: RequestPlan,
    bins: Sequence[Bin],
    unrendered: Mapping[ObjectRef, str],
) -> tuple[ObjectPlan, Pruning, tuple[ObjectChange, ...]]:
    """What becomes of objects: updates to the repository's, deletions of others, and all changes in the order of applying."""
    view = facts.view
    declared = with_balloons(facts.repository, facts.demands, view, rules.buffers.balloon_image)
    to_run = tuple(item for item in declared.manifests if item.ref not in requests.ended)
    objects = object_changes(replace(declared, manifests=to_run), view, rules.owner, rules.drift)
    pruning = prune(
        declared,
        view,
        applyset_id=rules.owner.id,
        caps=replace(rules.caps, prune_share=ALL_REMOVALS) if facts.tree.removals_allowed else rules.caps,
        blocked=bool(facts.blocked),
        now=facts.cluster_now,
        bins=bins,
        live=facts.live,
    )
    collection = () if facts.blocked else collect(facts, requests, rules.requests, rules.owner.id)
    added = priority_class_changes(facts.demands, view)
    changes = (change for change in objects.changes if change.ref not in unrendered)
    return objects, pruning, (*added, *changes, *pruning.changes, *collection)


def _held(
    facts: Facts, bins: Sequence[Bin], created: Sequence[NodeClaimCreation], capped: Capped, prices: Prices
) -> Holds:
    waiting = rooms(bins, facts.departures, facts.cluster_now)
    coming = [item for item in bins if item.is_on_its_way]
    later = [cut.node for cut in capped.cuts if cut.cause == Cause.PODS_FIRST]
    planned = (*(item.planned for item in created), *later)
    holdings = (*(item.chunks for item in coming), *(node.holdings for node in planned))
    awaited = {str(part.demand) for parts in holdings for part in parts}
    awaited |= {demand for item in coming if item.name in waiting for demand in item.holders}
    # If no node can take the chunks, what they left goes all the same: a NodePool at its limit could never replace a node otherwise.
    is_cut = any(
        (cut.passing and cut.cause != Cause.PODS_FIRST) or cut.cause == Cause.TEMPLATE_FAILED for cut in capped.cuts
    )

    def is_awaiting(item: Bin) -> bool:
        """Whether what it held, or what runs there, has room that is not there yet."""
        return is_cut or not awaited.isdisjoint({f"Node/{item.name}", *item.holders})

    return holds(
        bins,
        now=facts.cluster_now,
        node_pools={pool.name: pool for pool in facts.effective.node_pools},
        leaving=frozenset(item.name for item in bins if item.name in facts.leaving and is_awaiting(item)),
        rooms=waiting,
        price_of=prices.of,
        blocked=bool(facts.blocked),
    )


def _outcomes(
    facts: Facts, bins: Sequence[Bin], created: Sequence[NodeClaimCreation], tallies: Tallies, requests: RequestPlan
) -> list[DemandOutcome]:
    domains = domain_counts(topology_keys(facts.demands), bins, created)
    outcomes = []
    for demand in facts.demands:
        outcome = tallies.outcome(demand)
        if demand.ref in domains:
            outcome = replace(outcome, domains=domains[demand.ref])
        if demand.ref in requests.decisions:
            outcome = replace(outcome, conditions=requests.decisions[demand.ref].conditions)
        outcomes.append(outcome)
    return outcomes


def _notes(facts: Facts, of_the_changes: Sequence[str], missed: Sequence[StockOut]) -> tuple[str, ...]:
    notes = [*nominated_notes(facts.view), *launch_notes(facts.view), *of_the_changes, *facts.notes]
    if not facts.instance_types and facts.placement.unplaced:
        notes.append(
            "no instance type is known, so that no node can be planned: name a catalog with --catalog "
            "FILE or karpenter-metrics:URL"
        )
    notes += [item.message for item in missed]
    notes += [item.words for item in facts.departures if item.is_under_way(facts.cluster_now)]
    if facts.suspended:
        notes.append("headroom is suspended: nothing of this is applied")
    return tuple(notes)


def _findings(
    facts: Facts, owner: Owner, of_the_changes: Sequence[Finding], applied: Iterable[ObjectChange]
) -> tuple[Finding, ...]:
    """Nothing is found about an object that nobody declares any more and that the plan deletes."""
    gone = {change.ref for change in applied if change.action is Action.DELETE}
    standing = (item for item in facts.findings if item.position is not None or item.ref not in gone)
    of_the_view = (*hostname_findings(facts.view.nodes), *clock_findings(facts.view.clock_skew))
    new = new_inventory_finding(facts.view, owner)
    found = {*standing, *of_the_changes, *of_the_view, *(() if new is None else (new,))}
    return tuple(sorted(found, key=lambda finding: (finding.sort_key, str(finding.ref))))


def _assumptions(facts: Facts, capped: Capped) -> tuple[str, ...]:
    failed = any(cut.cause == Cause.TEMPLATE_FAILED for cut in capped.cuts)
    own = (*_overlay_notes(facts), *cost_notes(capped), *((COST_NOTE,) if failed else ()))
    return (facts.price_source, *facts.placement.assumptions, *own)


def _overlay_notes(facts: Facts) -> tuple[str, ...]:
    overlays = (*facts.repository.node_overlays, *facts.live.node_overlays)
    if any(overlay.price is not None or overlay.price_adjustment is not None for overlay in overlays):
        return ("price overlays count for new nodes; existing ones and static NodePools' have the catalog's price",)
    return ()


def _records(facts: Facts, created: Sequence[NodeClaimCreation], held: Holds, pruning: Pruning) -> dict[str, Any]:
    """The inventory's records with this package's entries replaced; those of others stay."""
    own = {PRUNES_KEY, REQUESTS_KEY, ONE_SHOTS_KEY, SHARES_KEY, DEPARTURES_KEY, DEVICES_KEY, *LAUNCH_KEYS}
    others = {key: value for key, value in facts.view.inventory.records.items() if key not in own}
    deleted = [action.node_claim for action in held.delete if action.node_claim is not None]
    launches = facts.launches.records(created, deleted, facts.cluster_now)
    if facts.departures:
        others |= departure_records(with_claims(facts.departures, created, facts.cluster_now))
    devices = records_of(DEVICES_KEY, facts.missing_devices)
    return dict(sorted((others | launches | devices | dict(pruning.records)).items()))
