"""Places all demands of a problem: the entry to the package. Pure, so equal input gives an equal answer.

Bound pods keep what they have. Pending pods come next and take free room only, unless new nodes are asked for. Then come demands by
priority, namespace and name: on existing nodes first, and then on new ones. In the end the placement is read off the state: what existing
bins hold, and what each planned node's NodeClaim lists (types, zones, capacity types, labels, requests).

Karpenter may launch any listed type in any listed zone and capacity type. So each combination must hold the node's chunks, be
available now, and stay within the pool's limits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isinf
from operator import add
from typing import TypeAlias

import numpy as np

from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    ZONE_LABEL,
    stable_label,
)
from reconciler.model.placement import Holding, OccupiedBin, Placement, PlannedNode, Unplaced
from reconciler.model.pods import DEFAULT_SCHEDULER
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Requirement
from reconciler.placement.arrays import BATCH, BIN, CHUNKS, PLENTY, POOL, POSITION, TEMPLATE, ResourceColumns
from reconciler.placement.batches import Batch, KnownNeeds, batches_of
from reconciler.placement.cache import Cache
from reconciler.placement.constraints.limits import (
    NOTHING,
    PoolLimits,
    node_pool_of,
    reservations_apart,
    reservations_of,
)
from reconciler.placement.constraints.topology import Topology
from reconciler.placement.constraints.volumes import with_volumes
from reconciler.placement.engine.best import place_best
from reconciler.placement.engine.state import State
from reconciler.placement.loops.kernel import WORTH_COMPILING, compiled, plain
from reconciler.placement.nodes.existing import bins_of, frame_of
from reconciler.placement.offers.node_templates import NodeTemplate
from reconciler.placement.offers.offerings import NANODOLLARS, offerings_of, unsettled_overlays
from reconciler.placement.offers.pool_offers import (
    Place,
    daemons_of,
    listable,
    node_class_label,
    pool_offers,
    sold_in,
    unknown_prices,
    usable,
)
from reconciler.placement.problem import PlacementOptions, Problem
from reconciler.placement.reasons.unplaced import unplaced_chunks
from reconciler.placement.requirements import Mask, Requirements, Values, one_of


def _listed(state: State, holdings: Mapping[int, tuple[Holding, ...]], most_types: int) -> list[PlannedNode]:
    """What the NodeClaim of each planned node lists. holdings: by number of a bin. most_types: how many types a node may list.

    What nodes with the same types have in common is computed once. A pool with limits is charged for the largest of them. Alternatives
    count only among planned nodes, so in the end their charges are taken back."""
    planned, limits = state.planned, state.limits
    known: dict[tuple[object, ...], tuple[Callable[..., PlannedNode], list[int], Resources]] = {}
    nodes: list[PlannedNode] = []
    charges: list[tuple[str, Resources, Resources]] = []
    marks = planned.marks[[TEMPLATE, POSITION], : planned.count].T.tolist()
    rows = zip(marks, _types_holding(state), planned.used[: planned.count].tolist(), strict=True)
    for index, (kind, holding, used) in enumerate(rows):
        template, charged = state.templates.list[kind[0]], state.charged(index)
        is_limited, name = template.pool in state.limited, template.offers.pool.name
        allowed = state.running_limits.larger_types(template.pool, charged) if is_limited else None
        key = (*kind, holding, None if allowed is None else allowed.tobytes())
        if key not in known:
            known[key] = _offer(state, index, template, allowed, most_types)
        node, daemons, largest = known[key]
        if is_limited:
            limits.charge(name, largest, charged, nodes=0)
            charges.append((name, largest, charged))
        requests = state.columns.asked(list(map(add, used, daemons)))
        nodes.append(node(requests=requests, holdings=holdings[state.base + index]))
    for name, largest, charged in charges:
        limits.charge(name, charged, largest, nodes=0)
    return nodes


def _types_holding(state: State) -> list[bytes]:
    """By planned node, which types of its pool hold its chunks."""
    used = state.planned.used[: state.planned.count]
    pools = state.templates.spans[POOL, state.planned.template[: len(used)]]
    found = [b""] * len(used)
    for pool in np.flatnonzero(np.bincount(pools)).tolist():
        indices, room = np.flatnonzero(pools == pool), state.offers[pool].room
        holds = np.ones((len(indices), len(room)), dtype=np.bool_)
        for resource in range(used.shape[1]):
            holds &= room[None, :, resource] >= used[indices, resource, None]
        for index, row in zip(indices.tolist(), np.packbits(holds, axis=1), strict=True):
            found[index] = bytes(row)
    return found


def _offer(
    state: State, index: int, template: NodeTemplate, allowed: Mask | None, most_types: int
) -> tuple[Callable[..., PlannedNode], list[int], Resources]:
    """What a NodeClaim lists, which becomes the node with its chunks (holdings) and their requests; what daemon pods take on the largest of its types; and the
    largest amount of each resource among these.

    allowed: the types within the pool's limits, None for all. More than the most types are listed only if minValues needs more."""
    planned, offers, labels = state.planned, template.offers, _labels_of(template)
    primary = planned.primary(index)
    own = int(offers.offerings.types_of[primary])
    best: tuple[Place, list[int], Mask] | None = None
    for listed_rows, place in listable(offers, planned.rows(index), primary):
        rows, sold = sold_in(offers, listed_rows, place)
        instance_types = [item for item in sold if allowed is None or item == own or allowed[item]]
        few = instance_types[:most_types]
        if few == instance_types or offers.meets_minimums(rows & offers.offerings.rows_of(few)):
            instance_types = few
        listed = rows & offers.offerings.rows_of(instance_types)
        best = best or (place, instance_types, listed)
        if offers.meets_minimums(listed):
            best = (place, instance_types, listed)
            break
    assert best is not None
    (zones, capacity_types), instance_types, listed = best
    priced = bool(offers.priced[listed].all())
    names = tuple(offers.offerings.types[instance_type].name for instance_type in instance_types)
    decided = {
        INSTANCE_TYPE_LABEL: one_of(*names),
        ZONE_LABEL: one_of(*zones),
        CAPACITY_TYPE_LABEL: one_of(*capacity_types),
    }
    node = partial(
        PlannedNode,
        node_pool=node_pool_of(offers),
        instance_types=names,
        zones=zones,
        capacity_types=capacity_types,
        price=int(offers.prices[listed].min()) / NANODOLLARS if priced else 0.0,
        requirements=_requirements(template, labels, decided),
        labels=tuple(sorted(labels.items())),
        price_known=priced,
        taints=template.taints,
    )
    largest = NOTHING if allowed is None else Resources.largest(offers.capacities[n] for n in (own, *instance_types))
    return node, offers.daemon_load[instance_types].max(axis=0).tolist(), largest


