"""The order of pods under spread constraints, where prices differ between domains.

A constraint's selector may not match the pod that brings it. Such a pod may go wherever few pods count so far: to the cheapest
domain, until the pods arrive that do count. Where two kinds of pods count for each other, whichever comes late finds the cheapest
domain full. In the opposite order the late ones find the next cheapest domain empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.placement.batches import RANK_OF, Batch
from reconciler.placement.constraints.topology_spread import SpreadRule
from reconciler.placement.engine.domains.combinations import combinations_of
from reconciler.placement.engine.domains.prices import DomainPrices
from reconciler.placement.engine.state import State

_WITH_AFFINITY, _COUNTS_ITSELF, _BEFORE_COUNTED, _AFTER_COUNTED, _OTHERS = range(5)


def in_order_of_spread(state: State, batches: Sequence[Batch]) -> Sequence[Batch]:
    """Pods of equal rank, sorted so; all others keep their order."""
    found: list[Batch] = []
    for _, equals in groupby(batches, key=RANK_OF):
        rank = list(equals)
        found += _in_order(state, rank) if all(batch.pods for batch in rank) else rank
    return found


def _in_order(state: State, batches: Sequence[Batch]) -> Sequence[Batch]:
    spread = [batch for batch in batches if batch.opens_nodes and batch.needs.shape.topology_spread]
    under_same = {batch.needs.equivalence_class: batch for batch in spread}
    if not any(_rules(state, batch) and _prices_differ(state, batch) for batch in under_same.values()):
        return batches
    under = {batch.number: rules for batch in spread if (rules := _rules(state, batch))}
    spread = [batch for batch in spread if batch.number in under]
    sizes = np.array([batch.needs.request * batch.count for batch in spread], dtype=np.float64)
    shares = (sizes / np.maximum(sizes.sum(axis=0), 1)).sum(axis=1).tolist()
    excess = dict.fromkeys((rule.counter for rules in under.values() for rule in rules), 0.0)
    """By counter: the share of requests under its constraint, less the share that counts in it. The least comes first."""
    counted = {
        batch.number: [counter for counter in state.topology.counts_of(batch.needs) if counter in excess]
        for batch in spread
    }
    for batch, share in zip(spread, shares, strict=True):
        for counter in counted[batch.number]:
            excess[counter] -= share
        for rule in under[batch.number]:
            excess[rule.counter] += share
    order = {counter: place for place, (counter, _) in enumerate(sorted(excess.items(), key=itemgetter(1)))}

    def place(batch: Batch) -> tuple[int, int]:
        rules = under.get(batch.number)
        if rules is None:
            shape = batch.needs.shape
            return (_WITH_AFFINITY if shape.pod_affinity or shape.pod_anti_affinity else _OTHERS, 0)
        if any(rule.counts_itself for rule in rules):
            return (_COUNTS_ITSELF, 0)
        last = max((order[counter] for counter in counted[batch.number]), default=-1)
        if last < min(order[rule.counter] for rule in rules):
            return (_BEFORE_COUNTED, last)
        return (_AFTER_COUNTED, -last)

    return sorted(batches, key=place)


def _rules(state: State, batch: Batch) -> list[SpreadRule]:
    return [rule for rule in state.constraints(batch).spread if rule.key != HOSTNAME_LABEL]


def _prices_differ(state: State, batch: Batch) -> bool:
    constraints = state.constraints(batch)
    return DomainPrices(state, batch, constraints).differ(combinations_of(state, batch, constraints.keys))
