"""Chunks over topology domains (zones and the like): which share each domain gets. Used by pack.

Shares are first reckoned as if every domain had room, then tried; a domain that takes less than its share is capped at what
it takes and the shares are reckoned again, so that the skew is right for what is placed in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint_set import ConstraintSet
from reconciler.placement.constraints.topology_counters import AffinityRule, AntiAffinityRule, Domain, Rule, SpreadRule
from reconciler.placement.engine.domain_prices import Cost, DomainPrices
from reconciler.placement.engine.host_caps import allowed_on
from reconciler.placement.engine.state import State
from reconciler.placement.offers.pool_offers import NoRows
from reconciler.placement.requirements import ABSENT, ANYWHERE, Requirements, Values, one_of

MOST_COMBINATIONS = 512
Fill = Callable[[Requirements, int, bool], int]
"""Places a number of chunks where the requirements say; the flag: new nodes may be made."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One value (None: without the label) for each deciding label; where: as requirements."""

    values: tuple[tuple[str, str | None], ...]
    makeable: bool
    where: Requirements = field(default=ANYWHERE, compare=False)
    by_key: Mapping[str, str | None] = field(default_factory=dict, compare=False)

    def value(self, key: str) -> str | None:
        return self.by_key[key]


def combination(values: tuple[tuple[str, str | None], ...], *, makeable: bool) -> Combination:
    where = Requirements.joined((key, ABSENT if value is None else one_of(value)) for key, value in values)
    return Combination(values, makeable, where, dict(values))


class Shares:
    """The rules on labels other than the hostname, reckoned with chunks that are placed in thought only."""

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
        """Where a chunk may go, if nothing else is made."""
        found = list(self._combinations)
        for number, rule in enumerate(self._rules):
            counts, valued = self._counts[number], [(item, item.by_key[rule.key]) for item in found]
            if isinstance(rule, AntiAffinityRule):
                found = [item for item, value in valued if value is None or not counts.get(value)]
            elif isinstance(rule, AffinityRule):
                found = [item for item, value in valued if value is not None and counts.get(value)]
            else:
                found = [
                    item
                    for item, value in valued
                    if value is not None
                    if counts.get(value, 0) + rule.counts_itself <= self._bound_with(number, rule, item, value)
                ]
        return found

    def allowed(self, closed: Mapping[Combination, int], *, in_any_order: bool = False) -> list[Combination]:
        """Where one more chunk may go, if a node comes up wherever one can be made. closed: combinations where none can be, each
        with 0; in_any_order: whether others that come after it may be what makes it balanced, so that spread is not looked at."""
        bounds = [
            PLENTY
            if in_any_order and isinstance(rule, SpreadRule)
            else self._bound(rule, self._counts[number], self._domains(number, rule, closed))
            for number, rule in enumerate(self._rules)
        ]
        return [item for item in self._combinations if self._load(item, self._counts, bounds) is not None]

    def _bound_with(self, number: int, rule: SpreadRule, combination: Combination, value: str) -> int:
        """With a chunk there, and with no other domain than those that are there already."""
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
        """What each spread rule looks at: domains that are there, and those where a node can be made."""
        return {
            rule: self._domains(number, rule, closed)
            for number, rule in enumerate(self._rules)
            if isinstance(rule, SpreadRule)
        }

    def reckon(self, count: int, caps: Mapping[Combination, int]) -> dict[Combination, int]:
        """The share of each combination, chunk by chunk to where fewest count already."""
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
        """Domains that count for the minimum: those that are there, and those where a node can be made (as Karpenter has
        it; kube-scheduler alone would be content with fewer). One where none turned out to be possible does not count."""
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
        least = min((counts.get(domain, 0) for domain in domains), default=0)
        return rule.max_skew + (least if len(domains) >= rule.min_domains else 0)

    def _load(
        self, combination: Combination, counts: Sequence[Mapping[Domain, int]], bounds: Sequence[int]
    ) -> int | None:
        """How many count there already, None when some rule allows no more."""
        load = 0
        for number, rule in enumerate(self._rules):
            value = combination.value(rule.key)
            if value is None:
                if not isinstance(rule, AntiAffinityRule):
                    return None
                continue
            counted = counts[number].get(value, 0)
            if allowed_on(rule, counted, bounds[number], first=False) < 1:
                return None
            load += counted
        return load


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
    """Places up to `count` chunks under rules on labels, existing bins before new nodes, and those where they cost least. others: all
    that are placed, of whom some may have to follow them."""
    prices = DomainPrices(state, batch, constraints)
    bootstrapping = state.topology.bootstrapping(constraints.affinity) if constraints.affinity else ()
    if bootstrapping:
        return _first_together(
            state, batch, constraints, bootstrapping, fill, count=count, opening=opening, prices=prices, others=others
        )
    combinations: Sequence[Combination] = combinations_of(state, batch, constraints.keys)
    if opening:
        combinations = prices.cheapest_first(combinations, count)
    if not constraints.shared:
        return _place_freely(state, constraints.on_labels, combinations, fill, count=count, opening=opening)
    return _place_in_shares(state, constraints.on_labels, combinations, fill, count=count, opening=opening)


