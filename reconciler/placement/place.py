"""Places all demands of one pass: the entry to the package. Called by cycle; pure, so equal input gives an equal answer.

Bound pods take what they take; pending pods come next and take free room only (unless new nodes are asked for); then
demands by priority, namespace and name, in existing bins first and then in nodes to be made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconciler.model.demand import Demand
from reconciler.model.nodes import InstanceType, NodePool
from reconciler.model.overlays import NodeOverlay
from reconciler.model.placement import Holding, OccupiedBin, Placement, Unplaced, UnplacedReason
from reconciler.model.pods import DEFAULT_SCHEDULER, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.placement.amounts import ResourceColumns
from reconciler.placement.checker.violations import violations
from reconciler.placement.constraints.attachments import Attached, with_attachments
from reconciler.placement.constraints.limits import PoolLimits
from reconciler.placement.constraints.overlay_conflicts import overlays_in_force
from reconciler.placement.constraints.reservations import in_its_pool, reservations_of, usable_offers
from reconciler.placement.constraints.topology import Topology
from reconciler.placement.engine.batches import UNLIMITED, Batch, batches_of
from reconciler.placement.engine.best import place_best
from reconciler.placement.engine.kernel import WORTH_COMPILING, compiled
from reconciler.placement.engine.launch import Offerer
from reconciler.placement.engine.sharing import Usage
from reconciler.placement.engine.state import State
from reconciler.placement.memory import Memory
from reconciler.placement.needs import KnownNeeds
from reconciler.placement.nodes.existing import Bins, bins_of, frame_of
from reconciler.placement.offers.daemons import daemons_of
from reconciler.placement.offers.offerings import BackOff, offerings_of
from reconciler.placement.offers.pool_offers import pool_offers, usable
from reconciler.placement.offers.unknown_prices import unknown_prices
from reconciler.placement.optimizing.optimal import optimal_placement
from reconciler.placement.reasons.claims import claim_reasons, obstacle_reason
from reconciler.placement.reasons.node_pools import unused
from reconciler.placement.reasons.nodes import Circumstances, reasons_of
from reconciler.placement.spot.accounts import limits_of, totals_of
from reconciler.placement.spot.allowances import Allowances, within_share
from reconciler.placement.spot.offers import offered_within_share
from reconciler.placement.spot.on_demand import cheaper_on_demand


@dataclass(frozen=True, slots=True)
class PlacementOptions:
    """include_pending: plan new nodes for pending pods too; chunks_per_node: most chunks of one demand on a node, so that
    losing it loses no more (None: no limit); instance_types: most types to list for a new node; back_offs: offerings (type,
    zone, capacity type) not to ask for; leaving: names of nodes and NodeClaims that must take no more chunks, since they are about
    to be replaced; optimal: look for cheaper new nodes than the fast way found (see optimizing); spot_share: the most of a demand's
    chunks that may stand on spot nodes of one offering (1: no bound; see spot)."""

    include_pending: bool = False
    chunks_per_node: int | None = None
    instance_types: int = 20
    back_offs: frozenset[BackOff] = frozenset()
    leaving: frozenset[str] = frozenset()
    optimal: bool = False
    spot_share: float = 1.0


@dataclass(frozen=True, slots=True)
class _Attempt:
    """All of it placed once. on_demand: whether for placement.spotShare's sake nodes may list on-demand only."""

    state: State
    batches: Sequence[Batch]
    unplaced: Sequence[Unplaced]
    placement: Placement
    allowances: Allowances
    on_demand: bool

    @property
    def bins(self) -> Bins:
        return self.state.bins


def _no_limit() -> float:
    return math.inf


def place(
    view: ClusterView,
    *,
    node_pools: Sequence[NodePool],
    instance_types: Sequence[InstanceType],
    demands: Sequence[Demand],
    overlays: Sequence[NodeOverlay] = (),
    options: PlacementOptions = PlacementOptions(),
    memory: Memory | None = None,
    seconds_left: Callable[[], float] = _no_limit,
) -> Placement:
    """Where each chunk goes. Never more than is sure to fit; what could not be judged is in `assumptions`. memory: of the
    placement before, to work out again only what changed; seconds_left: for looking for something cheaper than
    the fast placement. Raises `Invalid` where `options.optimal` asks for a solver that cannot be loaded."""
    memory = memory or Memory()
    known = memory.recall(view, node_pools, instance_types, demands, overlays, options)
    if known is not None:
        return known

    def broken(placement: Placement) -> bool:
        found = violations(
            view,
            node_pools=node_pools,
            instance_types=instance_types,
            demands=demands,
            placement=placement,
            overlays=overlays,
            spot_share=options.spot_share,
            back_offs=options.back_offs,
        )
        return bool(found)

    return memory.keep(
        _place(
            view,
            node_pools=node_pools,
            instance_types=instance_types,
            demands=demands,
            overlays=overlays,
            options=options,
            memory=memory,
            broken=broken,
            seconds_left=seconds_left,
        )
    )


