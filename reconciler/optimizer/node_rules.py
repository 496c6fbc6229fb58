"""What rules say of one new node, whatever other nodes hold: which shapes exclude each other from it, and how many it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.refs import ObjectRef
from reconciler.optimizer.bin_types import Purchase
from reconciler.placement.amounts import Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.inter_pod_affinity import AntiAffinityRule
from reconciler.placement.constraints.node_ports import ports_clash
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask


@dataclass(frozen=True, slots=True)
class NodeRules:
    """What is counted on a node is like another resource of which each node has as much.

    sizes: batches × resources and limits, what one chunk takes of them. limits: most that is counted on a node. conflicts: batches ×
    batches, symmetric: what a node does not take together, and on the diagonal those of which it takes one chunk.
    """

    sizes: Amounts
    limits: Amounts
    conflicts: Mask

    @classmethod
    def of(cls, state: State, batches: Sequence[Batch], placed: Mapping[Batch, int], *, spread: bool) -> NodeRules:
        """placed: all chunks, by batch. spread: spread over hosts counts too."""
        requests = np.array([batch.needs.request for batch in batches], dtype=np.int64)
        counted, limits = _counted(state, batches, _demands_over_share(state, placed), spread=spread)
        sizes = np.concatenate([requests.reshape(len(batches), len(state.columns.names)), counted], axis=1)
        return cls(sizes, limits, _conflicts(state, batches))

    def only(self, batches: Sequence[int]) -> NodeRules:
        """Of these numbers, in their order."""
        return replace(self, sizes=self.sizes[batches], conflicts=self.conflicts[np.ix_(batches, batches)])

    def alike(self, purchases: Iterable[Purchase], *told: Sequence[object]) -> Amounts:
        """The same number for batches that nothing tells apart: these rules, what they may be bought as, what is told of each. Numbers are
        in order of the first of each."""
        bought_as = [tuple((pool, rows.tobytes()) for pool, rows in purchase.items()) for purchase in purchases]
        rows = ([row.tobytes() for row in rows] for rows in (self.sizes, self.conflicts))
        known: dict[tuple[object, ...], int] = {}
        keys = zip(bought_as, *rows, *told, strict=True)
        return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def _conflicts(state: State, batches: Sequence[Batch]) -> Mask:
    """By anti-affinity on the hostname, or by host ports."""
    first_of: dict[tuple[int, bool], int] = {}
    classes = [
        first_of.setdefault((batch.needs.equivalence_class, batch.keeps_minimum), number)
        for number, batch in enumerate(batches)
    ]
    counted = {number: frozenset(state.topology.counts_of(batches[number].needs)) for number in first_of.values()}
    conflicts = np.zeros((len(batches), len(batches)), dtype=np.bool_)
    for number in first_of.values():
        for rule in state.constraints(batches[number]).on_hosts:
            if isinstance(rule, AntiAffinityRule):
                conflicts[number] |= np.array([rule.counter in counted[other] for other in classes], dtype=np.bool_)
    conflicts = conflicts[classes]
    for number, batch in enumerate(batches):
        ports = batch.needs.shape.host_ports
        if ports:
            conflicts[number] |= np.array([ports_clash(ports, other.needs.shape.host_ports) for other in batches])
    return np.asarray(conflicts | conflicts.T, dtype=np.bool_)


def _demands_over_share(state: State, placed: Mapping[Batch, int]) -> dict[ObjectRef, int]:
    """Demands with more chunks than one node may hold of one demand, and how many that is."""
    if state.per_node is None:
        return {}
    totals: Counter[ObjectRef] = Counter()
    for batch, count in placed.items():
        if not batch.pods:
            totals[batch.demand] += count
    return {demand: state.per_node for demand, total in totals.items() if total > state.per_node}


def _counted(
    state: State, batches: Sequence[Batch], over_share: Mapping[ObjectRef, int], *, spread: bool
) -> tuple[Amounts, Amounts]:
    """What a node takes of a demand. With spread also beside an empty host, of chunks that bring a spread constraint on hosts and count
    under it. Those that bring the same constraint for other nodes too, or as KeepMinimum, are under one limit."""
    found: list[tuple[int, object, int]] = []
    for number, batch in enumerate(batches):
        if batch.demand in over_share:
            found.append((number, batch.demand, over_share[batch.demand]))
        for rule in state.constraints(batch).host_spread if spread else ():
            if rule.counts_itself:
                counted = state.topology.counters[rule.counter].counted.anywhere
                found.append((number, (counted, rule.bound(least=0), rule.min_domains), rule.bound(least=0)))
    most = {key: limit for _, key, limit in found}
    columns = {key: column for column, key in enumerate(most)}
    counts = np.zeros((len(batches), len(most)), dtype=np.int64)
    for number, key, _ in found:
        counts[number, columns[key]] = 1
    return counts, np.array(list(most.values()), dtype=np.int64)
