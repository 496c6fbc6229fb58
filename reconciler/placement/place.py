"""Places all demands of a problem: the entry to the package. Pure, so equal input gives an equal answer.

Bound pods keep what they have. Pending pods come next and take free room only, unless new nodes are asked for. Then come demands by
priority, namespace and name: on existing nodes first, and then on new ones. In the end the placement is read off the state: what existing
bins hold, and what each planned node's NodeClaim lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf
from typing import TypeAlias

from reconciler.model.placement import Holding, OccupiedBin, Placement, Unplaced
from reconciler.model.pods import DEFAULT_SCHEDULER
from reconciler.model.refs import ObjectRef
from reconciler.placement.arrays import PLENTY, ResourceColumns
from reconciler.placement.batches import Batch, KnownNeeds, batches_of
from reconciler.placement.constraints.dynamic_resources import with_devices
from reconciler.placement.constraints.limits import PoolLimits, in_its_pool, reservations_of, usable_offers
from reconciler.placement.constraints.topology import Topology
from reconciler.placement.constraints.volumes import Attached, with_volumes
from reconciler.placement.engine.best import place_best
from reconciler.placement.engine.domains import in_order_of_spread
from reconciler.placement.engine.state import State
from reconciler.placement.launch import Offerer
from reconciler.placement.loops.kernel import WORTH_COMPILING, compiled, plain
from reconciler.placement.memory import Memory
from reconciler.placement.nodes.existing import bins_of, frame_of
from reconciler.placement.offers.offerings import NANODOLLARS, offerings_of, overlays_in_force
from reconciler.placement.offers.pool_offers import daemons_of, pool_offers, unknown_prices, usable
from reconciler.placement.problem import PlacementOptions, Problem
from reconciler.placement.reasons.unplaced import unplaced_chunks


@dataclass(frozen=True, slots=True)
class Solution:
    """A placement with the state that it was read from. The optimizer starts from that state."""

    state: State
    batches: Sequence[Batch]
    unplaced: Sequence[Unplaced]
    options: PlacementOptions

    def placement(self) -> Placement:
        """Reads the placement off the state, which is unchanged afterwards."""
        state = self.state
        held = _held(state, self.batches)
        holdings = {number: tuple([Holding(*item) for item in items]) for number, items in held.items()}
        saved = state.save()
        offerer = Offerer(state, self.options.instance_types)
        planned = [
            in_its_pool(offerer.planned_node(index, holdings[state.base + index]))
            for index in range(state.planned.count)
        ]
        # Alternatives count against limits only among planned nodes, so their charges are taken back.
        state.roll_back(saved)
        occupied = []
        for number, origin in enumerate(state.bins.origins):
            if number in holdings:
                node = origin.node.name if origin.node is not None else None
                claim = origin.claim.name if origin.claim is not None else None
                occupied.append(OccupiedBin(node, claim, holdings[number]))
        keys = [
            (node.node_pool, node.instance_types, node.zones, node.capacity_types, held[state.base + index])
            for index, node in enumerate(planned)
        ]
        planned = [planned[index] for index in sorted(range(len(planned)), key=keys.__getitem__)]
        occupied.sort(key=lambda item: (item.node or "", item.node_claim or ""))
        assumptions = tuple(sorted(state.topology.assumptions))
        return Placement(tuple(occupied), tuple(planned), tuple(self.unplaced), assumptions)


def place(problem: Problem, *, memory: Memory | None = None) -> Placement:
    """Where each chunk goes. Only what is certain to fit is placed; what could not be judged is in `assumptions`.

    memory: the previous placement, so that only what changed is computed again.
    """
    memory = memory or Memory()
    return memory.recall(problem) or memory.keep(solve(problem, memory).placement())


def solve(problem: Problem, memory: Memory) -> Solution:
    """Places everything once, in the fast mode."""
    shapes = [group.shape for demand in problem.demands for group in demand.groups]
    attached = with_volumes(problem) if any(shape.volume_claims for shape in shapes) else Attached(problem)
    attached = with_devices(attached) if any(shape.claims_devices for shape in shapes) else attached
    problem, options = attached.problem, problem.options
    groups = (group for demand in problem.demands for group in demand.groups if group.count > 0)
    columns = ResourceColumns(group.shape.requests for group in groups)
    needs = KnownNeeds(columns.request)
    batches = batches_of(problem.demands, needs.of, include_pending=options.include_pending)
    state = _initial_state(problem, attached, batches, columns=columns, needs=needs, memory=memory)
    most_price = PLENTY if isinf(options.most_price) else int(options.most_price * NANODOLLARS)
    missing = place_best(state, in_order_of_spread(state, batches), most_price=most_price)
    unplaced = unplaced_chunks(state, problem, batches, missing) if missing else []
    return Solution(state, batches, unplaced, options)


def _initial_state(
    problem: Problem,
    attached: Attached,
    batches: Sequence[Batch],
    *,
    columns: ResourceColumns,
    needs: KnownNeeds,
    memory: Memory,
) -> State:
    """What exists, what can be bought, and which pods count where.

    columns: the resources that any chunk asks for. memory: from the last placement, reused where its inputs are unchanged."""
    view, options = problem.view, problem.options
    sold, observed = (tuple(problem.instance_types), options.back_offs), attached.observed
    catalog = memory.once("catalog", sold, lambda: offerings_of(problem.instance_types, options.back_offs))
    daemons = daemons_of(view.daemon_sets, columns)
    overlaid = (sold[0], tuple(problem.node_pools), tuple(problem.overlays))
    in_force = memory.once("overlays", overlaid, lambda: overlays_in_force(problem))
    node_pools = sorted(problem.node_pools, key=lambda pool: pool.name)
    pools = (*sold, tuple(problem.node_pools), in_force.overlays, view.daemon_sets, columns.names, observed)
    every = memory.once(
        "offers",
        pools,
        lambda: {
            pool.name: pool_offers(pool, catalog, daemons, in_force.overlays, columns, observed=observed)
            for pool in node_pools
        },
    )
    frame = memory.once(
        "frame",
        (*pools, view.nodes, view.node_claims, options.leaving, options.keeping),
        lambda: frame_of(view, every, columns, leaving=options.leaving, keeping=options.keeping),
    )
    bins = bins_of(frame, memory.tally.count(view.pods), daemons, columns, options.booked)
    topology = Topology(bins, view.namespaces, needs)
    for batch in batches:
        for wanted in (batch.needs, *batch.preferences):
            topology.own_rules(wanted, chunks_only=batch.keeps_minimum)
    topology.count_pods()
    reservations = reservations_of(catalog, view)
    limits = PoolLimits(problem.node_pools, view, problem.instance_types, reservations, options.promised)
    offers = usable_offers(list(every.values()), [pool for pool in problem.node_pools if usable(pool)], reservations)
    sentences = (*attached.assumptions, *catalog.left_out, *in_force.left_out, *unknown_prices(offers))
    topology.assumptions.update(sentences, _not_judged(batches))
    kernel = compiled() if len(batches) >= WORTH_COMPILING else plain()
    return State(bins, offers, topology, limits, columns, batches, kernel=kernel)


def _not_judged(batches: Sequence[Batch]) -> set[str]:
    sentences = set()
    foreign: dict[tuple[str, bool], int] = {}
    for batch in batches:
        shape = batch.needs.shape
        if shape.runtime_class:
            sentences.add(
                f"{batch.demand}: RuntimeClass {shape.runtime_class} does not exist: its overhead is not counted"
            )
        if batch.pods and shape.scheduler_name != DEFAULT_SCHEDULER:
            key = (shape.scheduler_name, batch.opens_nodes)
            foreign[key] = foreign.get(key, 0) + batch.count
    return sentences | {_foreign_words(*key, count) for key, count in foreign.items()}


def _foreign_words(scheduler: str, opens_nodes: bool, count: int) -> str:  # noqa: FBT001 - as the key has it
    """Karpenter asks of a pod that its condition PodScheduled has the reason Unschedulable, not who set it (IsProvisionable)."""
    waiting = "1 pod that waits" if count == 1 else f"{count} pods that wait"
    placed = f"{waiting} for scheduler {scheduler} {'is' if count == 1 else 'are'} placed as kube-scheduler would do it"
    return f"{placed}; Karpenter makes nodes only once that scheduler has set Unschedulable" if opens_nodes else placed


_Held: TypeAlias = tuple[ObjectRef, int, int]
"""The parts of a holding: tuples compare faster than holdings do."""


def _held(state: State, batches: Sequence[Batch]) -> dict[int, list[_Held]]:
    """What each bin holds, sorted: chunks of a batch go to its members in their order, bin by bin."""
    bins = state.base + state.planned.count
    # By batch and bin in one number, which sorts faster than two.
    amounts: defaultdict[int, int] = defaultdict(int)
    for entry in state.entries():
        amounts[entry.batch.number * bins + entry.bin] += entry.count
    found: defaultdict[int, list[_Held]] = defaultdict(list)
    batch = -1
    for key in sorted(amounts):
        (number, bin_number), count = divmod(key, bins), amounts[key]
        if number != batch:
            batch, members, waiting = number, iter(batches[number].members), 0
        held, left = found[bin_number], count
        while left:
            if not waiting:
                demand, group, waiting = next(members)
            taken = min(left, waiting)
            held.append((demand, group, taken))
            waiting -= taken
            left -= taken
    for items in found.values():
        items.sort()
    return found