def _place(
    view: ClusterView,
    *,
    node_pools: Sequence[NodePool],
    instance_types: Sequence[InstanceType],
    demands: Sequence[Demand],
    overlays: Sequence[NodeOverlay],
    options: PlacementOptions,
    memory: Memory,
    broken: Callable[[Placement], bool],
    seconds_left: Callable[[], float],
) -> Placement:
    attached = with_attachments(view, node_pools, instance_types, demands)
    view, demands = attached.view, attached.demands
    groups = (group for demand in demands for group in demand.groups if group.count > 0)
    columns = ResourceColumns(group.shape.requests for group in groups)
    needs = KnownNeeds(columns.request)
    batches = batches_of(demands, needs.of, include_pending=options.include_pending)
    circumstances = Circumstances(
        tuple((pool.name, unused(pool)) for pool in sorted(node_pools, key=_name) if not usable(pool)),
        options.chunks_per_node,
    )

    shapes = {(demand.ref, index): group.shape for demand in demands for index, group in enumerate(demand.groups)}

    def within(allowances: Allowances, *, on_demand: bool = False) -> _Attempt:
        allowed = (
            [replace(batch, allowance=allowances.get(batch.demand, UNLIMITED)) for batch in batches]
            if allowances
            else batches
        )
        state = _state(
            view,
            node_pools,
            instance_types,
            overlays=overlays,
            options=options,
            columns=columns,
            needs=needs,
            batches=allowed,
            memory=memory,
            attached=attached,
        )
        state.topology.assumptions.update(attached.assumptions)
        missing = place_best(state, allowed, per_node=options.chunks_per_node)
        unplaced = _unplaced(state, allowed, missing, circumstances, shapes)
        placement = _placement(state, allowed, unplaced, options, on_demand=on_demand)
        return _Attempt(state, allowed, unplaced, placement, allowances, on_demand)

    found = within({})
    limits = limits_of(totals_of(batches), options.spot_share) if options.spot_share < 1 else {}
    if limits:
        found = within_share(found, within, limits, always=options.optimal)
        found = cheaper_on_demand(found, partial(within, on_demand=True), limits)
    if not options.optimal:
        return found.placement

    def finished() -> Placement:
        return _placement(found.state, found.batches, found.unplaced, options, on_demand=found.on_demand)

    return optimal_placement(
        found.state, found.placement, finished, broken, per_node=options.chunks_per_node, seconds_left=seconds_left
    )


def _name(pool: NodePool) -> str:
    return pool.name


def _state(
    view: ClusterView,
    node_pools: Sequence[NodePool],
    instance_types: Sequence[InstanceType],
    *,
    overlays: Sequence[NodeOverlay],
    options: PlacementOptions,
    columns: ResourceColumns,
    needs: KnownNeeds,
    batches: Sequence[Batch],
    memory: Memory,
    attached: Attached,
) -> State:
    sold, observed = (tuple(instance_types), options.back_offs), attached.observed
    catalogue = memory.once("catalogue", sold, lambda: offerings_of(instance_types, options.back_offs))
    daemons = daemons_of(view.daemon_sets, columns)
    overlaid = (sold[0], tuple(node_pools), tuple(overlays))
    in_force = memory.once("overlays", overlaid, lambda: overlays_in_force(overlays, node_pools, instance_types))
    pools = (*sold, tuple(node_pools), in_force.overlays, view.daemon_sets, columns.names, observed)
    every = memory.once(
        "offers",
        pools,
        lambda: {
            pool.name: pool_offers(pool, catalogue, daemons, in_force.overlays, columns, observed=observed)
            for pool in sorted(node_pools, key=_name)
        },
    )
    frame = memory.once(
        "frame",
        (*pools, view.nodes, view.node_claims, options.leaving),
        lambda: frame_of(view, every, columns, leaving=options.leaving),
    )
    bins = bins_of(frame, memory.tally.count(view.pods), daemons, columns)
    topology = Topology(bins, view.namespaces, needs)
    for batch in batches:
        for wanted in (batch.needs, *batch.preferences):
            topology.watch(wanted, chunks_only=batch.keeps_minimum)
    topology.count_pods()
    topology.assumptions.update(catalogue.left_out)
    topology.assumptions.update(in_force.left_out)
    topology.assumptions.update(_not_judged(batches))
    if topology.looks_at_hosts:
        topology.assumptions.update(frame.hostnames.sentences)
    reservations = reservations_of(catalogue, view)
    limits = PoolLimits(node_pools, view, instance_types, reservations.left)
    offers = usable_offers(list(every.values()), [pool for pool in node_pools if usable(pool)], reservations)
    topology.assumptions.update(unknown_prices(offers))
    kernel = compiled() if len(batches) >= WORTH_COMPILING else None
    shared_out = options.chunks_per_node is not None or any(batch.allowance is not UNLIMITED for batch in batches)
    usage = Usage(columns.names, attached.in_use, frame.index)
    return State(bins, offers, topology, limits, columns, kernel=kernel, shared_out=shared_out, usage=usage)


