"""Divides chunks among topology domains, such as zones.

Shares are first computed as if every domain had room, and then tried. A domain that takes less than its share is capped at what it
took, and the shares are computed again. So the skew is right in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from reconciler.placement.arrays import PLENTY, Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Domain, TopologyRule
from reconciler.placement.constraints.topology import ConstraintSet
from reconciler.placement.engine.domains import Combination, Cost, DomainPrices, combinations_of
from reconciler.placement.engine.state import State
from reconciler.placement.requirements import Requirements


class Shares:
    """The rules on labels other than the hostname, applied to chunks before they are placed."""

    def __init__(
        self, state: State, rules: Sequence[TopologyRule], combinations: Sequence[Combination], *, opening: bool
    ) -> None:
        self._rules = rules
        self._combinations = combinations
        self._counts = [state.topology.counters[rule.counter].by_domain() for rule in rules]
        self._lasting = [state.domains_of(rule) if rule.by_minimum else set() for rule in rules]
        self._opening = opening
        self._lasting_bounds: dict[int, int] = {}

    def open_now(self) -> list[Combination]:
        """Where a chunk may go now, with no new node."""
        found = list(self._combinations)
        for number, rule in enumerate(self._rules):
            found = [item for item in found if self._is_open(number, rule, item)]
        return found

    def _is_open(self, number: int, rule: TopologyRule, combination: Combination) -> bool:
        value = combination.by_key[rule.key]
        if value is None:
            return rule.apart
        bound = self._bound_with(number, rule, combination, value) if rule.by_minimum else 0
        return rule.allowed(self._counts[number].get(value, 0), bound) > 0

    def allowed(self, closed: Mapping[Combination, int]) -> list[Combination]:
        """Where one more chunk may go, assuming a node everywhere that one can be made. closed: where none can be made, each with 0."""
        bounds = [
            self._bound(rule, self._counts[number], self._domains(number, rule, closed))
            for number, rule in enumerate(self._rules)
        ]
        return [item for item in self._combinations if self._load(item, self._counts, bounds) is not None]

    def _bound_with(self, number: int, rule: TopologyRule, combination: Combination, value: str) -> int:
        """The rule's bound with a chunk there, where no domains exist but this one and those of today."""
        domains, counts = self._lasting[number], self._counts[number]
        if self._opening and combination.makeable and value not in domains:
            return self._bound(rule, counts, domains | {value})
        known = self._lasting_bounds.get(number)
        if known is None:
            seen = domains if self._opening else self._domains(number, rule, {})
            known = self._lasting_bounds[number] = self._bound(rule, counts, seen)
        return known

    def distribute(self, count: int, caps: Mapping[Combination, int]) -> dict[Combination, int]:
        """The share of each combination: chunk by chunk, where the fewest count so far."""
        counts = [dict(known) for known in self._counts]
        domains = [self._domains(number, rule, caps) for number, rule in enumerate(self._rules)]
        shares: dict[Combination, int] = {}
        for _ in range(count):
            best: tuple[int, int, Combination] | None = None
            bounds = [self._bound(rule, counts[n], domains[n]) for n, rule in enumerate(self._rules)]
            for order, combination in enumerate(self._combinations):
                if shares.get(combination, 0) >= caps.get(combination, PLENTY):
                    continue
                load = self._load(combination, counts, bounds)
                if load is not None and (best is None or (load, order) < best[:2]):
                    best = (load, order, combination)
            if best is None:
                break
            chosen = best[2]
            shares[chosen] = shares.get(chosen, 0) + 1
            for number, rule in enumerate(self._rules):
                value = chosen.value(rule.key)
                if value is not None and rule.counts_itself:
                    counts[number][value] = counts[number].get(value, 0) + 1
        return shares

    def _domains(self, number: int, rule: TopologyRule, caps: Mapping[Combination, int]) -> set[Domain]:
        """Domains that count for the minimum: those that exist, and those where a node can be made.

        Karpenter counts the latter too, while kube-scheduler looks at existing nodes only. A domain where no node turned out to
        be possible does not count."""
        seen = set(self._lasting[number])
        for combination in self._combinations:
            value = combination.value(rule.key)
            possible = not self._opening or caps.get(combination, PLENTY) > 0
            if value is not None and combination.makeable and possible:
                seen.add(value)
        return seen

    @staticmethod
    def _bound(rule: TopologyRule, counts: Mapping[Domain, int], domains: set[Domain]) -> int:
        if not rule.by_minimum:
            return 0
        return rule.bound(rule.least((counts.get(domain, 0) for domain in domains), len(domains)))

    def _load(
        self, combination: Combination, counts: Sequence[Mapping[Domain, int]], bounds: Sequence[int]
    ) -> int | None:
        """How many pods count there already; None when some rule allows no more."""
        load = 0
        for number, rule in enumerate(self._rules):
            value = combination.value(rule.key)
            if value is None:
                if not rule.apart:
                    return None
                continue
            counted = counts[number].get(value, 0)
            if rule.allowed(counted, bounds[number]) < 1:
                return None
            load += counted
        return load


