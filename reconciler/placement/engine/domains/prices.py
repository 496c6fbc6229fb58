"""In which topology domains new nodes for some chunks cost least.

Most catalogs sell a type at one price in all zones, at least on demand. Whether prices differ is computed once for all shapes that
ask for the same nodes. Where they do not, the order of the domains stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.constraint_set import ConstraintSet
from reconciler.placement.engine.domains.combinations import Combination
from reconciler.placement.engine.host_caps import Task
from reconciler.placement.engine.open import by_weight
from reconciler.placement.engine.possible_sizes import size_options_of
from reconciler.placement.engine.state import State
from reconciler.placement.offers.cheapest_sizes import SizeOptions, mix_price
from reconciler.placement.requirements import Requirements

Cost = tuple[int, int, int]
"""Compared in this order, less is better: relaxation step, rank of the pools by weight, billionths of a USD an hour."""
NOWHERE: Cost = (PLENTY, PLENTY, PLENTY)


class DomainPrices:
    """Prices of new nodes for chunks of one batch under these constraints."""

    def __init__(self, state: State, batch: Batch, constraints: ConstraintSet) -> None:
        self._state = state
        self._batch = batch
        self._constraints = constraints
        state.weights = state.weights or by_weight(state)

    def differ(self, combinations: Sequence[Combination]) -> bool:
        """Whether the price or the availability of any type differs between these combinations."""
        needs = self._batch.needs
        key = (id(needs.relaxations), id(needs.shape.tolerations), id(combinations))
        known = self._state.dear_domains.get(key)
        if known is None:
            found = self._differ(combinations)
            known = self._state.dear_domains[key] = (needs, combinations, found)
        return known[2]

    def _differ(self, combinations: Sequence[Combination]) -> bool:
        makeable = [item for item in combinations if item.makeable]
        for relaxation in self._batch.needs.relaxations:
            prices = [
                self._state.compatibilities.get(self._batch.needs, relaxation, item.where).least_prices
                for item in makeable
            ]
            if any(not np.array_equal(prices[0], other) for other in prices[1:]):
                return True
        return False

    def cheapest_first(self, combinations: Sequence[Combination], count: int) -> Sequence[Combination]:
        """Sorted by what new nodes for so many chunks would cost there; equals keep their order."""
        if not self.differ(combinations):
            return combinations
        return sorted(combinations, key=lambda item: self.cost(item.where, count))

    def cost(self, where: Requirements, count: int) -> Cost:
        """Cost of the cheapest mix of new nodes for so many chunks, as if nothing else came to them."""
        for at, options in self._options(where):
            mix = options.mix(count, self._state.kernel)
            if mix:
                return (*at, mix_price(mix, options.prices))
        return NOWHERE

    def cost_of_all(self, where: Requirements, together: Amounts) -> Cost:
        """Cost of new nodes of one type (at least one) that together have room for these requests."""
        rooms = self._state.templates.room
        for at, options in self._options(where):
            able = np.flatnonzero(options.chunks)
            if len(able):
                parts = (together / np.maximum(rooms[options.types[able]], 1)).max(axis=1)
                return (*at, int((options.prices[able] * np.maximum(parts, 1.0)).min()))
        return NOWHERE

    def _options(self, where: Requirements) -> list[tuple[tuple[int, int], SizeOptions]]:
        task = Task(self._batch, where, self._constraints, bare=True, single=False)
        return [
            ((number, weight), size_options_of(self._state, task, relaxation, pools))
            for number, relaxation in enumerate(self._batch.needs.relaxations)
            for weight, pools in enumerate(self._state.weights)
        ]
