"""How many chunks each combination of domains may get under the rules between pods, computed before any of them is placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.placement.amounts import PLENTY
from reconciler.placement.constraints.constraint_set import Rule, allowed_in
from reconciler.placement.constraints.domain_counters import Domain
from reconciler.placement.constraints.inter_pod_affinity import AntiAffinityRule
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.domains.combinations import Combination
from reconciler.placement.engine.state import State


class Shares:
    """The rules on labels other than the hostname, applied to chunks before they are placed."""

    def __init__(
        self, state: State, rules: Sequence[Rule], combinations: Sequence[Combination], *, opening: bool
    ) -> None:
        self._rules = rules
        self._combinations = combinations
        self._counts = [state.topology.counters[rule.counter].counts for rule in rules]
        self._lasting = [self._seen(state, rule) for rule in rules]
        self._opening = opening
        self._lasting_bounds: dict[int, int] = {}

    def open_now(self) -> list[Combination]:
        """Where a chunk may go now, with no new node."""
        found = list(self._combinations)
        for number, rule in enumerate(self._rules):
            found = [item for item in found if self._is_open(number, rule, item)]
        return found

    def _is_open(self, number: int, rule: Rule, combination: Combination) -> bool:
        value = combination.by_key[rule.key]
        if value is None:
            return isinstance(rule, AntiAffinityRule)
        bound = self._bound_with(number, rule, combination, value) if isinstance(rule, SpreadRule) else 0
        return allowed_in(rule, self._counts[number].get(value, 0), bound) > 0

    def allowed(self, closed: Mapping[Combination, int], *, in_any_order: bool = False) -> list[Combination]:
        """Where one more chunk may go, assuming a node everywhere that one can be made.

        closed: combinations where none can be made, each with 0. in_any_order: chunks placed later may restore the balance, so
        spread is not judged yet."""
        bounds = [
            PLENTY
            if in_any_order and isinstance(rule, SpreadRule)
            else self._bound(rule, self._counts[number], self._domains(number, rule, closed))
            for number, rule in enumerate(self._rules)
        ]
        return [item for item in self._combinations if self._load(item, self._counts, bounds) is not None]

    def _bound_with(self, number: int, rule: SpreadRule, combination: Combination, value: str) -> int:
        """The rule's bound with a chunk there, where no domains exist but this one and those of today."""
        domains, counts = self._lasting[number], self._counts[number]
        if self._opening and combination.makeable and value not in domains:
            return self._bound(rule, counts, domains | {value})
        known = self._lasting_bounds.get(number)
        if known is None:
            seen = domains if self._opening else self._domains(number, rule, {})
            known = self._lasting_bounds[number] = self._bound(rule, counts, seen)
        return known

    @staticmethod
    def _seen(state: State, rule: Rule) -> set[Domain]:
        if not isinstance(rule, SpreadRule):
            return set()
        inclusion = state.topology.counters[rule.counter].counted.inclusion
        return state.topology.existing_domains(rule) | state.planned_domains(rule.key, inclusion)

    def domains_of(self, closed: Mapping[Combination, int]) -> dict[SpreadRule, set[Domain]]:
        """By spread rule, the domains it looks at: those that exist, and those where a node can be made."""
        return {
            rule: self._domains(number, rule, closed)
            for number, rule in enumerate(self._rules)
            if isinstance(rule, SpreadRule)
        }

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

    def _domains(self, number: int, rule: Rule, caps: Mapping[Combination, int]) -> set[Domain]:
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
    def _bound(rule: Rule, counts: Mapping[Domain, int], domains: set[Domain]) -> int:
        if not isinstance(rule, SpreadRule):
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
                if not isinstance(rule, AntiAffinityRule):
                    return None
                continue
            counted = counts[number].get(value, 0)
            if allowed_in(rule, counted, bounds[number]) < 1:
                return None
            load += counted
        return load
