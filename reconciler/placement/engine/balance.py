"""Whether spread constraints hold for everything placed, and whether some order of coming leads there.

A demand placed later may add a node in a domain that had none, and that domain is then the emptiest. Chunks that count but
bring no such rule themselves may come at any time. They may come after the chunks under the rule, or fill the emptiest domain
before them. So some order exists if the other chunks alone end within maxSkew of the minimum, in every domain they use. For few chunks
the order itself is looked for. All nodes exist from the start then, as they will for kube-scheduler; a domain counts if a node could be
made in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Domain, TopologyRule
from reconciler.placement.constraints.rule_table import ConstraintSet
from reconciler.placement.constraints.topology_spread import SpreadRule, spread_of
from reconciler.placement.engine.domains import Combination, combinations_of
from reconciler.placement.engine.over_domains import Shares
from reconciler.placement.engine.state import JournalEntry, Saved, State

_Family = tuple[int, int, tuple[object, ...]]
"""maxSkew, minDomains, and what counts, whichever nodes the rule looks at."""
_Kind = tuple[int, bool]
"""Of a batch: its equivalence class, and whether its rules count chunks only."""
_Counts = defaultdict[int, defaultdict[Domain, int]]


class Balance:
    """What counts where. Computed once, and valid until something more is placed."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._least: dict[tuple[int, int], int] = {}
        self._loose: dict[SpreadRule, dict[Domain, int]] = {}
        self._decided: dict[tuple[str, int], Domain | None] = {}
        """By label and bin."""
        self._coming: dict[_Kind, _Counts] | None = None
        """By kind of chunk and counter: how many of them count in each domain."""
        self._families: dict[_Family, int] = {}
        self._brought: dict[_Kind, set[int]] = {}
        """The families (see `_family`) of the rules that shapes bring."""

    def unbalanced(self, rules: Sequence[SpreadRule], bins: Collection[int], *, hosts: bool) -> list[SpreadRule]:
        """The rules that do not hold for the chunks on these bins that are under them. hosts: judge hostname rules too."""
        judged = [rule for rule in rules if hosts or rule.key != HOSTNAME_LABEL]
        return [rule for rule in judged if bins and not self.holds(rule, bins)]

    def holds(self, rule: SpreadRule, bins: Collection[int]) -> bool:
        """Whether the rule holds for the chunks on these bins that are under it."""
        used = self._domains_of(rule.key, bins)
        if None in used:
            return False
        counter = self._state.topology.counters[rule.counter]
        counts = counter.counts_in([domain for domain in used if domain is not None])
        most = max(counts.values())
        if most <= rule.bound(0) or most <= (bound := rule.bound(self._least_of(rule))):
            return True
        loose = self._loose_of(rule)
        return all(count - loose.get(domain, 0) <= bound for domain, count in counts.items())

    def _domains_of(self, key: str, bins: Collection[int]) -> set[Domain | None]:
        known, state = self._decided, self._state
        for number in bins:
            if (key, number) not in known:
                known[key, number] = state.decided(number, key)
        return {known[key, number] for number in bins}

    def _least_of(self, rule: SpreadRule) -> int:
        key = (rule.counter, rule.min_domains)
        if key not in self._least:
            self._least[key] = self._state.least_of(rule)
        return self._least[key]

    def _loose_of(self, rule: SpreadRule) -> dict[Domain, int]:
        """What chunks that do not bring this rule add to its counter.

        Chunks that bring the rule with another node selector are left out: they cannot come at any time either."""
        if rule not in self._loose:
            family = self._family(rule)
            counts: dict[Domain, int] = {}
            for kind, coming in self._coming_by_kind().items():
                if family not in self._brought[kind] and rule.counter in coming:
                    for domain, count in coming[rule.counter].items():
                        counts[domain] = counts.get(domain, 0) + count
            self._loose[rule] = counts
        return self._loose[rule]

    def _family(self, rule: SpreadRule) -> int:
        """One number for all rules that differ only in the nodes they look at, or in whether bound pods count."""
        counted = self._state.topology.counters[rule.counter].counted
        family = (rule.max_skew, rule.min_domains, counted.anywhere)
        return self._families.setdefault(family, len(self._families))

    def _coming_by_kind(self) -> dict[_Kind, _Counts]:
        if self._coming is None:
            self._coming = {}
            for entry in self._state.entries():
                labels, hosts = entry.counted_in.labels, entry.counted_in.hosts
                if not labels and not hosts:
                    continue
                kind = self._kind(entry.batch)
                counts = self._coming.get(kind)
                if counts is None:
                    counts = self._coming[kind] = defaultdict(lambda: defaultdict(int))
                for position, domain in labels:
                    counts[position][domain] += entry.count
                host = self._state.decided(entry.bin, HOSTNAME_LABEL) if hosts else None
                for position in hosts:
                    assert host is not None
                    counts[position][host] += entry.count
        return self._coming

    def _kind(self, batch: Batch) -> _Kind:
        kind = (batch.needs.equivalence_class, batch.keeps_minimum)
        if kind not in self._brought:
            rules = self._state.topology.own_rules(batch.needs, chunks_only=batch.keeps_minimum)
            self._brought[kind] = {self._family(rule) for rule in spread_of(rules)}
        return kind


