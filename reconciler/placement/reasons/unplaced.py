"""Unplaced chunks by demand and group, each with its reasons: causes counted over bins and NodePools, the nearest miss in words.

Reasons are computed for unplaced chunks only, against bins and limits as they are once everything else is placed. If their demand is
placed as a whole, as many of its own chunks as find a place count as placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter

import numpy as np

from reconciler.model.buffers import Fulfilment
from reconciler.model.demand import Demand
from reconciler.model.nodes import HOSTNAME_LABEL, ZONE_LABEL
from reconciler.model.placement import Cause, Unplaced, UnplacedReason
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.provisioning_requests import ATOMIC_CLASS, RequestKind
from reconciler.model.refs import ObjectRef, by_key
from reconciler.placement.batches import Batch, terms_of
from reconciler.placement.constraints.domain_counters import Counter, Domain, TopologyRule
from reconciler.placement.constraints.pod_rules import AffinityRule, SpreadRule
from reconciler.placement.engine.domains import combinations_of
from reconciler.placement.engine.pack import Packer
from reconciler.placement.engine.state import State
from reconciler.placement.offers.pool_offers import usable
from reconciler.placement.phrases import asked_at_once, listed, place_words, selector_words, values_words
from reconciler.placement.problem import Problem
from reconciler.placement.reasons.node_pools import NEAREST, pool_reasons, unused
from reconciler.placement.requirements import Requirements, Values

_AFTER_ALL_OTHERS = -1
_USED_UP = frozenset({Cause.AT_LIMIT, Cause.NODE_FULL})


def unplaced_chunks(
    state: State, problem: Problem, batches: Sequence[Batch], missing: Mapping[int, int]
) -> list[Unplaced]:
    """missing: how many chunks are unplaced, by number of a batch. Within a batch, the chunks of the last members are unplaced."""
    unused_pools = tuple(
        unused(pool) for pool in sorted(problem.node_pools, key=lambda pool: pool.name) if not usable(pool)
    )
    demands = {item.ref: item for item in problem.demands}
    of_wholes = _reasons_of_wholes(state, batches, missing, demands, unused_pools)
    unplaced = []
    for number in sorted(missing):
        batch = batches[number]
        shared = of_wholes.get(number)
        left = missing[number]
        for member in reversed(batch.members):
            count = min(left, member.size)
            if not count:
                break
            # The chunks of a batch are equal except for the names of their claims.
            shape = demands[member.demand].groups[member.group].shape
            own, enough = claim_reasons(shape)
            if shared is None and not enough:
                shared = reasons_of(state, batch, demands[batch.demand], unused_pools)
            unplaced.append(Unplaced(member.demand, member.group, count, own if enough else (*(shared or ()), *own)))
            left -= count
    return sorted(unplaced, key=lambda item: (item.demand, item.group))


def _reasons_of_wholes(
    state: State,
    batches: Sequence[Batch],
    missing: Mapping[int, int],
    demands: Mapping[ObjectRef, Demand],
    unused_pools: Sequence[UnplacedReason],
) -> dict[int, tuple[UnplacedReason, ...]]:
    """For demands that are placed as a whole and were not: what stopped the first chunk, by number of its batch.

    That shows only while the chunks before it are placed, so they are placed once more and then taken back.
    """
    found: dict[int, tuple[UnplacedReason, ...]] = {}
    for whole, group in groupby(batches, key=lambda batch: batch.whole):
        members = [batch for batch in group if batch.number in missing]
        if whole is None or not members:
            continue
        saved = state.save()
        placed, stopped = Packer(state, batches).place_until_one_is_left(members)
        size = sum(batch.count for batch in members)
        words = f"{members[0].demand} is placed as a whole or not at all"
        # This many were placed in order. In another order, or with other new nodes, there may be more.
        if placed:
            words += f": at least {placed:,} of its {size:,} pods would have a place"
        together = UnplacedReason(Cause.ALL_OR_NOTHING, 1, words, _AFTER_ALL_OTHERS, fitting=placed)
        found |= dict.fromkeys((batch.number for batch in members), (together,))
        first = stopped or members[0]
        reasons = reasons_of(state, first, demands[first.demand], unused_pools)
        if placed:
            reasons = tuple(_with_the_placed(reason, placed, size) for reason in reasons)
        found[first.number] = (*reasons, together)
        state.roll_back(saved)
    return found


def _with_the_placed(reason: UnplacedReason, placed: int, size: int) -> UnplacedReason:
    """The reason with a note, where the demand's own pods have used up the room."""
    if reason.cause not in _USED_UP:
        return reason
    verb = "has" if placed == 1 else "have"
    return replace(reason, example=f"{reason.example}, once {placed:,} of its {size:,} pods {verb} a place")


