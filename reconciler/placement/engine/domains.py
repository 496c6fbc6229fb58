"""Topology domains that chunks may go to, in combination, in which of them new nodes cost least, and whether spread holds in the end.

Most catalogs sell a type at one price in all zones, at least on demand. Whether prices differ is computed once for all shapes that
ask for the same nodes. Where they do not, the order of the domains and of the pods stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, product

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.arrays import BATCH, BIN, CHUNKS, PLENTY, Amounts, Fractions, Numbers
from reconciler.placement.batches import RANK_OF, Batch, Needs
from reconciler.placement.constraints.domain_counters import Counter
from reconciler.placement.constraints.pod_rules import SpreadRule, spread_of
from reconciler.placement.engine.fill import Task
from reconciler.placement.engine.open import SizeOptions, size_options_of
from reconciler.placement.engine.state import State
from reconciler.placement.requirements import ABSENT, Requirements, Values, one_of, settled

MOST_COMBINATIONS = 512


@dataclass(slots=True, eq=False)
class Combination:
    """One value for each deciding label (None: without the label). makeable: whether new nodes may have them. where: the same as
    requirements. Never changed."""

    by_key: Mapping[str, str | None]
    makeable: bool
    where: Requirements


def combinations_of(state: State, batch: Batch) -> list[Combination]:
    """Every combination of values that some bin has or a new node could have, of the labels that decide where the batch's chunks may go.
    Without any such label there is one, which is everywhere. Computed once for all shapes that ask for the same nodes."""
    needs, keys = batch.needs, state.constraints(batch).keys
    key = ("combinations", id(needs.terms), id(needs.relaxations), keys, batch.opens_nodes)
    return state.once(key, lambda: (needs, _combinations(state, batch, keys)))[1]


def _combinations(state: State, batch: Batch, keys: Sequence[str]) -> list[Combination]:
    made = _makeable(state, batch, keys) if batch.opens_nodes else {}
    known = {key: _existing_values(state, batch, key) | made.get(key, set()) for key in keys}
    values = [sorted(known[key], key=lambda value: (value is None, value or "")) for key in keys]
    found = []
    for chosen in product(*values):
        by_key = dict(zip(keys, chosen, strict=True))
        makeable = all(value in made.get(key, ()) for key, value in by_key.items())
        where = Requirements.joined((key, ABSENT if value is None else one_of(value)) for key, value in by_key.items())
        found.append(Combination(by_key, makeable, where))
    if len(found) > MOST_COMBINATIONS:
        state.topology.assumptions.add(
            f"{batch.demand}: only {MOST_COMBINATIONS} of {len(found)} combinations of topology domains are tried"
        )
    return found[:MOST_COMBINATIONS]


def _existing_values(state: State, batch: Batch, key: str) -> set[str | None]:
    mask = state.bins.usable & state.bins.node_affinity.meeting(batch.needs.terms)
    return set(settled(state.bins.table.seen(key, mask)))


def _makeable(state: State, batch: Batch, keys: Sequence[str]) -> dict[str, set[str | None]]:
    made: dict[str, set[str | None]] = {key: set() for key in keys}
    for offers in state.offers:
        for relaxation in batch.needs.relaxations:
            rows = offers.rows_for(relaxation.wanted)
            if not rows.any():
                continue
            own = offers.own_labels(relaxation.wanted)
            for key in keys:
                if key in offers.offerings.table.keys:
                    made[key] |= settled(offers.offerings.table.seen(key, rows))
                else:
                    made[key] |= _own_values(own.get(key))
    return made


def _own_values(values: Values | None) -> set[str | None]:
    if values is None:
        return {None}
    if values.complement:
        return {values.example()} | ({None} if values.absent else set())
    return set(values.names) | ({None} if values.absent else set())


Cost = tuple[int, int, int]
"""Compared in this order, less is better: relaxation step, rank of the pools by weight, billionths of a USD an hour."""
NOWHERE: Cost = (PLENTY, PLENTY, PLENTY)


def prices_differ(state: State, batch: Batch) -> bool:
    """Whether the price or the availability of any type of new node differs between the domains that the chunks may go to."""
    needs, combinations = batch.needs, combinations_of(state, batch)
    if len(combinations) < 2:  # noqa: PLR2004 - one has nothing to differ from
        return False
    key = ("prices differ", id(needs.relaxations), id(needs.shape.tolerations), id(combinations))
    return state.once(key, lambda: (needs, combinations, _differ(state, needs, combinations)))[2]


def _differ(state: State, needs: Needs, combinations: Sequence[Combination]) -> bool:
    makeable = [item.where for item in combinations if item.makeable]
    for relaxation in needs.relaxations:
        prices = [state.compatibilities.get(needs, relaxation, where).least_prices for where in makeable]
        if any(not np.array_equal(prices[0], other) for other in prices[1:]):
            return True
    return False


def cost_of(state: State, batch: Batch, where: Requirements, count: int) -> Cost:
    """Cost of the cheapest mix of new nodes for `count` chunks, less what the room is worth that they leave."""
    for at, options in _options(state, batch, where):
        price = int(options.mix_prices(count, state.kernel)[count])
        if price < PLENTY:
            return (*at, price)
    return NOWHERE


def cost_together(state: State, batch: Batch, where: Requirements, together: Amounts) -> Cost:
    """Cost of new nodes of one type (at least one) that together have room for these requests."""
    for at, options in _options(state, batch, where):
        able = np.flatnonzero(options.chunks)
        if len(able):
            parts = (together / np.maximum(state.templates.room[options.types[able]], 1)).max(axis=1)
            return (*at, int((options.prices[able] * np.maximum(parts, 1.0)).min()))
    return NOWHERE


def _options(state: State, batch: Batch, where: Requirements) -> Iterator[tuple[tuple[int, int], SizeOptions]]:
    task = Task(batch, (where,), state.constraints(batch), bare=True, single=False)
    for number, relaxation in enumerate(batch.needs.relaxations):
        for weight, pools in enumerate(state.weights):
            yield (number, weight), size_options_of(state, task, relaxation, pools)


_LEAST_GAIN = 1e-9
_WITH_AFFINITY, _COUNTS_ITSELF, _BEFORE_COUNTED, _AFTER_COUNTED, _OTHERS = range(5)


def order_of_spread(state: State, batches: Sequence[Batch]) -> Sequence[Batch]:
    """Pods of equal rank, sorted by their spread constraints where prices differ between domains; of pods whose constraints are equal in
    that, the largest come first. All others keep their order.

    A constraint's selector may not match the pod that brings it. Such a pod may go wherever few pods count so far: to the cheapest
    domain, until the pods arrive that do count. Where two kinds of pods count for each other, whichever comes late finds the cheapest
    domain full. In the opposite order the late ones find the next cheapest domain empty.
    """
    ranks = [list(equals) for _, equals in groupby(batches, key=RANK_OF)]
    orders = (_in_order(state, rank) if all(batch.pods for batch in rank) else rank for rank in ranks)
    return list(chain.from_iterable(orders))


def _in_order(state: State, batches: Sequence[Batch]) -> Sequence[Batch]:
    spread = [batch for batch in batches if batch.opens_nodes and batch.needs.shape.topology_spread]
    under_same = {batch.needs.equivalence_class: batch for batch in spread}
    if not any(_rules(state, batch) and prices_differ(state, batch) for batch in under_same.values()):
        return batches
    under = {batch.number: rules for batch in spread if (rules := _rules(state, batch))}
    spread = [batch for batch in spread if batch.number in under]
    sizes = np.array([batch.needs.request * batch.count for batch in spread], dtype=np.float64)
    shares = (sizes / np.maximum(sizes.sum(axis=0), 1)).sum(axis=1).tolist()
    counters = sorted({rule.counter for rules in under.values() for rule in rules})
    numbers = dict(zip(counters, range(len(counters)), strict=True))
    counted = {
        batch.number: [counter for counter in state.topology.counts_of(batch.needs) if counter in numbers]
        for batch in spread
    }
    pairs = np.zeros((len(counters), len(counters)))
    """By counter in which pods count, and by that of a constraint which they have: their share of requests."""
    for batch, share in zip(spread, shares, strict=True):
        for counter, rule in product(counted[batch.number], under[batch.number]):
            if counter != rule.counter:
                pairs[numbers[counter], numbers[rule.counter]] += share
    order = {counters[number]: turn for turn, number in enumerate(_most_in_order(pairs))}

    def place(batch: Batch) -> tuple[int, int]:
        rules = under.get(batch.number)
        if rules is None:
            shape = batch.needs.shape
            return (_WITH_AFFINITY if shape.pod_affinity or shape.pod_anti_affinity else _OTHERS, 0)
        if any(rule.counts_itself for rule in rules):
            return (_COUNTS_ITSELF, 0)
        last = max((order[counter] for counter in counted[batch.number]), default=-1)
        if last < min(order[rule.counter] for rule in rules):
            return (_BEFORE_COUNTED, last)
        return (_AFTER_COUNTED, -last)

    return sorted(sorted(batches, key=_largest_first), key=place)


def _largest_first(batch: Batch) -> list[int]:
    amounts: list[int] = (-batch.needs.request).tolist()
    return amounts


def _most_in_order(pairs: Fractions) -> list[int]:
    """The numbers in an order in which as much as possible is of pairs whose first comes before their second.

    One number after the other moves to where that is most, until none has a better place."""
    order, paired = list(range(len(pairs))), np.flatnonzero(pairs.any(axis=0) | pairs.any(axis=1)).tolist()
    moved = True
    while moved:
        moved = False
        for number in paired:
            place = order.index(number)
            others = order[:place] + order[place + 1 :]
            gains = np.cumsum([0.0, *(pairs[others, number] - pairs[number, others])])
            best = int(gains.argmax())
            if gains[best] > gains[place] + _LEAST_GAIN:
                order, moved = [*others[:best], number, *others[best:]], True
    return order


def _rules(state: State, batch: Batch) -> list[SpreadRule]:
    return [rule for rule in state.constraints(batch).spread if rule.key != HOSTNAME_LABEL]


_Family = tuple[int, int, int]
"""maxSkew, minDomains, and what counts (see `Counter`). Equal for rules that differ only in the nodes they look at, or in whether bound pods
count."""


class Balance:
    """Whether spread constraints hold for everything placed. Computed once, and valid until something more is placed.

    A demand placed later may add a node in a domain that had none, and that domain is then the emptiest. Chunks that count but
    bring no such rule themselves may come at any time. They may come after the chunks under the rule, or fill the emptiest domain
    before them. So some order exists if the other chunks alone end within maxSkew of the minimum, in every domain they use.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._least: dict[tuple[int, int], int] = {}

    def holds(self, rule: SpreadRule, bins: Numbers) -> bool:
        """Whether the rule holds for the chunks on these bins that are under it."""
        used = self._columns_of(rule.key, bins)
        if used is None:
            return False
        counter = self._state.topology.counters[rule.counter]
        counts = counter.counts.table[counter.row, used]
        most = int(counts.max())
        if most <= rule.bound(0) or most <= (bound := rule.bound(self._least_of(rule))):
            return True
        return bool((counts - self._loose_of(rule, counter)[used] <= bound).all())

    def _columns_of(self, key: str, bins: Numbers) -> Numbers | None:
        """Of the domains in which the bins are, in the table of counts; None where that of one is not decided."""
        state = self._state
        if key == HOSTNAME_LABEL:
            return bins
        planned = bins[bins >= state.base] - state.base
        found = {state.decided(number, key) for number in bins[bins < state.base].tolist()}
        for number in np.unique(state.planned.template[planned]).tolist():
            found.add(state.templates.list[number].decided(key))
        columns = [state.topology.column_of(key, domain) for domain in found if domain is not None]
        return None if None in found else np.array(columns, dtype=np.int64)

    def _least_of(self, rule: SpreadRule) -> int:
        key = (rule.counter, rule.min_domains)
        if key not in self._least:
            self._least[key] = self._state.least_of(rule)
        return self._least[key]

    def _loose_of(self, rule: SpreadRule, counter: Counter) -> Amounts:
        """What chunks that do not bring this rule add to its counter, by column.

        Chunks that bring the rule with another node selector are left out: they cannot come at any time either."""
        family, (rows, kind_of, counted_by, brought) = self._family(rule), self._placed
        is_loose = np.zeros(len(brought), dtype=np.bool_)
        is_loose[[kind for kind in counted_by.get(rule.counter, ()) if family not in brought[kind]]] = True
        rows = rows[is_loose[kind_of]]
        columns = self._state.columns_of(rule.counter, rows)
        there, width = columns >= 0, counter.counts.table.shape[1]
        return np.bincount(columns[there], rows[there, CHUNKS], minlength=width).astype(np.int64)

    def _family(self, rule: SpreadRule) -> _Family:
        return rule.max_skew, rule.min_domains, self._state.topology.counters[rule.counter].alike

    @cached_property
    def _placed(self) -> tuple[Numbers, Numbers, dict[int, list[int]], list[set[_Family]]]:
        """Rows of the journal, the kind of chunks in each, by counter the kinds that count in it, and by kind the families of the rules that
        they bring."""
        state, known = self._state, dict[tuple[int, bool], int]()
        counted_by: dict[int, list[int]] = {}
        brought: list[set[_Family]] = []
        kind_of = []
        for batch in state.batches:
            kind = known.setdefault((batch.needs.equivalence_class, batch.keeps_minimum), len(brought))
            if kind == len(brought):
                rules = state.topology.own_rules(batch.needs, chunks_only=batch.keeps_minimum)
                brought.append({self._family(rule) for rule in spread_of(rules)})
                for counter in state.topology.counts_of(batch.needs):
                    counted_by.setdefault(counter, []).append(kind)
            kind_of.append(kind)
        rows = state.placed()
        return rows, np.array(kind_of, dtype=np.int64)[rows[:, BATCH]], counted_by, brought


def is_balanced(state: State, batch: Batch, rules: Sequence[SpreadRule], *, since: int) -> bool:
    """Whether spread rules on labels other than the hostname hold for chunks of the batch placed since `since`."""
    rows, balance = state.placed(since), Balance(state)
    used = np.unique(rows[rows[:, BATCH] == state.index_of(batch), BIN])
    return not len(used) or all(balance.holds(rule, used) for rule in rules if rule.key != HOSTNAME_LABEL)