Fill = Callable[[Sequence[Requirements], int, bool], int]
"""Places up to so many chunks in these domains; returns how many. The flag: whether new nodes may be made, in the first of them."""


def place_over_domains(
    state: State,
    batch: Batch,
    constraints: ConstraintSet,
    fill: Fill,
    *,
    count: int,
    opening: bool,
    others: Sequence[Batch] = (),
) -> int:
    """Places up to `count` chunks under rules on labels: existing bins first, then new nodes where they cost least.

    others: all batches; some may have to follow these chunks into their domain."""
    if constraints.affinity and state.topology.nobody_yet(constraints.affinity):
        return _first_together(state, batch, constraints, fill, count=count, opening=opening, others=others)
    combinations: Sequence[Combination] = combinations_of(state, batch, constraints.keys)
    prices = DomainPrices(state, batch, constraints)
    alike = not (opening and combinations[1:]) or not prices.differ(combinations)
    if not alike:
        combinations = prices.cheapest_first(combinations, count)
    shape = batch.needs.shape
    joins_all = alike or not (shape.pod_affinity or shape.pod_anti_affinity or shape.topology_spread)
    place = _place_in_shares if constraints.shared else partial(_place_freely, joins_all=joins_all)
    return place(state, constraints.on_labels, combinations, fill, count=count, opening=opening)


def _first_together(
    state: State,
    batch: Batch,
    constraints: ConstraintSet,
    fill: Fill,
    *,
    count: int,
    opening: bool,
    others: Sequence[Batch],
) -> int:
    """The self-affinity bootstrap: pods that must be together and have no domain yet go to the one that takes most of them.

    Among equal domains the cheapest wins, counting the pods that must follow them."""
    together = {rule.key for rule in constraints.affinity}
    rules = [rule for rule in constraints.on_labels if rule not in constraints.affinity]
    groups: dict[tuple[str | None, ...], list[Combination]] = {}
    combinations = combinations_of(state, batch, constraints.keys)
    for combination in combinations:
        values = tuple(combination.value(key) for key in sorted(together))
        if None not in values:
            groups.setdefault(values, []).append(combination)
    prices = DomainPrices(state, batch, constraints)
    all_alike = not opening or not prices.differ(combinations)
    place_others = _place_in_shares if constraints.shared else partial(_place_freely, joins_all=all_alike)
    following = None if all_alike else _following(state, batch, constraints, others)
    best: tuple[tuple[int, ...], list[Combination]] = ((0,), [])
    for group in groups.values():
        saved, before = state.save(), _price(state)
        placed = place_others(state, rules, group, fill, count=count, opening=opening)
        if placed == count and all_alike:
            return placed
        score: tuple[int, ...] = (-placed,)
        if not all_alike:
            score = (-placed, *_cost_together(prices, group, count, following, _price(state) - before))
        state.roll_back(saved)
        if placed and score < best[0]:
            best = (score, group)
    return place_others(state, rules, best[1], fill, count=count, opening=opening) if best[1] else 0