def reasons_of(
    state: State, batch: Batch, demand: Demand, unused_pools: Sequence[UnplacedReason]
) -> tuple[UnplacedReason, ...]:
    """Why the chunks of a batch could not be placed: the nearest candidates first. New nodes come nearer than existing ones.

    unused_pools: why NodePools may not be used, one each."""
    contradiction = _contradiction(batch)
    if contradiction:
        return (UnplacedReason(Cause.CONTRADICTION, 1, contradiction),)
    found = [*_bins(state, batch)]
    if batch.opens_nodes:
        found += [*pool_reasons(state, batch, partial(topology_words, state, batch, None)), *unused_pools]
        if not state.offers and not unused_pools:
            found.append(UnplacedReason(Cause.NO_NODE_POOL, 1, "there is no NodePool to make nodes from", NEAREST))
    elif not state.bins.origins:
        words = f"the cluster has no node, and {why_no_new_nodes(demand)}"
        found.append(UnplacedReason(Cause.NO_NODE, 1, words, NEAREST))
    elif is_check(demand):
        found.append(UnplacedReason(Cause.NO_NEW_NODES, 1, why_no_new_nodes(demand)))
    return tuple(sorted(found, key=attrgetter("order")))


def _contradiction(batch: Batch) -> str:
    """What the node selector and affinity ask for that no node at all can meet; "" if some node could."""
    terms = batch.needs.affinity_terms
    if not terms or not all(any(values.is_empty for _, values in term.literal.entries) for term in terms):
        return ""
    key = next(key for key, values in terms[0].literal.entries if values.is_empty)
    shape = batch.needs.shape
    expressions = [item for term in shape.required_node_terms[:1] for item in term.expressions]
    asked = asked_at_once(key, shape.node_selector, expressions)
    return f"its node selector and node affinity ask for {key} to be {asked} at once, which no node can be"


def _bins(state: State, batch: Batch) -> Iterable[UnplacedReason]:
    """Reasons of existing bins. The cause is the first constraint that allows no chunk, or else the rules between pods."""
    left = np.flatnonzero(~state.bins.closed)
    closed = state.bins.names(np.flatnonzero(state.bins.closed))
    if closed:
        words = f"{closed[0]} keeps what it holds and takes nothing else"
        yield UnplacedReason(Cause.NODE_NOT_AVAILABLE, len(closed), words)
    nearness = 0
    for constraint in state.constraints_on_nodes:
        nearness += not batch.opens_nodes
        if not len(left) or not constraint.concerns(batch):
            continue
        able = constraint.most(batch, left) > 0
        causes = by_key((constraint.cause(batch, number), number) for number in left[~able].tolist())
        for cause, numbers in causes.items():
            yield UnplacedReason(cause, len(numbers), constraint.reason(batch, numbers), nearness)
        left = left[able]
    if len(left):
        first = int(left[0])
        words = f"{state.bins.origins[first].name}: {topology_words(state, batch, first)}"
        yield UnplacedReason(Cause.TOPOLOGY, len(left), words, nearness)


def is_check(demand: Demand) -> bool:
    """Whether the demand only asks if there is room."""
    return demand.request is not None and demand.request.kind is RequestKind.CHECK


def why_no_new_nodes(demand: Demand) -> str:
    """The reason as a clause."""
    if demand.is_pending_pod:
        return "Karpenter makes nodes for pods, headroom does not"
    if is_check(demand):
        return f"a check-capacity request gets no new nodes: one of class {ATOMIC_CLASS} does"
    if demand.fulfilment != Fulfilment.PLACEHOLDER:
        return "new nodes for this buffer are left to whoever keeps it"
    return "headroom makes no new nodes for this demand now"


def claim_reasons(shape: PodShape) -> tuple[tuple[UnplacedReason, ...], bool]:
    """Where each claim can be used; and whether the pod itself can be in none of those places, so that no other reason counts. A shape
    with an obstacle has no other reason either."""
    if shape.obstacle:
        cause = Cause.RESOURCE_CLAIMS if shape.claims_devices else Cause.VOLUMES
        return (UnplacedReason(cause, 1, shape.obstacle),), True
    against = [words for claim, places in shape.attachment_places if (words := _against(shape, claim, places))]
    if against:
        return tuple(UnplacedReason(Cause.VOLUMES, 1, words) for words in against), True
    return tuple(
        UnplacedReason(Cause.VOLUMES, 1, f"{claim} can be used only {place_words(places)}")
        for claim, places in shape.attachment_places
    ), False


