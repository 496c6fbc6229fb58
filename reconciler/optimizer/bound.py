"""A lower bound on the price, by column generation with exact pricing, of the packing with open whatever the rules leave open.

Nodes may be split, but what each of them holds is whole chunks. Chunks are worth what the master's dual prices say, and an integer
program says how much of that a node holds at most. That bounds the price before the master has all its columns too (`columns.py`).
A few nodes may leave most of one open. So these are reckoned as whole ones too, with chunks that may be split.

The placement chose zones, NodePools, who shares a node, and which chunks take the room of existing nodes. None of that is taken over, nor
what rules say of zones, but for spread where prices differ by zone, or nodes are few (`SpreadRows`). Nor is spread over hosts: nodes that fill up
evenly each take any number. Running pods may be what KeepMinimum keeps: beside such chunks they take nothing. What is left out can only
make the bound lower, so it stays a bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from reconciler.model.quantity import PODS
from reconciler.optimizer.columns import ColumnGeneration, Rows
from reconciler.optimizer.packing import NodeRules, Packing, Pattern, Purchase, bin_types_for, planned_pattern
from reconciler.optimizer.solver import Floats, LinearProgram, WorkBudget
from reconciler.placement.arrays import MINIMUM, PLENTY, RUNNING, Amounts, times
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Domain
from reconciler.placement.constraints.limits import NODES
from reconciler.placement.constraints.pod_rules import SpreadRule
from reconciler.placement.engine.state import JournalEntry, State
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import ANYWHERE, Mask

_CLOSED = 0.001
"""Part of the price by which the bound and the master may differ, as they do anyway by what `Knapsacks` leaves open."""
_FIRST_ROUNDS = 100
"""Rounds of greedy pricing before the first exact one."""
_MOST_VARIABLES = 1500
"""The most variables of the program for whole nodes."""
_MOST_BRANCHES = 400
"""After the first hundreds of branches the bound hardly moves."""


def lower_bound(relaxation: Relaxation, budget: WorkBudget) -> float | None:
    """USD an hour that no valid placement goes below. None when the solver found no optimum."""
    columns = ColumnGeneration(relaxation.packing, relaxation.nodes, budget, rows=relaxation.rows)
    bounds = [bound for _, bound in columns.solve_exactly(rounds=_FIRST_ROUNDS, closed=_CLOSED)]
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
    kinds, firsts = rules.alike(purchases, [spread.weights.get(batch) for batch in batches], fits.tolist())
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
    most_nodes = _most_nodes(state)
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


def _most_nodes(state: State) -> list[float]:
    """By NodePool, how many new ones it may have."""
    planned = Counter(state.planned.of(index).pool for index in range(state.planned.count))
    left = [state.limits.left(item.pool.name).get(NODES) for item in state.offers]
    return [math.inf if more is None else max(more, 0) + planned[pool] for pool, more in enumerate(left)]


FEW_NODES = 20
"""Up to this many nodes, parts of nodes count more than those of chunks."""
_FEW_CONSTRAINTS = 10
"""Up to this many constraints, the best of all orders is found in some thousands of steps."""
_MAX_SKEW = attrgetter("max_skew")
Weights = tuple[int, float]
"""Under how many constraints a chunk counts, and as how many chunks it is limited by them."""


@dataclass(frozen=True, slots=True)
class SpreadRows:
    """What spread constraints ask of topology domains, as rows of the bound's linear programs: where prices differ, or nodes are few.

    kube-scheduler's filter PodTopologySpread binds a pod to a domain when no more would count there than maxSkew above the fewest that count
    in any domain at that moment. Look at the last pod with a constraint that comes to a domain. What counts there by then is at most maxSkew
    above what counts in any other domain at the end. Pods with the constraint are there by then. So are pods with another constraint, where
    the last of these came before. The order of constraints is not known and may differ by domain. So the limit is the one in the order that
    leaves most room. Pods without a constraint may come last, and pods may be on nodes that a constraint does not look at: these are not
    limited. Chunks are told apart by domain for that. All constraints count in sum: nodes of some hundred kinds of chunks would take too
    long to price.

    domains: those that all constraints see. counted: by domain, what counts in it over all constraints, without the chunks that
    the bound is about. most: of what is limited, so much above the fewest that count in any domain. weights: by batch."""

    key: str = ""
    domains: tuple[Domain, ...] = ()
    counted: tuple[int, ...] = ()
    most: float = 0.0
    weights: Mapping[Batch, Weights] = field(default_factory=dict)

    @property
    def least(self) -> list[float]:
        """By row, at least so much. Rows: what counts in each domain, then what is limited there."""
        return [*(-float(count) for count in self.counted), *[-self.most] * len(self.domains)]

    @property
    def fewest(self) -> list[float]:
        """By row, what one more of the fewest that count anywhere takes from it."""
        return [*[-1.0] * len(self.domains), *[1.0] * len(self.domains)]

    def places(self, batch: Batch) -> range:
        """Where its chunks may be that are told apart: numbers of domains, and -1 for any other one, or all."""
        return range(-1, len(self.domains) if self._is_told_apart(batch) else 0)

    def row(self, batch: Batch, place: int) -> Floats:
        """What one of its chunks there adds to each row."""
        counting, limited = self.weights.get(batch, (0, 0.0))
        here = np.arange(len(self.domains)) == place
        return np.concatenate([counting * (here | (place < 0)), -limited * here.astype(np.float64)])

    def purchases(self, state: State, items: Iterable[tuple[Batch, Purchase, int]]) -> list[Purchase]:
        """What chunks may be bought as where they are. items: batches, with what they may be bought as, and places."""
        of_offers = [self._masks(offers) for offers in state.offers] if self.domains else []
        masks = [np.concatenate(parts) for parts in zip(*of_offers, strict=True)]
        return [rows & masks[place] if self._is_told_apart(batch) else rows for batch, rows, place in items]

    def _is_told_apart(self, batch: Batch) -> bool:
        """Whether its chunks are told apart by domain."""
        return any(self.weights.get(batch, ()))

    def _masks(self, offers: PoolOffers) -> list[Mask]:
        """Rows of a catalog by domain, and last those of other domains."""
        codes, cells = offers.offerings.table.column(self.key)
        found = [np.array([cell == domain for cell in cells], dtype=np.bool_)[codes] for domain in self.domains]
        return [*found, ~np.any(found, axis=0)]


def spread_rows(state: State, placed: Mapping[Batch, int], entries: Sequence[JournalEntry]) -> SpreadRows:
    """For the first label on which there are any. placed: chunks that the bound is about; entries: theirs."""
    if any(batch.part == MINIMUM for batch in placed):
        return SpreadRows()
    told = {batch: [rule for rule in state.constraints(batch).spread if rule.min_domains <= 1] for batch in placed}
    for key in sorted({rule.key for rules in told.values() for rule in rules}):
        own = {batch: found for batch, rules in told.items() if (found := [rule for rule in rules if rule.key == key])}
        if all(_is_worth_it(state, item, key) for item in state.offers):
            rows = _rows_of(state, placed, entries, own)
            if rows.domains:
                return rows
    return SpreadRows()


def _rows_of(
    state: State,
    placed: Mapping[Batch, int],
    entries: Sequence[JournalEntry],
    own: Mapping[Batch, Sequence[SpreadRule]],
) -> SpreadRows:
    """own: by batch, its constraints on one label. Counters stand for constraints: what differs in maxSkew alone has the larger one."""
    rules = {rule.counter: rule for rule in sorted((rule for some in own.values() for rule in some), key=_MAX_SKEW)}
    counts = {batch: sorted(rules.keys() & state.topology.counts_of(batch.needs)) for batch in placed}
    pairs = {batch: _pairs(state, counts[batch], [rule.counter for rule in some]) for batch, some in own.items()}
    circular = _circular({pair for some in pairs.values() for pair in some})
    limited = {batch: [pair for pair in some if pair in circular] for batch, some in pairs.items()}
    counters = sorted({counter for some in limited.values() for pair in some for counter in pair})
    if not counters:
        return SpreadRows()
    common = set[int].intersection(*(set(state.domains_of(rules[counter]).tolist()) for counter in counters))
    domains = sorted(state.topology.counters[counters[0]].named(common), key=str)
    waits = any(first != second for first, second in circular)
    sizes = _sizes(state, placed, own) if waits else dict.fromkeys(own, 1.0)
    amounts = np.zeros((len(counters), len(counters)))
    for batch, some in limited.items():
        for first, second in some:
            amounts[counters.index(first), counters.index(second)] += placed[batch] * sizes[batch]
    return SpreadRows(
        rules[counters[0]].key,
        tuple(domains),
        _counted(state, counters, domains, entries),
        _most_in_any_order(amounts, np.array([float(rules[counter].max_skew) for counter in counters])),
        {
            batch: (len(set(counters).intersection(some)), len(limited.get(batch, ())) * sizes.get(batch, 0.0))
            for batch, some in counts.items()
        },
    )


def _pairs(state: State, counts: Sequence[int], own: Sequence[int]) -> list[tuple[int, int]]:
    """Under which constraints chunks count, each with one that they have: the same where they have it, else the first, where both look at
    the same nodes."""
    inclusions = {number: state.topology.counters[number].counted.inclusion for number in (*counts, *own)}
    first = own[0]
    return [
        (counter, counter if counter in own else first)
        for counter in counts
        if counter in own or inclusions[counter] is inclusions[first]
    ]


def _circular(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of which no order has all. In an order that has a pair, all who count under the first may follow the last who has it, since
    they have the second."""
    numbers = sorted({counter for pair in pairs for counter in pair})
    before = np.array([[(first, second) in pairs for second in numbers] for first in numbers], dtype=np.bool_)
    for number in range(len(numbers)):
        before |= np.outer(before[:, number], before[number])
    return {pair for pair in pairs if before[numbers.index(pair[1]), numbers.index(pair[0])]}


