"""Every way to place a few chunks, and the best of them.

The rest of the engine chooses by heuristics. Here every destination of a chunk is listed: existing bins, planned nodes, and new nodes by
domain. The search goes depth first, one chunk at a time, in any order, to any destination. A partial way is dropped as soon as it cannot
beat the best known. The work is bounded by a number of ways, not by time, so that equal input gives an equal answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from reconciler.placement.arrays import Fractions
from reconciler.placement.batches import Batch, RelaxationStep
from reconciler.placement.constraints.domain_counters import TopologyRule
from reconciler.placement.engine.domains import NOWHERE, Combination, combinations_of, cost_of
from reconciler.placement.engine.fill import Task, existing_fits, host_caps
from reconciler.placement.engine.open import (
    SizeOptions,
    empty_node,
    growable,
    most_with_minimums,
    size_options_of,
)
from reconciler.placement.engine.over_domains import Shares
from reconciler.placement.engine.pack import Packer
from reconciler.placement.engine.state import State
from reconciler.placement.offers.node_templates import NodeTemplate


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one chunk may go.

    bin: number of an existing or planned bin; one past the last stands for a new node.
    extra: added price, in billionths of a USD an hour.
    template: a planned or new node's from then on.
    """

    batch: Batch
    bin: int
    extra: int
    template: NodeTemplate | None = None

    def take(self, state: State) -> None:
        """Places one chunk."""
        if self.template is None:
            state.add_existing(self.batch, self.bin, 1)
        else:
            state.add_planned(self.batch, self.template, self.bin - state.base, 1)


def destinations_of(
    state: State, batch: Batch, *, closed: Mapping[Combination, int], opening: bool
) -> list[Destination]:
    """The destinations of one chunk in the present state: existing bins first, in their order of preference.

    closed: see `Shares.allowed`. opening: whether new nodes are among them."""
    constraints, wheres = state.constraints(batch), [item.where for item in _domains(state, batch, closed)]
    if not wheres:
        return []
    single = bool(state.topology.bootstrapping(constraints.host_affinity))
    task = Task(batch, wheres, constraints, bare=bool(state.planned.count), single=single)
    found = list(_existing(state, task))
    for relaxation in batch.needs.relaxations if batch.opens_nodes else ():
        new = [*_planned(state, task, relaxation)]
        new += _new(state, task, relaxation) if opening else ()
        if new:
            return found + new
    return found


def closed_to(state: State, batch: Batch) -> dict[Combination, int]:
    """Combinations of topology domains that some NodePool offers, but where no new node takes a chunk of this batch now.

    Taints, sizes or limits are in the way. The values are 0, the number of chunks that each takes."""
    constraints = state.constraints(batch)
    if not constraints.spread or not constraints.keys:
        return {}
    makeable = [item for item in combinations_of(state, batch) if item.makeable]
    return {item: 0 for item in makeable if cost_of(state, batch, item.where, 1) == NOWHERE}


def _domains(state: State, batch: Batch, closed: Mapping[Combination, int]) -> list[Combination]:
    """Where rules on labels other than the hostname allow a chunk."""
    constraints, combinations = state.constraints(batch), combinations_of(state, batch)
    judged: Sequence[TopologyRule] = constraints.on_labels
    bootstrapping = state.topology.bootstrapping(constraints.affinity)
    if bootstrapping:
        together = {rule.key for rule in bootstrapping}
        judged = [rule for rule in judged if rule not in bootstrapping]
        combinations = [item for item in combinations if None not in {item.by_key[key] for key in together}]
    shares = Shares(state, judged, combinations, opening=batch.opens_nodes)
    return shares.allowed(closed) if judged else combinations


def _existing(state: State, task: Task) -> Iterator[Destination]:
    able = np.flatnonzero(existing_fits(state, task))
    order = able[np.lexsort((able, state.fullness[able], state.bins.rank[able]))]
    return (Destination(task.batch, number, 0) for number in order.tolist())


def _planned(state: State, task: Task, relaxation: RelaxationStep) -> Iterator[Destination]:
    planned, batch = state.planned, task.batch
    if not planned.count:
        return
    numbers = np.arange(state.base, state.base + planned.count)
    most = host_caps(state, task, numbers)
    if batch.needs.shape.host_ports:
        most = np.minimum(most, state.ports.most(batch, numbers))
    taken = planned.loads[batch.counted]
    for where in task.wheres:
        joined = state.compatibilities.get(batch.needs, relaxation, where).joined()
        for index in range(planned.count):
            number = int(joined[planned.template[index]])
            if number < 0 or most[index] < 1:
                continue
            template = growable(state, index, state.templates.list[number])
            free = template.room - taken[index]
            able = (free >= batch.needs.request).all(axis=1) & (template.room >= planned.used[index]).all(axis=1)
            if able.any() and most_with_minimums(state, template, index, batch, 1):
                extra = int(template.type_prices[able.argmax()] - planned.price[index])
                yield Destination(batch, state.base + index, extra, template=template)