def _fixed_labels(template: NodeTemplate) -> set[str]:
    """Labels whose values NodeClaims of the template do not choose."""
    return {*dict(template.offers.pool.template.labels), HOSTNAME_LABEL}


def _labels_of(template: NodeTemplate) -> dict[str, str]:
    """One value for each label that the pool requires and the catalog does not decide."""
    required = {stable_label(item.key) for item in template.offers.pool.template.requirements}
    chosen = required - _fixed_labels(template)
    examples = {key: values.example() for key, values in template.own.entries if key in chosen}
    return {key: value for key, value in examples.items() if value is not None}


def _requirements(
    template: NodeTemplate, labels: Mapping[str, str], decided: Mapping[str, Values]
) -> tuple[Requirement, ...]:
    """The requirements of pool and chunks, narrowed to what was decided, sorted by label. A requirement that a label of the NodeClaim
    already expresses is left out."""
    pool = template.offers.pool
    own = Requirements.of(pool.template.requirements).entries
    named = (NODEPOOL_LABEL, one_of(node_pool_of(template.offers)))
    asked = Requirements.joined((*own, named, *template.wanted.entries))
    capacity_types = asked.get(CAPACITY_TYPE_LABEL)
    if capacity_types is not None and (capacity_types.min_values or 0) > len(decided[CAPACITY_TYPE_LABEL].names):
        # Reserved capacity counted for minValues, but has NodeClaims of its own. The API server refuses fewer values than minValues.
        asked = asked.without(frozenset({CAPACITY_TYPE_LABEL}))
    settled = {**decided, **{key: one_of(value) for key, value in labels.items()}}
    said = {*_fixed_labels(template), node_class_label(pool)} - settled.keys()
    merged = asked.both(Requirements(tuple(sorted(settled.items())))).without(frozenset(said))
    return tuple(requirement for key, values in merged.entries for requirement in values.requirements(key))


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
        planned = _listed(state, holdings, self.options.instance_types)
        occupied = []
        for number, origin in enumerate(state.bins.origins):
            if number in holdings:
                node, claim = origin.machine.node, origin.machine.node_claim
                names = None if node is None else node.name, None if claim is None else claim.name
                occupied.append(OccupiedBin(*names, holdings[number]))
        keys = [
            (node.node_pool, node.instance_types, node.zones, node.capacity_types, held[state.base + index])
            for index, node in enumerate(planned)
        ]
        planned = [planned[index] for index in sorted(range(len(planned)), key=keys.__getitem__)]
        occupied.sort(key=lambda item: (item.node or "", item.node_claim or ""))
        assumptions = tuple(sorted(state.topology.assumptions))
        return Placement(tuple(occupied), tuple(planned), tuple(self.unplaced), assumptions)


def place(problem: Problem, *, cache: Cache | None = None) -> Placement:
    """Where each chunk goes. Only what is certain to fit is placed; what could not be judged is in `assumptions`.

    cache: the previous placement, so that only what changed is computed again.
    """
    known = cache or Cache()
    return known.placement(problem, lambda: solve(problem, known).placement())