def _most_in_any_order(amounts: Floats, skews: Floats) -> float:
    """What is in a domain at most while nothing counts in some other one.

    amounts: by constraint under which chunks count, and by one that they have. Of those under a constraint there are maxSkew when its
    last pod has come, and all may follow whose own last pod comes later. Of many constraints, as if each two were in the order that is
    best for them.
    """
    every, alone = amounts.sum(axis=1), amounts.diagonal()
    if len(amounts) > _FEW_CONSTRAINTS:
        return float(skews.sum() + np.maximum(amounts, amounts.T).sum() / 2 - alone.sum() / 2)
    best = [0.0]
    """By set of constraints, as bits: where these are the last ones."""
    for chosen in range(1, 1 << len(amounts)):
        members = [number for number in range(len(amounts)) if chosen >> number & 1]
        most = np.minimum(skews + amounts[:, members].sum(axis=1) - alone, every)
        best.append(max(best[chosen ^ 1 << first] + float(most[first]) for first in members))
    return best[-1]


def _sizes(state: State, placed: Mapping[Batch, int], own: Iterable[Batch]) -> dict[Batch, float]:
    """The size of one pod of each batch, as a part of the median size and at most 1. If all counted as equals, the smallest would be
    in dear domains."""
    total = np.maximum(sum(batch.needs.request * float(count) for batch, count in placed.items()), 1.0)
    total[state.columns.names.index(PODS)] = np.inf
    sizes = {batch: float((batch.needs.request / total).sum()) for batch in own}
    middle = float(np.median(np.repeat(list(sizes.values()), [placed[batch] for batch in sizes])))
    return {batch: min(1.0, size / middle) if middle else 1.0 for batch, size in sizes.items()}