def _new(state: State, task: Task, relaxation: RelaxationStep) -> Iterator[Destination]:
    """New nodes: in each domain the cheapest type of each pool, among the heaviest pools that can make a node."""
    for where in task.wheres:
        placed = Task(task.batch, (where,), task.constraints, bare=True, single=task.single)
        for pools in state.weights:
            options = size_options_of(state, placed, relaxation, pools)
            found = _cheapest_of_pools(state, task.batch, options)
            yield from found
            if found:
                break


def _cheapest_of_pools(state: State, batch: Batch, options: SizeOptions) -> list[Destination]:
    cheapest: dict[int, Destination] = {}
    for place in np.flatnonzero(options.chunks).tolist():
        pool, price = int(state.templates.pool_of[options.types[place]]), int(options.prices[place])
        known = cheapest.get(pool)
        if known is not None and known.extra <= price:
            continue
        template = empty_node(state, pool, options.compatibility)
        if most_with_minimums(state, template, state.planned.count, batch, 1):
            number = state.base + state.planned.count
            cheapest[pool] = Destination(batch, number, price, template)
    return list(cheapest.values())


MOST_WAYS = 1500
"""The most partial ways to try. Each takes about a millisecond."""
MOST_WAYS_OF_TRIALS = 300
"""For trials, of which a pass makes several and most come to nothing."""


@dataclass(frozen=True, slots=True, order=True)
class Score:
    """Compared field by field, less is better. missing: chunks without a place by rank, the highest rank first. price: of new
    nodes, in billionths of a USD an hour. nodes: the number of new ones."""

    missing: tuple[int, ...]
    price: int
    nodes: int


def score_of(state: State, batches: Sequence[Batch], missing: Mapping[int, int]) -> Score:
    by_rank = dict.fromkeys(sorted({batch.rank for batch in batches}), 0)
    for batch in batches:
        by_rank[batch.rank] += missing.get(batch.number, 0)
    return Score(tuple(by_rank.values()), state.planned.total_price, state.planned.count)