def solve(problem: Problem, cache: Cache) -> Solution:
    """Places everything once, in the fast mode."""
    attaching = any(demand.has_claims for demand in problem.demands)
    problem, assumptions = with_volumes(problem) if attaching else (problem, ())
    shapes = {id(group.shape): group.shape for demand in problem.demands for group in demand.groups if group.count > 0}
    options = problem.options
    columns = ResourceColumns(shape.requests for shape in shapes.values())
    needs = KnownNeeds(columns.request)
    batches = batches_of(problem.demands, needs.of, include_pending=options.include_pending)
    state = _initial_state(problem, assumptions, batches, columns=columns, needs=needs, cache=cache)
    most_price = PLENTY if isinf(options.most_price) else int(options.most_price * NANODOLLARS)
    missing = place_best(state, batches, most_price=most_price)
    unplaced = unplaced_chunks(state, problem, batches, missing) if missing else []
    return Solution(state, batches, unplaced, options)


def _initial_state(
    problem: Problem,
    assumptions: Sequence[str],
    batches: Sequence[Batch],
    *,
    columns: ResourceColumns,
    needs: KnownNeeds,
    cache: Cache,
) -> State:
    """What exists, what can be bought, and which pods count where.

    columns: the resources that any chunk asks for. cache: from the last placement, reused where its inputs are unchanged."""
    view, options = problem.view, problem.options
    sold = (tuple(problem.instance_types), options.back_offs)
    catalog = cache.once("catalog", sold, lambda: offerings_of(problem.instance_types, options.back_offs))
    daemons = daemons_of(view.daemon_sets, columns)
    overlays = tuple(problem.overlays)
    node_pools = sorted(problem.node_pools, key=lambda pool: pool.name)
    pools = (*sold, tuple(problem.node_pools), overlays, view.daemon_sets, columns.names)
    every = cache.once(
        "offers",
        pools,
        lambda: {pool.name: pool_offers(pool, catalog, daemons, overlays, columns) for pool in node_pools},
    )
    frame = cache.once(
        "frame",
        (*pools, view.nodes, view.node_claims, options.leaving, options.keeping),
        lambda: frame_of(view, every, columns, leaving=options.leaving, keeping=options.keeping),
    )
    bins = bins_of(frame, cache.tally.count(view.pods), daemons, columns, options.booked)
    topology = Topology(bins, view.namespaces, needs)
    asked = ((batch.keeps_minimum, item) for batch in batches for item in (batch.needs, *batch.preferences))
    for (_, chunks_only), wanted in {(item.equivalence_class, minimum): item for minimum, item in asked}.items():
        topology.own_rules(wanted, chunks_only=chunks_only)
    topology.count_pods()
    reservations = reservations_of(catalog, view)
    limits = PoolLimits(problem.node_pools, view, problem.instance_types, reservations, options.promised)
    offers = [part for item in every.values() if usable(item.pool) for part in reservations_apart(item, reservations)]
    sentences = (*assumptions, *catalog.left_out, *unsettled_overlays(overlays), *unknown_prices(offers))
    topology.assumptions.update(sentences, _not_judged(batches))
    kernel = compiled() if len(batches) >= WORTH_COMPILING else plain()
    return State(bins, offers, topology, limits, columns, batches, kernel=kernel)


def _not_judged(batches: Sequence[Batch]) -> set[str]:
    sentences = set()
    for batch in batches:
        shape = batch.needs.shape
        if shape.runtime_class:
            sentences.add(
                f"{batch.demand}: RuntimeClass {shape.runtime_class} does not exist: its overhead is not counted"
            )
        if batch.pods and shape.scheduler_name != DEFAULT_SCHEDULER:
            sentences.add(f"pods of scheduler {shape.scheduler_name} are placed as kube-scheduler would do it")
    return sentences


_Held: TypeAlias = tuple[ObjectRef, int, int]
"""The parts of a holding: tuples compare faster than holdings do."""


def _held(state: State, batches: Sequence[Batch]) -> dict[int, list[_Held]]:
    """What each bin holds, sorted: chunks of a batch go to its members in their order, bin by bin."""
    bins = state.base + state.planned.count
    rows = state.placed()
    numbers = np.array([batch.number for batch in state.batches], dtype=np.int64)[rows[:, BATCH]]
    keys, places = np.unique(numbers * bins + rows[:, BIN], return_inverse=True)
    counts = np.bincount(places, weights=rows[:, CHUNKS], minlength=len(keys)).astype(np.int64)
    found: defaultdict[int, list[_Held]] = defaultdict(list)
    batch = -1
    for number, bin_number, count in zip(*(item.tolist() for item in (*np.divmod(keys, bins), counts)), strict=True):
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
