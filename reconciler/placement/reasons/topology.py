"""Which spread constraint or inter-pod (anti-)affinity keeps chunks off a node, with the counts that decide it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Counter, Domain
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule, AntiAffinityRule
from reconciler.placement.constraints.rule_table import Rule, allowed_in
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.domains import combinations_of
from reconciler.placement.engine.state import State
from reconciler.placement.phrases import listed, selector_words

_NEW = -1
"""The hostname domain of a node to be made. No pod counts there yet."""


def topology_words(state: State, batch: Batch, number: int | None = None) -> str:
    """The rules that keep chunks off a bin, or with number None off all nodes that could be made.

    They are the rules that each do so alone, or all rules where only their combination does.
    """
    rules = state.constraints(batch).rules
    if not rules:
        return "no more than is there may be placed on one node"
    judged = {rule: _rules_out(state, batch, rule, number) for rule in rules}
    found = _once(state, [rule for rule in rules if judged[rule]] or list(rules))
    words = (_rule_words(state, rule, number) for rule in found)
    return "ruled out by " + ", and by ".join(sorted(set(words)))


def _once(state: State, rules: Sequence[Rule]) -> list[Rule]:
    """Leaves out the anti-affinity of other pods where the chunk has the same one itself."""
    counted = {rule: state.topology.counters[rule.counter].counted for rule in rules}
    own = {(item.key, item.selections) for item in counted.values() if not item.owners}
    return [
        rule
        for rule, item in counted.items()
        if not (isinstance(rule, AntiAffinityRule) and item.owners and (item.key, item.selections) in own)
    ]


def _rules_out(state: State, batch: Batch, rule: Rule, number: int | None) -> bool:
    domains = [state.decided(number, rule.key)] if number is not None else _to_be_made(state, batch, rule.key)
    return all(_keeps_off(state, batch, rule, domain) for domain in domains)


def _to_be_made(state: State, batch: Batch, key: str) -> list[Domain | None]:
    if key == HOSTNAME_LABEL:
        return [_NEW]
    combinations = combinations_of(state, batch, state.constraints(batch).keys)
    return sorted({item.value(key) for item in combinations if item.makeable}, key=str) or [None]


def _keeps_off(state: State, batch: Batch, rule: Rule, domain: Domain | None) -> bool:
    if domain is None:
        return not isinstance(rule, AntiAffinityRule)
    counted = state.topology.counters[rule.counter].count(domain)
    if isinstance(rule, AntiAffinityRule):
        return counted > 0
    if isinstance(rule, AffinityRule):
        constraints = state.constraints(batch)
        affinity = constraints.host_affinity if rule.key == HOSTNAME_LABEL else constraints.affinity
        return not counted and rule not in state.topology.bootstrapping(affinity)
    return not allowed_in(rule, counted, rule.bound(_least(state, rule)))


def _least(state: State, rule: SpreadRule) -> int:
    """The least count of any domain that the constraint counts; 0 if there are fewer than minDomains (KEP-3022)."""
    counter, domains = state.topology.counters[rule.counter], _domains(state, rule)
    return rule.least(map(counter.count, domains), len(domains))


def _domains(state: State, rule: SpreadRule) -> set[Domain]:
    inclusion = state.topology.counters[rule.counter].counted.inclusion
    found = state.topology.existing_domains(rule)
    if rule.key == HOSTNAME_LABEL:
        return found | (set(state.planned_hosts(inclusion).tolist()) if state.planned.count else set())
    return found | state.planned_domains(rule.key, inclusion)


def _rule_words(state: State, rule: Rule, number: int | None) -> str:
    counter = state.topology.counters[rule.counter]
    if isinstance(rule, SpreadRule):
        return f"spread over {rule.key} (maxSkew {rule.max_skew}{_spread_words(state, rule, number)})"
    whom = listed(sorted({selector_words(item) for part in counter.counted.selections for item in part.selectors}))
    there = _counts(state, counter, _taken(counter))
    if isinstance(rule, AffinityRule):
        return f"affinity by {rule.key} to {whom}, of which {f'there are {there}' if there else 'there are none'}"
    if number is not None:
        domain = state.decided(number, rule.key)
        there = "" if domain is None else _counts(state, counter, [domain])
    if counter.counted.owners:
        return f"anti-affinity by {rule.key} of pods that keep off {whom}{f': {there}' if there else ''}"
    return f"anti-affinity by {rule.key} to {whom}{f': {there}' if there else ''}"


def _taken(counter: Counter) -> list[Domain]:
    """Domains with at least one pod that counts."""
    if counter.host_row >= 0:
        found: list[Domain] = counter.hosts.table[counter.host_row].nonzero()[0].tolist()
        return found
    return [domain for domain, count in counter.counts.items() if count]


def _spread_words(state: State, rule: SpreadRule, number: int | None) -> str:
    """`; minDomains 5, 3 zones are there`, or the counts of domains, the lowest first."""
    if number is not None and state.decided(number, rule.key) is None:
        return "; it lacks that label"
    domains = _domains(state, rule)
    noun = {ZONE_LABEL: "zone", HOSTNAME_LABEL: "node"}.get(rule.key, "domain")
    if rule.has_enough(len(domains)):
        counts = _counts(state, state.topology.counters[rule.counter], domains, also=number)
        return f"; {counts}" if counts else ""
    if rule.min_domains == 1:  # as if nothing were written
        return f"; no {noun} is there" if rule.key in {ZONE_LABEL, HOSTNAME_LABEL} else "; no node has that label"
    return f"; minDomains {rule.min_domains}, {len(domains)} {noun}{' is' if len(domains) == 1 else 's are'} there"


def _counts(state: State, counter: Counter, domains: Iterable[Domain], *, also: int | None = None) -> str:
    """`0 in zone-b and 1 in zone-a`. With `also`, only the domain with the lowest count and that of the bin `also`."""
    key = counter.counted.key
    found: Sequence[tuple[int, str]] = sorted((counter.count(item), _name(state, key, item)) for item in domains)
    if also is not None and len(found) > 2:  # noqa: PLR2004 - the fewest and this one say it all
        here = state.decided(also, key)
        own = [] if here is None else [(counter.count(here), _name(state, key, here))]
        found = sorted({found[0], *own})
    where = "on" if key == HOSTNAME_LABEL else "in"
    return listed(dict.fromkeys(f"{count} {where} {name}" for count, name in found))


def _name(state: State, key: str, domain: Domain) -> str:
    if key != HOSTNAME_LABEL or not isinstance(domain, int):
        return str(domain)
    return state.bins.origins[domain].name if domain < state.base else "a new node"