class Search:
    """All ways to place a few chunks into a state. better_than: the answer to beat. missing: chunks that the best way leaves
    without a place."""

    def __init__(
        self, state: State, packer: Packer, batches: Sequence[Batch], *, better_than: Score, most_ways: int = MOST_WAYS
    ) -> None:
        self.missing: dict[int, int] = {}
        self._state = state
        self._packer = packer
        self._most_ways = most_ways
        self._batches = batches
        self._by_number = {batch.number: batch for batch in batches}
        self._best = better_than
        self._best_steps: list[Destination] | None = None
        self._steps: list[Destination] = []
        self._closed = {batch.number: closed_to(state, batch) for batch in batches}
        self._takes_turns = bool(state.limited) and len(state.weights) > 1
        """Whether a chunk may find a heavier NodePool at its limit because another chunk came first."""
        self._over_hosts = [rule for batch in batches for rule in state.constraints(batch).host_spread]
        self._class_of = self._classes_of_batches()
        self._cheapest = min((int(offers.prices.min()) for offers in state.offers if len(offers.prices)), default=0)
        """The price of the cheapest node that can be bought."""
        self._without = dict(packer.unplaced)
        self._fewest = score_of(state, batches, self._without).missing
        self._seen: set[tuple[object, ...]] = set()

    def found(self, left: dict[int, int]) -> bool:
        """Whether there is a better way, which the state has then; otherwise it is left as it was. left: chunks by batch."""
        self._explore(Counter(left))
        for step in self._best_steps or ():
            step.take(self._state)
        return self._best_steps is not None

    def _classes_of_batches(self) -> dict[int, int]:
        """By batch number, the number of the first batch whose chunks no rule tells apart from its own."""
        known: dict[tuple[object, ...], int] = {}
        alike = attrgetter("needs.shape", "pods", "keeps_minimum", "opens_nodes", "rank")
        return {
            batch.number: known.setdefault((alike(batch), None if batch.whole is None else batch.number), batch.number)
            for batch in self._batches
        }

    def _explore(self, left: Counter[int]) -> None:
        saved = self._state.save()
        self._judge(left)
        for step in self._following(left):
            if len(self._seen) >= self._most_ways:
                return
            if self._is_hopeless(left, step.extra):
                continue
            step.take(self._state)
            self._steps.append(step)
            left[step.batch.number] -= 1
            key = self._key()
            if key not in self._seen:
                self._seen.add(key)
                self._explore(left)
            left[step.batch.number] += 1
            self._steps.pop()
            self._state.roll_back(saved)

    def _judge(self, left: Counter[int]) -> None:
        missing = {number: count for number, count in {**self._without, **left}.items() if count}
        outcome = score_of(self._state, self._batches, missing)
        if outcome < self._best and self._is_whole(left) and self._is_balanced():
            self._best, self._best_steps, self.missing = outcome, list(self._steps), missing

    def _is_balanced(self) -> bool:
        """Whether spread holds. Where nodes are made, the minimum over hosts is 0, since another may always come (as in Karpenter)."""
        if self._state.planned.count:
            self._state.expect_planned(self._over_hosts)
        broken = self._packer.broken()
        self._state.topology.expect_nothing()
        return not broken

    def _is_whole(self, left: Counter[int]) -> bool:
        """Whether every demand that is placed as a whole has all of its chunks placed, or none."""
        short = {batch.whole for batch in self._batches if batch.whole is not None and left[batch.number]}
        there = {entry.batch.whole for entry in self._state.entries()}
        return not short & there

    def _following(self, left: Counter[int]) -> list[Destination]:
        """One more chunk of each class, to each destination, the cheapest first."""
        found: list[Destination] = []
        classes = set()
        opening = not self._is_hopeless(left, self._cheapest)
        for number, count in sorted(left.items()):
            if not count or self._class_of[number] in classes:
                continue
            classes.add(self._class_of[number])
            batch = self._by_number[number]
            moves = destinations_of(self._state, batch, closed=self._closed[number], opening=opening)
            found += moves
            if moves and self._is_alone(batch):
                found = moves
                break
        return sorted(found, key=attrgetter("extra"))

    def _is_alone(self, batch: Batch) -> bool:
        """Whether no rule between pods concerns its chunks, so that their turn does not matter."""
        if self._takes_turns:
            return False
        return not self._state.constraints(batch).rules and not self._state.topology.counts_of(batch.needs)

    def _is_hopeless(self, left: Counter[int], extra: int) -> bool:
        if self._best.missing != self._fewest:
            return False
        price = self._state.planned.total_price + extra
        return max(price, least_price(self._state, self._batches, left)) >= self._best.price

    def _key(self) -> tuple[object, ...]:
        """Equal for ways that differ only in order, in the numbers of new nodes, or in which of equal chunks went where."""
        held: dict[int, Counter[int]] = {}
        for step in self._steps:
            held.setdefault(step.bin, Counter())[self._class_of[step.batch.number]] += 1
        first, planned = self._state.base, self._state.planned
        return tuple(
            sorted(
                (number if number < first else -1 - int(planned.template[number - first]), *sorted(counts.items()))
                for number, counts in held.items()
            )
        )


def least_price(state: State, batches: Sequence[Batch], left: Mapping[int, int]) -> int:
    """A lower bound on the price of all new nodes once these chunks have a place: resource by resource, as if chunks could be split.

    left: chunks, by number of a batch."""
    wanted = np.zeros(len(state.columns.names), dtype=np.int64)
    for batch in batches:
        if left.get(batch.number):
            wanted += batch.needs.request * left[batch.number]
    # Chunks that running pods count towards (KeepMinimum) take no room of their own.
    counted_as = next((batch for batch in batches if batch.keeps_minimum), batches[0])
    rates = state.once(("least rates",), lambda: _least_rates(state))
    free = np.maximum(state.resources.free(counted_as), 0)[state.bins.usable].sum(axis=0)
    held = state.planned.loads[counted_as.counted, : state.planned.count].sum(axis=0)
    return int(((held + np.maximum(wanted - free, 0)) * rates).max(initial=0))


def _least_rates(state: State) -> Fractions:
    """By resource, the least price per unit of it among all types."""
    rate = np.full(len(state.columns.names), np.inf)
    for offers in state.offers:
        prices = offers.least_prices(slice(None))
        each = np.where(offers.room > 0, prices[:, None] / np.maximum(offers.room, 1), np.inf)
        rate = np.minimum(rate, each.min(axis=0, initial=np.inf))
    return np.where(np.isinf(rate), 0.0, rate)