def _first_together(
    state: State,
    batch: Batch,
    constraints: ConstraintSet,
    bootstrapping: Collection[Rule],
    fill: Fill,
    *,
    count: int,
    opening: bool,
    prices: DomainPrices,
    others: Sequence[Batch],
) -> int:
    """Pods that want each other's company and have none yet: the domain that takes most of them; of equals the one where they and
    those who have to follow cost least, then the first. founding: the rules that say so."""
    together = {rule.key for rule in bootstrapping}
    rules = [rule for rule in constraints.on_labels if rule not in bootstrapping]
    place_others = _place_in_shares if constraints.shared else _place_freely
    groups: dict[tuple[str | None, ...], list[Combination]] = {}
    combinations = combinations_of(state, batch, constraints.keys)
    for combination in combinations:
        values = tuple(combination.value(key) for key in sorted(together))
        if None not in values:
            groups.setdefault(values, []).append(combination)
    all_alike = not opening or not prices.differ(combinations)
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
        state.put_back(saved)
        if placed and score < best[0]:
            best = (score, group)
    return place_others(state, rules, best[1], fill, count=count, opening=opening) if best[1] else 0


def _following(state: State, batch: Batch, constraints: ConstraintSet, others: Sequence[Batch]) -> Amounts | None:
    """What all that must be in the same domain ask for together; None where there is nobody else."""
    wanted = {rule.counter for rule in constraints.affinity}
    found = [item for item in others if wanted & {rule.counter for rule in state.constraints(item).affinity}]
    if all(item.number == batch.number for item in found):
        return None
    return np.asarray(sum(item.needs.request * item.count for item in found), dtype=np.int64)


def _cost_together(
    prices: DomainPrices, group: Sequence[Combination], count: int, following: Amounts | None, extra: int
) -> Cost:
    """extra: what the chunks themselves came to cost."""
    if following is None:
        relaxation, weight, _ = min(prices.cost(item.where, count) for item in group)
        return (relaxation, weight, extra)
    return min(prices.cost_of_all(item.where, following) for item in group)


def _price(state: State) -> int:
    return int(state.planned.price[: state.planned.count].sum())


def _place_in_shares(
    state: State, rules: Sequence[Rule], combinations: Sequence[Combination], fill: Fill, *, count: int, opening: bool
) -> int:
    caps: dict[Combination, int] = {}
    for _ in range(2 * len(combinations) + 2):
        saved = state.save()
        shares = Shares(state, rules, combinations, opening=opening).reckon(count, caps)
        short = False
        for combination, share in sorted(shares.items(), key=lambda item: combinations.index(item[0])):
            placed = fill(combination.where, share, opening)
            if placed < share:
                caps[combination] = placed
                short = True
        if not short:
            placed = sum(shares.values())
            if placed == count or not caps:
                return placed
            # What a domain took was found out while others took more of what all have together, such as a pool's limit.
            return placed + _place_one_by_one(state, rules, combinations, fill, count=count - placed, opening=opening)
        state.put_back(saved)
    return _place_one_by_one(state, rules, combinations, fill, count=count, opening=opening)


