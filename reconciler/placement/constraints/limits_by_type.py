"""The limits of NodePools as arrays over instance types, as they are at the moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reconciler.model.quantity import Resources
from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.constraints.limits import NODES, PoolLimits
from reconciler.placement.label_table import Mask
from reconciler.placement.loops.arrays import LimitArrays
from reconciler.placement.offers.pool_offers import PoolOffers


class RunningLimits:
    """Reads the account that PoolLimits keeps; resources that any pool limits are columns, the number of nodes apart."""

    def __init__(self, offers: Sequence[PoolOffers], limits: PoolLimits) -> None:
        self._limits = limits
        self._pools = [item.pool.name for item in offers]
        names = {name for pool in self._pools for name in limits.left(pool)}
        self._names = sorted(names - {NODES})
        columns = [
            [min(capacity.get(name), PLENTY) for name in self._names] for item in offers for capacity in item.capacities
        ]
        self._capacities: Amounts = np.array(columns, dtype=np.int64).reshape(len(columns), len(self._names))
        self._unlimited: Amounts = np.zeros((0, 0), dtype=np.int64)
        self._uncharged: Amounts = np.zeros((0, len(self._names)), dtype=np.int64)
        ends = np.cumsum([len(item.capacities) for item in offers]).tolist()
        self._of_pool = [
            self._capacities[end - len(item.capacities) : end] for end, item in zip(ends, offers, strict=True)
        ]

    def now(self, charged: Amounts | None = None) -> LimitArrays:
        """Capacities by type (numbered through all pools) and resource, what is left of each by pool, and what nodes count for.

        charged: see `charges`; None where each node counts for its type's capacity."""
        charged = self._uncharged if charged is None else charged
        if not self._names:
            return self._capacities, self._unlimited, charged
        left = [self._left(pool) for pool in self._pools]
        return self._capacities, np.array(left, dtype=np.int64).reshape(len(left), len(self._names)), charged

    def charges(self, charged: Iterable[Resources]) -> Amounts:
        """A row of limited resources for each."""
        rows = [[min(item.get(name), PLENTY) for name in self._names] for item in charged]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self._names))

    def new_types(self, pool: int) -> Mask:
        """Of a pool, by number, the types of which one more node would stay inside its limits."""
        capacities = self._of_pool[pool]
        if not self._limits.allows_node(self._pools[pool]):
            return np.zeros(len(capacities), dtype=np.bool_)
        return _within(capacities, self._left(self._pools[pool]))

    def larger_types(self, pool: int, charged: Resources) -> Mask:
        """The types which a node of it may become that it is charged so much for."""
        capacities = self._of_pool[pool]
        now = [min(charged.get(name), PLENTY) for name in self._names]
        return _within(capacities - np.array(now, dtype=np.int64), self._left(self._pools[pool]))

    def _left(self, pool: str) -> list[int]:
        left = self._limits.left(pool)
        return [max(-PLENTY, min(PLENTY, left.get(name, PLENTY))) for name in self._names]


def _within(more: Amounts, left: Sequence[int]) -> Mask:
    """A pool that is over its limit may still have what needs none of that resource."""
    return np.asarray(((more <= 0) | (more <= np.array(left, dtype=np.int64))).all(axis=1), dtype=np.bool_)
