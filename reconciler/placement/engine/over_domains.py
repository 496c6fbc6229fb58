"""Divides chunks among topology domains, such as zones.

Shares are first computed as if every domain had room, and then tried. A domain that takes less than its share is capped at what it
took, and the shares are computed again. So the skew is right in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
                value = chosen.by_key[rule.key]
                if value is not None and rule.counts_itself:
                    counts[number][value] = counts[number].get(value, 0) + 1
        return shares

    def _domains(self, number: int, rule: TopologyRule, caps: Mapping[Combination, int]) -> set[Domain]:
        """Domains that count for the minimum: those that exist, and those where a node can be made.

        Karpenter counts the latter too, while kube-scheduler looks at existing nodes only. A domain where no node turned out to
        be possible does not count."""
        seen = set(self._lasting[number])
        for combination in self._combinations:
            value = combination.by_key[rule.key]
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
            value = combination.by_key[rule.key]
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
"""Places at most this many chunks in these domains; returns how many. The flag: whether new nodes may be made, in the first domain."""
_Rules: TypeAlias = Sequence[TopologyRule]
_Domains: TypeAlias = Sequence[Combination]


@dataclass(frozen=True, slots=True)
class OverDomains:
    """Places chunks of one batch under rules on labels: existing bins first, then new nodes where they cost least.

    opening: whether new nodes may be made. others: all batches; some may have to follow these chunks into their domain."""

    state: State
    batch: Batch
    constraints: ConstraintSet
    fill: Fill
    opening: bool
    others: Sequence[Batch]

    def place(self, count: int) -> int:
        """Places at most `count` chunks; returns how many."""
        state, constraints, shape = self.state, self.constraints, self.batch.needs.shape
        combinations: _Domains = combinations_of(state, self.batch, constraints.keys)
        prices = DomainPrices(state, self.batch, constraints)
        if constraints.affinity and state.topology.nobody_yet(constraints.affinity):
            return self._first_together(combinations, prices, count)
        alike = not (self.opening and combinations[1:]) or not prices.differ(combinations)
        if not alike:
            combinations = prices.cheapest_first(combinations, count)
        joins_all = alike or not (shape.pod_affinity or shape.pod_anti_affinity or shape.topology_spread)
        return self._place(constraints.on_labels, combinations, count, joins_all=joins_all)

    def _first_together(self, combinations: _Domains, prices: DomainPrices, count: int) -> int:
        """The self-affinity bootstrap: pods that must be together and have no domain yet go to the one that takes most of them.

        Among equal domains the cheapest wins, counting the pods that must follow them."""
        state, affinity = self.state, self.constraints.affinity
        together = {rule.key for rule in affinity}
        rules = [rule for rule in self.constraints.on_labels if rule not in affinity]
        groups: dict[tuple[str | None, ...], list[Combination]] = {}
        for combination in combinations:
            values = tuple(combination.by_key[key] for key in sorted(together))
            if None not in values:
                groups.setdefault(values, []).append(combination)
        alike = not self.opening or not prices.differ(combinations)
        following = None if alike else self._following()
        best: tuple[tuple[int, ...], list[Combination]] = ((0,), [])
        for group in groups.values():
            saved, before = state.save(), state.planned.total_price
            placed = self._place(rules, group, count, joins_all=alike)
            if placed == count and alike:
                return placed
            score: tuple[int, ...] = (-placed,)
            if not alike:
                extra = state.planned.total_price - before
                score = (-placed, *_cost_together(prices, group, count, following, extra))
            state.roll_back(saved)
            if placed and score < best[0]:
                best = (score, group)
        return self._place(rules, best[1], count, joins_all=alike) if best[1] else 0

    def _following(self) -> Amounts | None:
        """The requests of all chunks that must share one domain; None where no other batch has to."""
        wanted = {rule.counter for rule in self.constraints.affinity}
        constraints = self.state.constraints
        found = [item for item in self.others if wanted & {rule.counter for rule in constraints(item).affinity}]
        if all(item.number == self.batch.number for item in found):
            return None
        return np.asarray(sum(item.needs.request * item.count for item in found), dtype=np.int64)

    def _place(self, rules: _Rules, combinations: _Domains, count: int, *, joins_all: bool) -> int:
        """joins_all: whether chunks that no rule counts join nodes of dearer domains too."""
        if self.constraints.shared:
            return self._in_shares(rules, combinations, count)
        return self._freely(rules, combinations, count, joins_all=joins_all)

    def _shares(self, rules: _Rules, combinations: _Domains) -> Shares:
        return Shares(self.state, rules, combinations, opening=self.opening)

    def _in_shares(self, rules: _Rules, combinations: _Domains, count: int) -> int:
        caps: dict[Combination, int] = {}
        for _ in range(2 * len(combinations) + 2):
            saved = self.state.save()
            shares = self._shares(rules, combinations).distribute(count, caps)
            short = False
            for combination, share in sorted(shares.items(), key=lambda item: combinations.index(item[0])):
                placed = self.fill((combination.where,), share, self.opening)
                if placed < share:
                    caps[combination] = placed
                    short = True
            if not short:
                placed = sum(shares.values())
                if placed == count or not caps:
                    return placed
                # What a domain took was measured while others used more of what all share, such as a pool's limit.
                return placed + self._one_by_one(rules, combinations, count - placed)
            self.state.roll_back(saved)
        return self._one_by_one(rules, combinations, count)

    def _one_by_one(self, rules: _Rules, combinations: _Domains, count: int) -> int:
        """Places chunk by chunk. Needed where domains compete for the same room (a pool's limit), so that shares never settle."""
        placed, full = 0, dict[Combination, int]()
        while placed < count and (shares := self._shares(rules, combinations).distribute(1, full)):
            (combination,) = shares
            if self.fill((combination.where,), 1, self.opening):
                placed += 1
            else:
                full[combination] = 0
        return placed

    def _freely(self, rules: _Rules, combinations: _Domains, count: int, *, joins_all: bool) -> int:
        """For rules that these chunks do not affect: every allowed domain takes as many as fit.

        Where new nodes cost the same in all domains, chunks join planned nodes of any of them before a new one is made. Otherwise
        chunks with rules leave the room in dearer domains to those that have to go there. Pods without rules come after these, and
        join whatever is left. Where a limit may leave others nothing else, all chunks keep to one domain after the other."""
        allowed = self._shares(rules, combinations).open_now() if rules else combinations
        wheres = [item.where for item in allowed]
        if not self.opening:
            return self.fill(wheres, count, False) if wheres else 0
        placed = self.fill(wheres, count, False) if wheres and self.state.base else 0
        for number in range(len(wheres)):
            if placed < count:
                together = wheres[number:] if joins_all and not self.state.near_limits else wheres[number : number + 1]
                placed += self.fill(together, count - placed, True)
        return placed


def _cost_together(prices: DomainPrices, group: _Domains, count: int, following: Amounts | None, extra: int) -> Cost:
    """extra: what the chunks themselves added to the price."""
    if following is None:
        relaxation, weight, _ = min(prices.cost(item.where, count) for item in group)
        return (relaxation, weight, extra)
    return min(prices.cost_of_all(item.where, following) for item in group)