def _place_one_by_one(
    state: State, rules: Sequence[Rule], combinations: Sequence[Combination], fill: Fill, *, count: int, opening: bool
) -> int:
    """When domains compete for the same room (a pool's limit), so that shares do not settle: each chunk where it may go."""
    placed, full = 0, dict[Combination, int]()
    while placed < count:
        shares = Shares(state, rules, combinations, opening=opening).reckon(1, full)
        if not shares:
            break
        combination = next(iter(shares))
        if fill(combination.where, 1, opening):
            placed += 1
        else:
            full[combination] = 0
    return placed


def _place_freely(
    state: State, rules: Sequence[Rule], combinations: Sequence[Combination], fill: Fill, *, count: int, opening: bool
) -> int:
    """Rules that the chunks themselves do not change: allowed domains take as many as fit."""
    allowed = Shares(state, rules, combinations, opening=opening).open_now() if rules else combinations
    if not allowed:
        return 0
    placed = 0
    if state.base:
        where = Requirements.joined(
            (key, _all_of({combination.value(key) for combination in allowed})) for key, _ in allowed[0].values
        )
        placed = fill(where, count, False)
    for combination in allowed if opening else ():
        if placed < count:
            placed += fill(combination.where, count - placed, True)
    return placed


def _all_of(values: set[str | None]) -> Values:
    return Values(frozenset(value for value in values if value is not None), absent=None in values)


def combinations_of(state: State, batch: Batch, keys: Sequence[str]) -> list[Combination]:
    """Every combination of values that some bin has or that a node could be made with; worked out once for all that
    ask for the same nodes."""
    needs = batch.needs
    asked = (id(needs.terms), id(needs.relaxations), tuple(keys), batch.opens_nodes)
    known = state.combinations.get(asked)
    if known is None:
        known = state.combinations[asked] = (needs, _combinations(state, batch, keys))
    return known[1]


def _combinations(state: State, batch: Batch, keys: Sequence[str]) -> list[Combination]:
    made = _makeable(state, batch, keys) if batch.opens_nodes else {}
    known = {key: _existing_values(state, batch, key) | made.get(key, set()) for key in keys}
    values = [sorted(known[key], key=lambda value: (value is None, value or "")) for key in keys]
    found = [
        combination(
            tuple(zip(keys, chosen, strict=True)),
            makeable=all(chosen[n] in made.get(key, ()) for n, key in enumerate(keys)),
        )
        for chosen in product(*values)
    ]
    if len(found) > MOST_COMBINATIONS:
        state.topology.assumptions.add(
            f"{batch.demand}: only {MOST_COMBINATIONS} of {len(found)} combinations of topology domains are tried"
        )
    return found[:MOST_COMBINATIONS]


def _existing_values(state: State, batch: Batch, key: str) -> set[str | None]:
    mask = state.bins.usable & state.bins.node_affinity.meeting(batch.needs.terms)
    codes, cells = state.bins.table.column(key)
    seen = {cells[code] for code in np.unique(codes[mask]).tolist()}
    return {cell for cell in seen if not isinstance(cell, tuple)}


def _makeable(state: State, batch: Batch, keys: Sequence[str]) -> dict[str, set[str | None]]:
    made: dict[str, set[str | None]] = {key: set() for key in keys}
    for offers in state.offers:
        for relaxation in batch.needs.relaxations:
            rows = offers.rows_for(relaxation.wanted)
            if isinstance(rows, NoRows) or not rows.any():
                continue
            own = offers.own_labels(relaxation.wanted)
            for key in keys:
                if key in offers.offerings.table.keys:
                    codes, cells = offers.offerings.table.column(key)
                    found = (cells[code] for code in np.unique(codes[rows]).tolist())
                    made[key] |= {cell for cell in found if not isinstance(cell, tuple)}
                else:
                    values = own.get(key)
                    made[key] |= _own_values(values)
    return made


def _own_values(values: Values | None) -> set[str | None]:
    if values is None:
        return {None}
    if values.complement:
        return {values.example()} | ({None} if values.absent else set())
    return set(values.names) | ({None} if values.absent else set())