def _counted(
    state: State, counters: Sequence[int], domains: Sequence[Domain], entries: Sequence[JournalEntry]
) -> tuple[int, ...]:
    """By domain, how many pods count in all of these counters together, without the chunks of these entries."""
    topology = state.topology
    rows = [topology.counters[counter].row for counter in counters]
    here = np.append(topology.labels.table[rows].sum(axis=0), 0)  # the last for chunks that count nowhere: column -1
    for entry in entries:
        for counter in set(counters).intersection(topology.counts_of(entry.batch.needs)):
            here[state.column(counter, entry.bin, entry.template)] -= entry.count
    key = topology.counters[counters[0]].counted.key
    return tuple(int(here[topology.column_of(key, domain)]) for domain in domains)


def _is_worth_it(state: State, offers: PoolOffers, key: str) -> bool:
    """Chunks are up to five item types each, which takes up to five times as long."""
    few = state.planned.count <= FEW_NODES and key in offers.offerings.table.keys
    return few or _differ_in_price(offers, key)


def _differ_in_price(offers: PoolOffers, key: str) -> bool:
    """Whether a label that every row decides is all that two prices of a type may differ by."""
    table = offers.offerings.table
    if key not in table.keys:
        return False
    rows = np.flatnonzero(offers.rows & offers.priced)
    if not all(isinstance(cell, str) for cell in table.seen(key, rows)):
        return False
    codes, cells = table.column(key)
    least = np.array([offers.least_prices(rows[codes[rows] == code]) for code in range(len(cells))])
    return bool((np.where(least < PLENTY, least, 0).max(axis=0) > least.min(axis=0)).any())