def unbalanced(state: State, batch: Batch, rules: Sequence[SpreadRule], *, since: Saved) -> list[SpreadRule]:
    """Spread rules on labels other than the hostname that do not hold for chunks of the batch placed since `since`."""
    bins = {entry.bin for entry in state.entries(since) if entry.batch.number == batch.number}
    return Balance(state).unbalanced(rules, bins, hosts=False)


def expect_planned(state: State, rules: Iterable[SpreadRule]) -> None:
    """Lets the domains of the nodes planned now count for these rules from the start of the next attempt."""
    for rule in rules:
        inclusion = state.topology.counters[rule.counter].counted.inclusion
        known = state.topology.expected.setdefault(rule.counter, set())
        if rule.key == HOSTNAME_LABEL:
            known.add(_NEW_HOST)
        else:
            known |= state.planned.domains(rule.key, inclusion)


_NEW_HOST: Domain = -1
"""Stands for a node that will exist, empty at first. Bins are numbered from 0, so no bin has this number."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """What interchangeable chunks have in common. counted: the counters and domains in which one counts. under: its spread
    rules, each with the domain that the chunk goes to."""

    counted: tuple[tuple[int, Domain], ...]
    under: tuple[tuple[SpreadRule, Domain | None], ...]


def can_come_one_by_one(
    state: State,
    entries: Sequence[JournalEntry],
    constraint_sets: Mapping[int, ConstraintSet],
    closed: Mapping[int, Mapping[Combination, int]],
) -> bool:
    """Whether placed chunks can be scheduled one by one, each where topology spread allows it at that moment.

    Only for few chunks, since the work grows with the number of subsets of them.

    entries: the journal's, for the chunks in question. constraint_sets: rules by batch number. closed: by batch number, where no
    node can be made for it (see `closed_to`).
    """
    arrivals: list[_Arrival] = []
    domains: dict[TopologyRule, set[Domain]] = {}
    for entry in entries:
        constraints = constraint_sets[entry.batch.number]
        spread = [rule for rule in constraints.spread if rule.key != HOSTNAME_LABEL]
        under = tuple((rule, state.decided(entry.bin, rule.key)) for rule in spread)
        arrivals += [_Arrival(entry.counted_in.labels, under)] * entry.count
        if spread and not domains.keys() >= set(spread):
            combinations = combinations_of(state, entry.batch, constraints.keys)
            shares = Shares(state, spread, combinations, opening=entry.batch.opens_nodes)
            domains |= shares.domains_of(closed[entry.batch.number])
    return _Order(state, arrivals, domains).exists()


class _Order:
    def __init__(self, state: State, arrivals: Sequence[_Arrival], domains: Mapping[TopologyRule, set[Domain]]) -> None:
        self._arrivals = list(dict.fromkeys(arrivals))
        self._wanted = tuple(arrivals.count(arrival) for arrival in self._arrivals)
        self._domains = domains
        self._before: dict[tuple[int, Domain], int] = {}
        for rule, seen in domains.items():
            for domain in seen:
                self._before[rule.counter, domain] = state.topology.counters[rule.counter].count(domain)
        for arrival in arrivals:
            for position in arrival.counted:
                if position in self._before:
                    self._before[position] -= 1
        self._seen: set[tuple[int, ...]] = set()

    def exists(self) -> bool:
        return self._follows((0,) * len(self._arrivals))

    def _follows(self, here: tuple[int, ...]) -> bool:
        """Whether the remaining chunks can come once this many of each kind have."""
        if here == self._wanted:
            return True
        self._seen.add(here)
        counts = dict(self._before)
        for arrival, count in zip(self._arrivals, here, strict=True):
            for position in arrival.counted:
                if position in counts:
                    counts[position] += count
        for number, arrival in enumerate(self._arrivals):
            following = (*here[:number], here[number] + 1, *here[number + 1 :])
            fresh = here[number] < self._wanted[number] and following not in self._seen
            if fresh and self._may_come(arrival, counts) and self._follows(following):
                return True
        return False

    def _may_come(self, arrival: _Arrival, counts: Mapping[tuple[int, Domain], int]) -> bool:
        for rule, domain in arrival.under:
            seen = self._domains[rule]
            if domain not in seen:
                return False
            least = rule.least((counts[rule.counter, item] for item in seen), len(seen))
            if not rule.allowed(counts[rule.counter, domain], rule.bound(least)):
                return False
        return True
