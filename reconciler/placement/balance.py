"""Whether spread constraints hold for what has been placed, and what to expect when they come not to. Used by stay and pack.

A demand that is placed later may bring nodes in a domain that nobody else looked at, which is then the emptiest one. Chunks
that count but are under no such rule may come after those that are, and may well raise the emptiest domain before: so there
is an order in which kube-scheduler takes them all when, in each domain that is used, all but those are within maxSkew of the
least that count anywhere in the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.batches import Batch
from reconciler.placement.counters import Domain, Rule, SpreadRule
from reconciler.placement.host_caps import least_on_hosts
from reconciler.placement.kin import Kin
from reconciler.placement.state import Saved, State


class Balance:
    """What counts where, worked out once for as long as nothing more is placed."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._least: dict[SpreadRule, int] = {}
        self._loose: dict[SpreadRule, dict[Domain, int]] = {}
        self._added: dict[int, dict[tuple[int, bool, Domain], int]] | None = None
        self._kin: dict[int, Kin] = {}

    def unbalanced(self, rules: Sequence[Rule], bins: Collection[int], *, hosts: bool) -> list[SpreadRule]:
        """Spread rules that do not hold for the chunks that are under them on these bins. hosts: hostname rules too."""
        judged = [rule for rule in spread_rules(rules) if hosts or rule.key != HOSTNAME_LABEL]
        return [rule for rule in judged if bins and not self.holds(rule, bins)]

    def holds(self, rule: SpreadRule, bins: Collection[int]) -> bool:
        """For chunks that are under it on some bins."""
        used = {self._state.decided(number, rule.key) for number in bins}
        counter = self._state.topology.counters[rule.counter]
        counts = {domain: counter.count(domain) for domain in used if domain is not None}
        if None in used:
            return False
        if max(counts.values()) <= rule.max_skew or max(counts.values()) - self._least_of(rule) <= rule.max_skew:
            return True
        loose = self._loose_of(rule)
        return all(
            count - loose.get(domain, 0) - self._least_of(rule) <= rule.max_skew for domain, count in counts.items()
        )

    def _least_of(self, rule: SpreadRule) -> int:
        if rule not in self._least:
            self._least[rule] = self._least_now(rule)
        return self._least[rule]

    def _least_now(self, rule: SpreadRule) -> int:
        if rule.key == HOSTNAME_LABEL:
            return least_on_hosts(self._state, rule)
        counter = self._state.topology.counters[rule.counter]
        domains = self._state.topology.existing_domains(rule)
        domains = domains | self._state.planned_domains(rule.key, counter.counted.inclusion)
        return min((counter.count(domain) for domain in domains), default=0) if len(domains) >= rule.min_domains else 0

    def _loose_of(self, rule: SpreadRule) -> dict[Domain, int]:
        """What chunks that do not bring this rule themselves add to its counter. Those that bring it for other nodes (by their
        selectors) are not at liberty either to come when it suits."""
        if rule not in self._loose:
            topology = self._state.topology
            counts: dict[Domain, int] = {}
            bring: dict[tuple[int, bool], bool] = {}
            for (kin, chunks_only, domain), count in self._added_to(rule.counter).items():
                if (kin, chunks_only) not in bring:
                    own = topology.own_rules(self._kin[kin].shape, chunks_only=chunks_only)
                    bring[kin, chunks_only] = any(self._is_alike(rule, other) for other in own)
                if not bring[kin, chunks_only]:
                    counts[domain] = counts.get(domain, 0) + count
            self._loose[rule] = counts
        return self._loose[rule]

    def _is_alike(self, one: SpreadRule, other: Rule) -> bool:
        """Whether they differ at most in which nodes they look at, and in whether bound pods count."""
        if one == other:
            return True
        if not isinstance(other, SpreadRule) or one.max_skew != other.max_skew or one.min_domains != other.min_domains:
            return False
        counters = self._state.topology.counters
        mine, theirs = counters[one.counter].counted, counters[other.counter].counted
        return mine.anywhere == theirs.anywhere

    def _added_to(self, counter: int) -> dict[tuple[int, bool, Domain], int]:
        """By kin, whether only chunks count, and domain."""
        if self._added is None:
            self._added = {}
            for put in self._state.puts():
                kin = self._state.topology.kin(put.batch.needs.shape)
                self._kin[kin.number] = kin
                for position, domain in put.touched.labels:
                    by_batch = self._added.setdefault(position, {})
                    key = (kin.number, put.batch.keeps_minimum, domain)
                    by_batch[key] = by_batch.get(key, 0) + put.total
                for position in put.touched.hosts:
                    by_batch = self._added.setdefault(position, {})
                    for number, count in zip(put.bins, put.counts, strict=True):
                        key = (kin.number, put.batch.keeps_minimum, number)
                        by_batch[key] = by_batch.get(key, 0) + count
        return self._added.get(counter, {})


def spread_rules(rules: Iterable[Rule]) -> list[SpreadRule]:
    return [rule for rule in rules if isinstance(rule, SpreadRule)]


def unbalanced(state: State, batch: Batch, rules: Sequence[Rule], *, since: Saved) -> list[SpreadRule]:
    """Spread rules on other labels than the hostname that do not hold for chunks of the batch placed since then."""
    bins = {number for put in state.puts(since) if put.batch.number == batch.number for number in put.bins}
    return Balance(state).unbalanced(rules, bins, hosts=False)


def expect_planned(state: State, rules: Iterable[SpreadRule]) -> None:
    """Makes the domains of the nodes planned now count for these rules from the start, for another attempt."""
    for rule in rules:
        inclusion = state.topology.counters[rule.counter].counted.inclusion
        known = state.topology.expected.setdefault(rule.counter, set())
        if rule.key == HOSTNAME_LABEL:
            known.add(_NEW_HOST)
        else:
            known |= state.planned_domains(rule.key, inclusion)


_NEW_HOST: Domain = -1
"""Stands for a node that will be there, empty at first: numbers of bins begin at 0."""