def _against(shape: PodShape, claim: str, places: tuple[NodeSelectorTerm, ...]) -> str:
    """Why the pod may be in none of the places of the claim, in words; "" if it may be in some."""
    terms = list(terms_of(shape, ()))
    asked = [Requirements.of(place.expressions, stable=False) for place in places]
    keys = [term.literal.conflict(wanted) for wanted in asked for term in terms]
    key = next((key for key in keys if key is not None), None)
    if key is None or any(item is None for item in keys):
        return ""
    expressions = [item for term in shape.required_node_terms for item in term.expressions]
    own = asked_at_once(key, shape.node_selector, expressions) or values_words(terms[0].literal.get(key) or Values())
    return f"{claim} can be used only {place_words(places)}, and the pod asks for {own}"


_NEW = -1
"""The hostname domain of a node to be made. No pod counts there yet."""


def topology_words(state: State, batch: Batch, number: int | None) -> str:
    """The rules that keep chunks off a bin, or with number None off all nodes that could be made.

    They are the rules that each do so alone, or all rules where only their combination does.
    """
    rules = state.constraints(batch).rules
    if not rules:
        return "no more than is there may be placed on one node"
    out = []
    for rule in rules:
        domains = [state.decided(number, rule.key)] if number is not None else _to_be_made(state, batch, rule.key)
        if all(_keeps_off(state, batch, rule, domain) for domain in domains):
            out.append(rule)
    found = _once(state, out or list(rules))
    words = (_rule_words(state, rule, number) for rule in found)
    return "ruled out by " + ", and by ".join(sorted(set(words)))


def _once(state: State, rules: Sequence[TopologyRule]) -> list[TopologyRule]:
    """Leaves out the anti-affinity of other pods where the chunk has the same one itself."""
    counted = {rule: state.topology.counters[rule.counter].counted for rule in rules}
    own = {(item.key, item.selections) for item in counted.values() if not item.owners}
    return [rule for rule, item in counted.items() if not (item.owners and (item.key, item.selections) in own)]


def _to_be_made(state: State, batch: Batch, key: str) -> list[Domain | None]:
    if key == HOSTNAME_LABEL:
        return [_NEW]
    return sorted({item.by_key[key] for item in combinations_of(state, batch) if item.makeable}, key=str) or [None]


def _keeps_off(state: State, batch: Batch, rule: TopologyRule, domain: Domain | None) -> bool:
    if domain is None:
        return not rule.apart
    constraints = state.constraints(batch)
    affinity = constraints.host_affinity if rule.key == HOSTNAME_LABEL else constraints.affinity
    if rule in state.topology.bootstrapping(affinity):
        return False
    return not rule.allowed(state.topology.counters[rule.counter].count(domain), state.bound_of(rule))


def _rule_words(state: State, rule: TopologyRule, number: int | None) -> str:
    """Why one rule keeps chunks off a bin, or with number None off all nodes that could be made."""
    counter = state.topology.counters[rule.counter]
    counted, taken = counter.counted, _taken(counter)
    whom = listed(sorted({selector_words(item) for part in counted.selections for item in part.selectors}))
    domain = None if number is None else state.decided(number, rule.key)
    if isinstance(rule, SpreadRule):
        because = "it lacks that label" if number is not None and domain is None else _because(state, rule, number)
        return f"spread over {rule.key} (maxSkew {rule.max_skew}{f'; {because}' if because else ''})"
    if isinstance(rule, AffinityRule):
        return f"affinity by {rule.key} to {whom}, of which there are {_counts(state, counter, taken) or 'none'}"
    here = _counts(state, counter, taken if number is None else [] if domain is None else [domain])
    link = "of pods that keep off" if counted.owners else "to"
    return f"anti-affinity by {rule.key} {link} {whom}{f': {here}' if here else ''}"


def _because(state: State, rule: SpreadRule, number: int | None) -> str:
    """`minDomains 5, 3 zones are there`, or the counts of domains, the lowest first."""
    domains = state.topology.counters[rule.counter].named(state.domains_of(rule).tolist())
    if rule.has_enough(len(domains)):
        return _counts(state, state.topology.counters[rule.counter], domains, also=number)
    noun = {ZONE_LABEL: "zone", HOSTNAME_LABEL: "node"}.get(rule.key)
    if rule.min_domains == 1:  # as if nothing were written
        return f"no {noun} is there" if noun else "no node has that label"
    there = f"{len(domains)} {noun or 'domain'}{' is' if len(domains) == 1 else 's are'} there"
    return f"minDomains {rule.min_domains}, {there}"


def _taken(counter: Counter) -> list[Domain]:
    """Domains with at least one pod that counts."""
    return counter.named(counter.counts.table[counter.row].nonzero()[0].tolist())


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
