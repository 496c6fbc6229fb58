"""Bin types: what new nodes can be bought as, each instance type where it costs least.

Chunks that ask for labels which only the node has, not the catalogue, share a node only with chunks that ask for the same or
for none. So each such set of labels has bin types of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.optimizer.item_types import Domains, Items, PackingProblem, Pattern
from reconciler.optimizer.solver import Floats
from reconciler.placement.amounts import Amounts
from reconciler.placement.engine.state import State
from reconciler.placement.label_table import Mask
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import ANYWHERE, Requirements


@dataclass(frozen=True, slots=True)
class BinTypes:
    """One entry each. capacity: bin types × resources, after daemons; prices: billionths of a USD an hour; admits: bin types ×
    item types, which of these may be on such a node; domains: where it stands, by the labels that item types leave open."""

    capacity: Amounts
    prices: Amounts
    admits: Mask
    domains: tuple[Domains, ...]

    def __len__(self) -> int:
        return len(self.prices)

    def pattern(self, number: int, items: Items) -> Pattern:
        return Pattern(items, self.domains[number], int(self.prices[number]) / 1e9)

    def first_dual_prices(self, problem: PackingProblem) -> Floats:
        """USD an hour of one chunk by item type: its largest share of any resource, of the node where that is cheapest."""
        shares = (problem.requests[None, :, :] / np.maximum(self.capacity, 1)[:, None, :]).max(axis=2)
        prices = np.where(self.admits, shares * self.prices[:, None] / 1e9, np.inf)
        return np.asarray(np.where(self.admits.any(axis=0), prices.min(axis=0), 0.0), dtype=np.float64)

    def price_of(self, problem: PackingProblem) -> Callable[[Sequence[Pattern]], int]:
        """What patterns cost together when each is bought as the cheapest bin type that holds it, in billionths of a USD an hour."""
        known: dict[tuple[Items, Domains], int] = {}
        everywhere = np.ones(len(self), dtype=np.bool_)
        at = {place: np.array([item == place for item in self.domains]) for place in set(self.domains)}

        def price(pattern: Pattern) -> int:
            key = (pattern.items, pattern.domains)
            if key not in known:
                numbers = [number for number, _ in pattern.items]
                counts = np.array([count for _, count in pattern.items], dtype=np.int64)
                used = (problem.requests[numbers] * counts[:, None]).sum(axis=0)
                able = self.admits[:, numbers].all(axis=1) & (self.capacity >= used).all(axis=1)
                able &= at.get(pattern.domains, everywhere)
                known[key] = int(self.prices[able].min()) if able.any() else round(pattern.price * 1e9)
            return known[key]

        return lambda patterns: sum(price(pattern) for pattern in patterns)


def bin_types_for(state: State, problem: PackingProblem) -> BinTypes:
    """All that item types can be together on, without those that are no better than another one in any respect."""
    capacity: list[Amounts] = []
    prices: list[int] = []
    admits: list[Mask] = []
    domains: list[Domains] = []
    keys = sorted({key for item in problem.item_types for key in item.open_keys})
    for pool in sorted({item.pool for item in problem.item_types}):
        offers = state.offers[pool]
        places = _domains_of_rows(offers, keys)
        for members in _compartments(state, problem, pool):
            numbers = np.flatnonzero(members)
            masks = np.array([problem.item_types[number].compatibility.rows(pool) for number in numbers.tolist()])
            for row in _cheapest_rows(offers, masks, places):
                admitted = np.zeros(len(problem.item_types), dtype=np.bool_)
                admitted[numbers] = masks[:, row]
                capacity.append(offers.room[offers.offerings.types_of[row]])
                prices.append(int(offers.prices[row]))
                admits.append(admitted)
                domains.append(places[row])
    return _undominated(
        BinTypes(
            np.array(capacity, dtype=np.int64).reshape(len(prices), len(state.columns.names)),
            np.array(prices, dtype=np.int64),
            np.array(admits, dtype=np.bool_).reshape(len(prices), len(problem.item_types)),
            tuple(domains),
        )
    )


def _domains_of_rows(offers: PoolOffers, keys: Sequence[str]) -> list[Domains]:
    """By row of the catalogue. Item types that leave a label open need rows with one value of it."""
    found: list[Domains] = [()] * len(offers.rows)
    for key in keys:
        codes, cells = offers.offerings.table.column(key)
        named = [((key, cell),) if isinstance(cell, str) else () for cell in cells]
        found = [(*place, *named[code]) for place, code in zip(found, codes.tolist(), strict=True)]
    return found


def _compartments(state: State, problem: PackingProblem, pool: int) -> Iterable[Mask]:
    """Masks of item types that may share a node of the pool as far as its own labels go."""
    keys = state.offers[pool].offerings.table.keys
    by_labels: dict[Requirements, list[int]] = {}
    for number, item in enumerate(problem.item_types):
        if item.pool == pool:
            by_labels.setdefault(item.compatibility.wanted.without(keys), []).append(number)
    anywhere = by_labels.pop(ANYWHERE, [])
    for members in [*by_labels.values(), []] if anywhere else by_labels.values():
        mask = np.zeros(len(problem.item_types), dtype=np.bool_)
        mask[[*anywhere, *members]] = True
        yield mask


def _cheapest_rows(offers: PoolOffers, masks: Mask, places: Sequence[Domains]) -> list[int]:
    """masks: item types × rows. Of rows of one type and place that the same item types may be on, the cheapest; the first of
    equal ones."""
    found: dict[tuple[int, bytes, Domains], int] = {}
    for row in np.flatnonzero(masks.any(axis=0)).tolist():
        key = (int(offers.offerings.types_of[row]), masks[:, row].tobytes(), places[row])
        if key not in found or offers.prices[row] < offers.prices[found[key]]:
            found[key] = row
    return sorted(found.values())


def _undominated(bins: BinTypes) -> BinTypes:
    """Of two that are as good as each other the first stays."""
    keep = np.ones(len(bins), dtype=np.bool_)
    order = np.lexsort((np.arange(len(bins)), bins.prices))
    capacity, admits = bins.capacity[order], bins.admits[order]
    for place in range(1, len(order)):
        better = (capacity[:place] >= capacity[place]).all(axis=1) & ~(admits[place] & ~admits[:place]).any(axis=1)
        keep[place] = not better.any()
    chosen = np.sort(order[keep])
    return BinTypes(
        bins.capacity[chosen], bins.prices[chosen], bins.admits[chosen], tuple(bins.domains[n] for n in chosen.tolist())
    )
