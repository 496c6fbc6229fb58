"""A lower bound on the price, by column generation with exact pricing, of the packing with open whatever the rules leave open.

Nodes may be split, but what each of them holds is whole chunks. Chunks are worth what the master's dual prices say, and an integer
program says how much of that a node holds at most. That bounds the price before the master has all its columns too (`columns.py`).
A few nodes may leave most of one open. So these are reckoned as whole ones too, with chunks that may be split.

The placement chose zones, NodePools, who shares a node, and which chunks take the room of existing nodes. None of that is taken over, nor
what rules say of zones, but for spread where prices differ by zone (`spread_rows.py`). Nor is spread over hosts: nodes that fill up
evenly each take any number. Running pods may be what KeepMinimum keeps: beside such chunks they take nothing. What is left out can only
make the bound lower, so it stays a bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.columns import ColumnGeneration, MasterProblem, Rows
from reconciler.optimizer.packing import NodeRules, Packing, Pattern, Purchase, bin_types_for, planned_pattern
from reconciler.optimizer.solver import LinearProgram, WorkBudget
from reconciler.optimizer.spread_rows import FEW_NODES, SpreadRows, spread_rows
from reconciler.placement.amounts import PLENTY, Amounts, times
from reconciler.placement.batches import Batch
from reconciler.placement.engine.state import JournalEntry, State
from reconciler.placement.loops.arrays import MINIMUM, RUNNING
from reconciler.placement.requirements import ANYWHERE

_CLOSED = 0.001
"""Part of the price by which the bound and the master may differ, as they do anyway by what `Knapsacks` leaves open."""
_FIRST_ROUNDS = 100
"""Of greedy pricing, before any exact one."""
_MOST_VARIABLES = 1500
"""Of the program for whole nodes."""
_MOST_BRANCHES = 400
"""After the first hundreds of branches the bound hardly moves."""


def lower_bound(relaxation: Relaxation, budget: WorkBudget) -> float | None:
    """USD an hour that no valid placement goes below. None when the solver found no optimum."""
    columns = ColumnGeneration(MasterProblem(relaxation.rows, relaxation.nodes), relaxation.packing, budget)
    solved = columns.solve_exactly(relaxation.packing.counts, rounds=_FIRST_ROUNDS, closed=_CLOSED)
    bounds = [bound for _, bound in solved]
    if bounds and len(relaxation.nodes) <= FEW_NODES:
        bounds.append(_bound_of_whole_nodes(relaxation, budget))
    return max(bounds, default=None)


def _bound_of_whole_nodes(relaxation: Relaxation, budget: WorkBudget) -> float:
    """0 where the program is too large, or nothing is found within the budget.

    Of each bin type it has the nodes and the chunks on all of them. What these chunks take in sum is no more than there is.
    """
    packing, rows = relaxation.packing, relaxation.rows
    kinds, items = np.nonzero(packing.most_alone)
    bin_types = len(packing.bin_types)
    if not len(items) or bin_types + len(items) > _MOST_VARIABLES:  # no items: no node can be bought
        return 0.0
    here = kinds[:, None] == np.arange(bin_types)
    shares = np.array([packing.shares(number) for number in range(bin_types)])[kinds, items]
    of_items = (here[:, :, None] * shares[:, None]).reshape(len(items), -1)
    limits_of_items = -np.concatenate([of_items, np.diag(1 / packing.most_alone[kinds, items])], axis=1)
    limits_of_nodes = np.concatenate([np.repeat(np.eye(bin_types), shares.shape[1], axis=1), here.T], axis=1)
    limits = limits_of_nodes.shape[1]
    least = np.pad(rows.least, (0, limits))
    program = LinearProgram(least, presolve="on", mip_max_nodes=_MOST_BRANCHES)
    program.add(
        packing.bin_types.prices / 1e9,
        np.concatenate([rows.of_pools[packing.bin_types.pools], limits_of_nodes], axis=1),
    )
    program.add(np.zeros(len(items)), np.concatenate([rows.of_items[items], limits_of_items], axis=1))
    program.add(np.zeros(len(rows.free)), np.pad(rows.free, ((0, 0), (0, limits))), rows.most)
    program.solve(budget, whole=bin_types)
    return max(program.bound, 0.0)


@dataclass(frozen=True, slots=True)
class Relaxation:
    """What is to be placed at the least price, and on what.

    packing: of item types that nothing here tells apart. Where spread rows tell domains apart, these chunks have one for each domain.
    rows: what is to be placed, what spread asks of domains, and the room of all existing nodes together.
    nodes: as the placement has them.
    """

    packing: Packing
    rows: Rows
    nodes: tuple[Pattern, ...]


def relaxation_of(state: State) -> Relaxation:
    """For all chunks that have a place. Pending pods that no node is made for keep theirs."""
    entries = [entry for entry in state.entries() if not entry.batch.waits]
    keeps_minimum = any(entry.batch.part == MINIMUM for entry in entries)
    entries = [entry for entry in entries if not keeps_minimum or entry.batch.part != RUNNING]
    placed: Counter[Batch] = Counter()
    for entry in entries:
        placed[entry.batch] += entry.count
    batches, spread = list(placed), spread_rows(state, placed, entries)
    free, fits = _existing(state, batches, 0 if keeps_minimum else _running(state, entries))
    purchases, rules = _purchases(state, batches), NodeRules.of(state, batches, spread=False)
    kinds = rules.alike(purchases, [spread.weights.get(batch) for batch in batches], fits.tolist())
    firsts = np.unique(kinds, return_index=True)[1].tolist()
    items = [(first, place) for first in firsts for place in spread.places(batches[first])]
    owners = [first for first, _ in items]
    counts = np.bincount(kinds, weights=list(placed.values())).astype(np.int64)
    asked = [(batches[first], purchases[first], place) for first, place in items]
    packing = Packing(counts[kinds[owners]], bin_types_for(state, spread.purchases(state, asked)), rules.only(owners))
    of_spread = np.array([spread.row(batches[first], place) for first, place in items], dtype=np.float64)
    of_items = np.concatenate([np.eye(len(counts))[kinds[owners]], of_spread.reshape(len(items), -1)], axis=1)
    shares = packing.rules.sizes[:, : len(free)] / np.maximum(free, 1)
    able = [number for number, (first, place) in enumerate(items) if place < 0 and fits[first]]
    in_room = np.concatenate([of_items[able], -shares[able]], axis=1)
    fewest = np.concatenate([np.zeros(len(counts)), spread.fewest, np.zeros(len(free))])
    numbers = {(int(kinds[first]), place): number for number, (first, place) in enumerate(items)}
    most_nodes = [_most_nodes(state, pool) for pool in range(len(state.offers))]
    return Relaxation(
        packing,
        Rows(
            least=np.concatenate([counts, spread.least, np.full(len(free), -1.0), np.negative(most_nodes)]),
            of_items=np.pad(of_items, ((0, 0), (0, len(free) + len(most_nodes)))),
            of_pools=np.pad(-np.eye(len(most_nodes)), ((0, 0), (len(fewest), 0))),
            free=np.pad(np.concatenate([fewest[None], in_room]), ((0, 0), (0, len(most_nodes)))),
            most=np.append(np.inf, fits[[items[number][0] for number in able]]),
        ),
        _nodes(state, entries, spread, dict(zip(batches, kinds.tolist(), strict=True)), numbers),
    )


def _purchases(state: State, batches: Sequence[Batch]) -> list[Purchase]:
    """By batch, what a new node may be bought as, whichever relaxation step is met, in whatever domain."""
    nothing = np.zeros(sum(len(offers.rows) for offers in state.offers), dtype=np.bool_)
    of_classes: dict[int, Purchase] = {}
    for needs in (batch.needs for batch in batches):
        if needs.equivalence_class not in of_classes:
            steps = (state.compatibilities.get(needs, step, ANYWHERE).bought_as for step in needs.relaxations)
            of_classes[needs.equivalence_class] = np.any([nothing, *steps], axis=0)
    return [of_classes[batch.needs.equivalence_class] if batch.opens_nodes else nothing for batch in batches]


def _nodes(
    state: State,
    entries: Sequence[JournalEntry],
    spread: SpreadRows,
    kinds: Mapping[Batch, int],
    numbers: Mapping[tuple[int, int], int],
) -> tuple[Pattern, ...]:
    """kinds: of batches; numbers: of item types, by kind and place."""
    held: dict[int, Counter[int]] = {}
    for entry in entries:
        if entry.bin >= state.base:
            domain = state.decided(entry.bin, spread.key) if spread.domains else None
            place = spread.domains.index(domain) if domain in spread.domains else -1
            kind = kinds[entry.batch]
            held.setdefault(entry.bin - state.base, Counter())[numbers.get((kind, place), numbers[kind, -1])] += (
                entry.count
            )
    return tuple(planned_pattern(state, index, items) for index, items in held.items())


def _running(state: State, entries: Sequence[JournalEntry]) -> Amounts:
    """What running pods take of each existing bin, without those of these entries."""
    running = state.resources.running.copy()
    for entry in entries:
        if entry.bin < state.base and entry.batch.part == RUNNING:
            running[entry.bin] -= entry.batch.needs.request * entry.count
    return running


def _existing(state: State, batches: Sequence[Batch], running: Amounts | int) -> tuple[Amounts, Amounts]:
    """Free room as it was before these chunks came, added up over the bins that can take any of them. And how many of each batch
    there is room for."""
    room = np.maximum(state.bins.room - running, 0)
    fits = np.zeros(len(batches), dtype=np.int64)
    useful = np.zeros(state.base, dtype=np.bool_)
    for number, batch in enumerate(batches):
        needs = batch.needs
        tolerated = state.bins.taint_toleration.tolerating(needs.shape.tolerations)
        able = state.bins.usable & state.bins.node_affinity.meeting(needs.terms) & tolerated
        if able.any():
            here = np.where(able, times(room, needs.request), 0)
            fits[number] = min(float(here.astype(np.float64).sum()), PLENTY / 2)
            useful |= here > 0
    return room[useful].sum(axis=0), fits


def _most_nodes(state: State, pool: int) -> float:
    """How many new ones a NodePool may have."""
    left = state.limits.nodes_left(state.offers[pool].pool.name)
    planned = sum(state.planned.of(index).pool == pool for index in range(state.planned.count))
    return math.inf if left is None else max(left, 0) + planned
