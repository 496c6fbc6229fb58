"""Lets the chunks of one batch stay where they were, as far as they still fit, so that an unchanged cluster gives an unchanged plan.

What a bin held is read from its annotation; what a booking holds, from the inventory. A bin that is held but does not say for
what is only preferred (see `fill.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.placement import read_holdings
from reconciler.placement.amounts import PLENTY
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint_set import ConstraintSet, Rule, allowed_in
from reconciler.placement.constraints.inter_pod_affinity import AffinityRule
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.domains.balance import unbalanced
from reconciler.placement.engine.fill import fill_one
from reconciler.placement.engine.host_caps import Task
from reconciler.placement.engine.state import State
from reconciler.placement.requirements import Requirements

Held: TypeAlias = list[tuple[int, int]]
"""Numbers of bins, and how many chunks each held."""
Stays: TypeAlias = dict[tuple[str, int], Held]
"""By demand and group: the bins that held its chunks."""


def stays_of(state: State) -> Stays:
    """The bins that held each demand's chunks: those where pods run first, then those that hold most.

    A demand that became smaller so gives up whole nodes that hold nothing else."""
    stays: Stays = {}
    booked = {(number, demand) for number, demand, _ in state.bins.booked}
    for number, words in state.bins.holding.items():
        for key, count in read_holdings(words).items():
            if (number, key[0]) not in booked:
                stays.setdefault(key, []).append((number, count))
    for number, demand, counts in state.bins.booked:
        for group, count in enumerate(counts):
            if count:
                stays.setdefault((demand, group), []).append((number, count))
    for places in stays.values():
        if len(places) > 1:
            places.sort(key=lambda place: (not state.bins.running[place[0]].any(), -place[1], place[0]))
    return stays


def stays_for(stays: Stays, batch: Batch) -> int:
    """How many chunks of a batch were placed before."""
    return 0 if batch.pods else sum(count for _, count in stays.get(stay_key(batch), []))


def stay_key(batch: Batch) -> tuple[str, int]:
    """The batch's key in `Stays`."""
    member = batch.members[0]
    return str(member.demand), member.group


def retain_batch(
    state: State,
    batch: Batch,
    constraints: ConstraintSet,
    stays: Stays,
    *,
    loosely: bool = False,
) -> int:
    """Places chunks where the batch's demand had them; returns how many.

    If that would break a spread rule none stays, since the rule is judged for all of them together. loosely: spread is not
    judged here, since the caller judges it for all batches.

    Where the pods that they have affinity to are still missing, the domain in which most can stay comes first.
    """
    if loosely:
        constraints = replace(constraints, spread=(), host_spread=(), on_hosts=_others(constraints.on_hosts))
    held = stays.get(stay_key(batch), [])
    if batch.pods or not held:
        return 0
    most, best = 0, held
    for largest, order in _domain_by_domain(state, batch, constraints, held):
        if largest <= most:
            break
        saved = state.save()
        placed = _stay_on(state, batch, constraints, order)
        if placed == largest:
            return placed
        state.roll_back(saved)
        if placed > most:
            most, best = placed, order
    return _stay_on(state, batch, constraints, best) if most else 0


def _domain_by_domain(state: State, batch: Batch, constraints: ConstraintSet, held: Held) -> Sequence[tuple[int, Held]]:
    """Orders of the bins that held chunks, each with the most chunks that can stay.

    In the self-affinity bootstrap the first chunk binds all others to its domain. So there is an order for each domain, with its
    own bins first; the domain with most chunks comes first. In all other cases there is one order.
    """
    keys = {rule.key for rule in _bootstrapping(state, constraints.rules)}
    together: dict[tuple[object, ...], Held] = {}
    for number, count in held:
        together.setdefault(tuple(_domain(state, number, key) for key in sorted(keys)), []).append((number, count))
    if len(together) == 1:
        return [(batch.count, held)]
    sizes = {domain: min(batch.count, sum(count for _, count in bins)) for domain, bins in together.items()}
    orders = []
    for domain in sorted(together, key=lambda domain: -sizes[domain]):
        others = [item for item in held if item not in together[domain]]
        orders.append((sizes[domain], [*together[domain], *others]))
    return orders


def _domain(state: State, number: int, key: str) -> object:
    if key != HOSTNAME_LABEL:
        return state.bins.origins[number].labels.get(key)
    host = state.bins.hostnames.domains[number]
    return number if host is None else host


def _stay_on(state: State, batch: Batch, constraints: ConstraintSet, held: Held) -> int:
    """Places on each bin as many chunks as it held, in this order; returns how many. 0 where that would break a spread rule."""
    rules = constraints.rules
    saved = state.save()
    placed, step, left = 0, 1, dict(held)
    while step:
        # Each round may raise the minimum over hosts, and then a spread constraint allows more on every host.
        step = 0
        for number, count in left.items():
            amount = min(count, batch.count - placed - step, _allowed(state, batch, rules, number))
            if amount > 0:
                first = _bootstrapping(state, rules)
                task = Task(batch, Requirements(), constraints, bare=False, single=bool(first))
                stayed = fill_one(state, task, number, amount)
                left[number] -= stayed
                step += stayed
        placed += step
        if not constraints.host_spread:
            break
    if unbalanced(state, batch, constraints.spread, since=saved):
        state.roll_back(saved)
        return 0
    return placed


def _others(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if not isinstance(rule, SpreadRule))


def _bootstrapping(state: State, rules: Sequence[Rule]) -> tuple[AffinityRule, ...]:
    return state.topology.bootstrapping([rule for rule in rules if isinstance(rule, AffinityRule)])


def _allowed(state: State, batch: Batch, rules: Sequence[Rule], number: int) -> int:
    """How many chunks the bin may take by rules on labels other than the hostname, spread excepted.

    0 on a bin whose domain is not decided yet."""
    labels = state.bins.origins[number].labels
    if any(isinstance(labels.get(key), tuple) for key in state.topology.deciding_keys(batch.needs)):
        return 0
    allowed = PLENTY
    first = _bootstrapping(state, rules)
    for rule in rules:
        if rule.key == HOSTNAME_LABEL:
            continue
        cell = labels.get(rule.key)
        if isinstance(cell, tuple):
            return 0
        if cell is None:
            allowed = 0 if isinstance(rule, SpreadRule | AffinityRule) else allowed
        elif not isinstance(rule, SpreadRule):
            counted = state.topology.counters[rule.counter].count(cell)
            allowed = min(allowed, allowed_in(rule, counted, 0, first=rule in first))
    return allowed
