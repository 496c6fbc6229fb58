"""What room on new nodes is worth, so that a node with room for chunks to come beats a smaller one that is cheaper by no more.

The worth of each resource is a price at which all that is asked for costs most, while no type of node costs less than its room: the dual of
buying fractions of nodes for all chunks together. Where a resource has none, such as memory where CPU runs out first, a little of what is
asked for most in relation to it decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.placement.amounts import PLENTY, Amounts
from reconciler.placement.constraints.limits import RESERVATION_MARK
from reconciler.placement.loops.arrays import MOST_WORTH, Fractions, Numbers
from reconciler.placement.offers.pool_offers import PoolOffers

_TIES = 0.05
"""The part of the worth that goes by what is asked for alone."""
_ENOUGH_BATCHES = 16
"""From so many batches on, others use the room that one leaves. Fewer are placed as if nobody did."""
_LEAST = 1e-9


def worth_of_room(offers: Sequence[PoolOffers], rooms: Amounts, asked: Fractions) -> tuple[Fractions, Fractions]:
    """By resource, what free room is worth; by type of all pools, what its room takes off its price. In billionths of a USD an hour.

    rooms: of these types, shape (types, resources). asked: what each batch requests in all, shape (batches, resources).
    """
    together = asked.sum(axis=0)
    scale = np.maximum(together, 1.0)
    prices, sold = _sold(offers)
    if not len(prices) or not together.any():
        return np.zeros(len(together)), np.zeros(len(rooms))
    parts = np.maximum(sold, 0) / scale
    even = 1.0 / max((parts.sum(axis=1) / prices).max(), _LEAST)
    worth = MOST_WORTH * ((1 - _TIES) * dual_of(parts, prices, together / scale) + _TIES * even) / scale
    if len(asked) < _ENOUGH_BATCHES:
        return worth, np.zeros(len(rooms))
    return worth, np.maximum(rooms, 0) @ worth


def net_prices(prices: Numbers, discounts: Fractions) -> Numbers:
    """Prices of types less what their room is worth, by type; PLENTY where a type is not sold."""
    net = np.maximum(prices * (1 - MOST_WORTH), prices - discounts)
    return np.where(prices < PLENTY, net, PLENTY).astype(np.int64)


def _sold(offers: Sequence[PoolOffers]) -> tuple[Fractions, Fractions]:
    """Price and room of each type that a pool sells, at its cheapest."""
    prices, rooms = [], []
    for item in offers:
        if RESERVATION_MARK in item.pool.name:  # it costs next to nothing, and there are few
            continue
        least = np.full(len(item.room), PLENTY, dtype=np.int64)
        np.minimum.at(least, item.offerings.types_of[item.rows], item.prices[item.rows])
        sold = (least > 0) & (least < PLENTY)
        prices.append(least[sold])
        rooms.append(item.room[sold])
    if not prices:
        return np.zeros(0), np.zeros((0, 0))
    return np.concatenate(prices).astype(np.float64), np.concatenate(rooms).astype(np.float64)


def dual_of(rooms: Fractions, prices: Fractions, asked: Fractions) -> Fractions:
    """The worth that makes `asked` dearest, with no room of a type worth more than its price. By the simplex method."""
    resources = len(asked)
    table = np.block([[rooms, prices[:, None]], [-np.where((rooms > 0).any(axis=0), asked, 0.0), np.zeros(1)]])
    columns, rows = np.arange(resources), np.full(len(prices), -1)
    for _ in range(8 * resources):
        column = int(table[-1, :-1].argmin())
        if table[-1, column] > -_LEAST:
            break
        able = table[:-1, column] > _LEAST
        ratios = np.where(able, table[:-1, -1] / np.where(able, table[:-1, column], 1.0), np.inf)
        row = int(ratios.argmin())
        if not able[row]:
            break
        pivot = table[row, column]
        row_now, column_now = table[row] / pivot, -table[:, column] / pivot
        table -= np.outer(table[:, column], row_now)
        table[row], table[:, column], table[row, column] = row_now, column_now, 1 / pivot
        rows[row], columns[column] = columns[column], rows[row]
    found: Fractions = np.zeros(resources)
    basic = np.flatnonzero(rows >= 0)
    found[rows[basic]] = table[basic, -1]
    return found