def _not_judged(batches: Sequence[Batch]) -> set[str]:
    sentences = set()
    foreign: dict[tuple[str, bool], int] = {}
    for batch in batches:
        shape = batch.needs.shape
        if shape.runtime_class:
            sentences.add(
                f"{batch.demand}: RuntimeClass {shape.runtime_class} is not there: its overhead is not counted"
            )
        if shape.resource_claims:
            sentences.add(f"{batch.demand}: its resource claims are not judged")
        if batch.pods and shape.scheduler_name != DEFAULT_SCHEDULER:
            key = (shape.scheduler_name, batch.opens_nodes)
            foreign[key] = foreign.get(key, 0) + batch.count
    return sentences | {_foreign_words(*key, count) for key, count in foreign.items()}


def _foreign_words(scheduler: str, opens_nodes: bool, count: int) -> str:  # noqa: FBT001 - as the key has it
    """Karpenter asks of a pod that its condition PodScheduled has the reason Unschedulable, not who set it (IsProvisionable)."""
    waiting = "1 pod that waits" if count == 1 else f"{count} pods that wait"
    placed = f"{waiting} for scheduler {scheduler} {'is' if count == 1 else 'are'} placed as kube-scheduler would do it"
    return f"{placed}; Karpenter makes nodes only once that scheduler has set Unschedulable" if opens_nodes else placed


def _unplaced(
    state: State,
    batches: Sequence[Batch],
    missing: dict[int, int],
    circumstances: Circumstances,
    shapes: Mapping[tuple[ObjectRef, int], PodShape],
) -> list[Unplaced]:
    """Of several members of a batch the last in order go without. shapes: by demand and group, since those of a batch are alike
    but for what their claims are called."""
    unplaced = []
    for number in sorted(missing):
        batch = batches[number]
        shared: tuple[UnplacedReason, ...] | None = None
        left = missing[number]
        for member in reversed(batch.members):
            count = min(left, member.size)
            if not count:
                break
            shape = shapes[member.demand, member.group]
            own, enough = ((obstacle_reason(shape),), True) if shape.obstacle else claim_reasons(shape)
            if shared is None and not enough:
                shared = reasons_of(state, batch, circumstances)
            unplaced.append(Unplaced(member.demand, member.group, count, own if enough else (*(shared or ()), *own)))
            left -= count
    return sorted(unplaced, key=lambda item: (item.demand, item.group))


def _placement(
    state: State, batches: Sequence[Batch], unplaced: Sequence[Unplaced], options: PlacementOptions, *, on_demand: bool
) -> Placement:
    """The placement as the state has it, which stays as it is."""
    holdings = _holdings(state, batches)
    accounts = state.limits.accounts()
    offerer = Offerer(state, options.instance_types)
    offered, crowded = offered_within_share(
        state, offerer, holdings, totals_of(batches), options.spot_share, on_demand=on_demand
    )
    # Alternatives use up limits for each other only.
    state.limits.restore(accounts)
    planned = [in_its_pool(item.node) for item in offered]
    occupied = []
    for number, origin in enumerate(state.bins.origins):
        if number in holdings:
            node = origin.node.name if origin.node is not None else None
            claim = origin.claim.name if origin.claim is not None else None
            occupied.append(OccupiedBin(node, claim, holdings[number]))
    planned.sort(
        key=lambda node: (
            *(node.node_pool, node.instance_types, node.zones, node.capacity_types),
            [_order(holding) for holding in node.holdings],
        )
    )
    occupied.sort(key=lambda item: (item.node or "", item.node_claim or ""))
    assumptions = tuple(sorted({*state.topology.assumptions, *map(str, crowded)}))
    return Placement(tuple(occupied), tuple(planned), tuple(unplaced), assumptions, crowded)


def _holdings(state: State, batches: Sequence[Batch]) -> dict[int, tuple[Holding, ...]]:
    """What each bin holds: chunks of a batch go to its members in their order, bin by bin."""
    amounts: dict[int, dict[int, int]] = {}
    for put in state.entries():
        by_bin = amounts.setdefault(put.batch.number, {})
        by_bin[put.bin] = by_bin.get(put.bin, 0) + put.count
    found: dict[int, list[Holding]] = {}
    for number, by_bin in sorted(amounts.items()):
        members = iter(batches[number].members)
        waiting = 0
        for bin_number, count in sorted(by_bin.items()):
            left = count
            held = found.setdefault(bin_number, [])
            while left:
                if not waiting:
                    demand, group, waiting = next(members)
                taken = min(left, waiting)
                held.append(Holding(demand, group, taken))
                waiting -= taken
                left -= taken
    return {number: tuple(sorted(holdings, key=_order)) for number, holdings in found.items()}


def _order(holding: Holding) -> tuple[str, str, str, str, int, int]:
    """As holdings compare, only quicker."""
    demand = holding.demand
    return (demand.group, demand.kind, demand.namespace, demand.name, holding.group, holding.count)
