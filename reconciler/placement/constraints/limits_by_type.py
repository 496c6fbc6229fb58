"""What NodePools' limits allow at the moment, as arrays over instance types."""

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
    """Reads the account that `PoolLimits` keeps. Columns are the resources that any pool limits, except the number of nodes."""

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
        """Three arrays: capacity by type (numbered across all pools) and resource; what is left by pool and resource; and charges.

        charged: see `charges`; None where each node is charged for its type's capacity."""
        charged = self._uncharged if charged is None else charged
        if not self._names:
            return self._capacities, self._unlimited, charged
        left = [self._left(pool) for pool in self._pools]
        return self._capacities, np.array(left, dtype=np.int64).reshape(len(left), len(self._names)), charged

    def charges(self, charged: Iterable[Resources]) -> Amounts:
        """A row for each node, a column for each limited resource."""
        rows = [[min(item.get(name), PLENTY) for name in self._names] for item in charged]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self._names))

    def new_types(self, pool: int) -> Mask:
        """By type of the pool (given by number), whether one more node of it stays within the limits."""
        capacities = self._of_pool[pool]
        if not self._limits.allows_node(self._pools[pool]):
            return np.zeros(len(capacities), dtype=np.bool_)
        return _within(capacities, self._left(self._pools[pool]))

    def larger_types(self, pool: int, charged: Resources) -> Mask:
        """By type of the pool, whether a node that is now charged so much may become it."""
        capacities = self._of_pool[pool]
        now = [min(charged.get(name), PLENTY) for name in self._names]
        return _within(capacities - np.array(now, dtype=np.int64), self._left(self._pools[pool]))

    def _left(self, pool: str) -> list[int]:
        left = self._limits.left(pool)
        return [max(-PLENTY, min(PLENTY, left.get(name, PLENTY))) for name in self._names]


def _within(more: Amounts, left: Sequence[int]) -> Mask:
    """Whether each row of `more` is left. A pool over its limit may still take what needs none of that resource."""
    return np.asarray(((more <= 0) | (more <= np.array(left, dtype=np.int64))).all(axis=1), dtype=np.bool_)