def _following(state: State, batch: Batch, constraints: ConstraintSet, others: Sequence[Batch]) -> Amounts | None:
    """The requests of all chunks that must share one domain; None where no other batch has to."""
    wanted = {rule.counter for rule in constraints.affinity}
    found = [item for item in others if wanted & {rule.counter for rule in state.constraints(item).affinity}]
    if all(item.number == batch.number for item in found):
        return None
    return np.asarray(sum(item.needs.request * item.count for item in found), dtype=np.int64)


def _cost_together(
    prices: DomainPrices, group: Sequence[Combination], count: int, following: Amounts | None, extra: int
) -> Cost:
    """extra: what the chunks themselves added to the price."""
    if following is None:
        relaxation, weight, _ = min(prices.cost(item.where, count) for item in group)
        return (relaxation, weight, extra)
    return min(prices.cost_of_all(item.where, following) for item in group)


def _price(state: State) -> int:
    return int(state.planned.price[: state.planned.count].sum())


def _place_in_shares(
    state: State,
    rules: Sequence[TopologyRule],
    combinations: Sequence[Combination],
    fill: Fill,
    *,
    count: int,
    opening: bool,
) -> int:
    caps: dict[Combination, int] = {}
    for _ in range(2 * len(combinations) + 2):
        saved = state.save()
        shares = Shares(state, rules, combinations, opening=opening).distribute(count, caps)
        short = False
        for combination, share in sorted(shares.items(), key=lambda item: combinations.index(item[0])):
            placed = fill((combination.where,), share, opening)
            if placed < share:
                caps[combination] = placed
                short = True
        if not short:
            placed = sum(shares.values())
            if placed == count or not caps:
                return placed
            # What a domain took was measured while others used more of what all share, such as a pool's limit.
            return placed + _place_one_by_one(state, rules, combinations, fill, count=count - placed, opening=opening)
        state.roll_back(saved)
    return _place_one_by_one(state, rules, combinations, fill, count=count, opening=opening)


def _place_one_by_one(
    state: State,
    rules: Sequence[TopologyRule],
    combinations: Sequence[Combination],
    fill: Fill,
    *,
    count: int,
    opening: bool,
) -> int:
    """Places chunk by chunk. Needed where domains compete for the same room (a pool's limit), so that shares never settle."""
    placed, full = 0, dict[Combination, int]()
    while placed < count:
        shares = Shares(state, rules, combinations, opening=opening).distribute(1, full)
        if not shares:
            break
        combination = next(iter(shares))
        if fill((combination.where,), 1, opening):
            placed += 1
        else:
            full[combination] = 0
    return placed


def _place_freely(
    state: State,
    rules: Sequence[TopologyRule],
    combinations: Sequence[Combination],
    fill: Fill,
    *,
    count: int,
    opening: bool,
    joins_all: bool,
) -> int:
    """For rules that these chunks do not affect: every allowed domain takes as many as fit.

    Where new nodes cost the same in all domains, chunks join planned nodes of any of them before a new one is made. Otherwise
    chunks with rules leave the room in dearer domains to those that have to go there. Pods without rules come after these, and
    join whatever is left. Where a limit may leave others nothing else, all chunks keep to one domain after the other.

    joins_all: whether chunks join nodes of dearer domains too."""
    allowed = Shares(state, rules, combinations, opening=opening).open_now() if rules else combinations
    wheres = [item.where for item in allowed]
    if not wheres:
        return 0
    if not opening:
        return fill(wheres, count, False)
    placed = fill(wheres, count, False) if state.base else 0
    for number in range(len(wheres)):
        if placed < count:
            together = wheres[number:] if joins_all and not state.near_limits else wheres[number : number + 1]
            placed += fill(together, count - placed, True)
    return placed
