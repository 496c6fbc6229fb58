"""Which spread constraint or inter-pod (anti-)affinity keeps chunks off a node, with the counts that decide it.

The plugins' files in `constraints/` have the words. Here is found how things stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Counter, Domain, RuleStanding, TopologyRule
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
    words = (rule.words(_standing(state, rule, number)) for rule in found)
    return "ruled out by " + ", and by ".join(sorted(set(words)))


def _once(state: State, rules: Sequence[TopologyRule]) -> list[TopologyRule]:
    """Leaves out the anti-affinity of other pods where the chunk has the same one itself."""
    counted = {rule: state.topology.counters[rule.counter].counted for rule in rules}
    own = {(item.key, item.selections) for item in counted.values() if not item.owners}
    return [rule for rule, item in counted.items() if not (item.owners and (item.key, item.selections) in own)]


def _rules_out(state: State, batch: Batch, rule: TopologyRule, number: int | None) -> bool:
    domains = [state.decided(number, rule.key)] if number is not None else _to_be_made(state, batch, rule.key)
    return all(_keeps_off(state, batch, rule, domain) for domain in domains)


def _to_be_made(state: State, batch: Batch, key: str) -> list[Domain | None]:
    if key == HOSTNAME_LABEL:
        return [_NEW]
    combinations = combinations_of(state, batch, state.constraints(batch).keys)
    return sorted({item.value(key) for item in combinations if item.makeable}, key=str) or [None]


def _keeps_off(state: State, batch: Batch, rule: TopologyRule, domain: Domain | None) -> bool:
    if domain is None:
        return not rule.apart
    constraints = state.constraints(batch)
    affinity = constraints.host_affinity if rule.key == HOSTNAME_LABEL else constraints.affinity
    if rule in state.topology.bootstrapping(affinity):
        return False
    return not rule.allowed(state.topology.counters[rule.counter].count(domain), state.bound_of(rule))


def _standing(state: State, rule: TopologyRule, number: int | None) -> RuleStanding:
    counter = state.topology.counters[rule.counter]
    counted = counter.counted
    domains = _domains(state, rule) if rule.by_minimum else set()
    there = _counts(state, counter, _taken(counter))
    domain = None if number is None else state.decided(number, rule.key)
    return RuleStanding(
        whom=listed(sorted({selector_words(item) for part in counted.selections for item in part.selectors})),
        there=there,
        lacks_label=number is not None and domain is None,
        here=there if number is None else "" if domain is None else _counts(state, counter, [domain]),
        domains=len(domains),
        seen=_counts(state, counter, domains, also=number),
        of_others=counted.owners,
    )


def _domains(state: State, rule: TopologyRule) -> set[Domain]:
    if rule.key != HOSTNAME_LABEL:
        return state.domains_of(rule)
    planned = state.planned.hosts(state.topology.counters[rule.counter].counted.inclusion) + state.base
    return state.topology.existing_domains(rule) | set(planned.tolist())


def _taken(counter: Counter) -> list[Domain]:
    """Domains with at least one pod that counts."""
    if counter.on_hosts:
        found: list[Domain] = counter.counts.table[counter.row].nonzero()[0].tolist()
        return found
    return [domain for domain, count in counter.by_domain().items() if count]


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
