"""Whether spread constraints hold for what has been placed, and what to expect when they come not to. Used by stay and pack.

A demand that is placed later may bring nodes in a domain that nobody else looked at, which is then the emptiest one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.batches import Batch
from reconciler.placement.state import State
from reconciler.placement.topology import Counter, Domain, Rule, SpreadRule


def unbalanced(
    state: State,
    batch: Batch,
    rules: Sequence[Rule],
    batches: Sequence[Batch],
    *,
    since: int = 0,
    hosts: bool = False,
    bins: Collection[int] | None = None,
) -> list[SpreadRule]:
    """Spread rules of the batch that do not hold for its chunks (those logged from `since`). hosts: hostname rules too;
    bins: where its chunks are, if that is known."""
    judged = [rule for rule in rules if isinstance(rule, SpreadRule) and (hosts or rule.key != HOSTNAME_LABEL)]
    if not judged:
        return []
    if bins is None:
        bins = {entry.bin for entry in state.log[since:] if entry.batch == batch.number}
    return [
        rule
        for rule in judged
        if _is_broken(state, rule, {state.decided(number, rule.key) for number in bins}, batches)
    ]


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


def _is_broken(state: State, rule: SpreadRule, used: set[Domain | None], batches: Sequence[Batch]) -> bool:
    """Chunks that count but are under no such rule may come after those that are: then it is enough that the rule holds
    without them."""
    if not used:
        return False
    counter = state.topology.counters[rule.counter]
    if None in used:
        return True
    if rule.key == HOSTNAME_LABEL and max(counter.count(host) for host in used if host is not None) <= rule.max_skew:
        return False  # whatever counts on the other hosts
    domains = _domains(state, rule, counter)
    if _holds(rule, used, domains, {domain: counter.count(domain) for domain in domains | used if domain is not None}):
        return False
    loose = _loose_counts(state, rule, batches)
    counts = {domain: counter.count(domain) - loose.get(domain, 0) for domain in domains | used if domain is not None}
    return not _holds(rule, used, domains, counts)


def _domains(state: State, rule: SpreadRule, counter: Counter) -> set[Domain]:
    inclusion = counter.counted.inclusion
    if rule.key == HOSTNAME_LABEL:
        return state.topology.existing_domains(rule) | set(state.planned_hosts(inclusion).tolist())
    return state.topology.existing_domains(rule) | state.planned_domains(rule.key, inclusion)


def _holds(rule: SpreadRule, used: set[Domain | None], domains: set[Domain], counts: Mapping[Domain, int]) -> bool:
    least = min((counts.get(domain, 0) for domain in domains), default=0) if len(domains) >= rule.min_domains else 0
    return all(domain is not None and counts.get(domain, 0) - least <= rule.max_skew for domain in used)


def _loose_counts(state: State, rule: SpreadRule, batches: Sequence[Batch]) -> dict[Domain, int]:
    """What batches that do not bring this rule themselves add to its counter."""
    loose = {
        batch.number
        for batch in batches
        if rule.counter in state.topology.counts_of(batch.needs.shape)
        and rule not in state.topology.own_rules(batch.needs.shape, chunks_only=batch.keeps_minimum)
    }
    counts: dict[Domain, int] = {}
    for entry in state.log:
        domain = state.decided(entry.bin, rule.key) if entry.batch in loose else None
        if domain is not None:
            counts[domain] = counts.get(domain, 0) + entry.count
    return counts
