"""Whether spread constraints hold for everything placed.

A demand placed later may add a node in a domain that had none, and that domain is then the emptiest. Chunks that count but
bring no such rule themselves may come at any time. They may come after the chunks under the rule, or fill the emptiest domain
before them. So some order exists if the other chunks alone end within maxSkew of the minimum, in every domain they use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Domain
from reconciler.placement.constraints.topology_spread import SpreadRule, spread_of
from reconciler.placement.engine.state import Saved, State

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
