"""Planned nodes as arrays, and what the room is worth that they leave. A row is a node of which it is still open what it will be bought as.

A node with room for chunks to come beats a smaller one that is cheaper by no more than what that room is worth. The worth of each resource
is a price at which all that is asked for costs most, while no type of node costs less than its room: the dual of buying fractions of nodes
for all chunks together. Where a resource has none, such as memory where CPU runs out first, a little of what is asked for most in relation
to it decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconciler.placement.arrays import (
    EMPTY,
    KEPT,
    MINIMUM,
    MOST_WORTH,
    PLENTY,
    RUNNING,
    TEMPLATE,
    USED,
    Amounts,
    Fractions,
    NodeArrays,
    Numbers,
)
from reconciler.placement.batches import Batch
from reconciler.placement.constraints.domain_counters import Inclusion
from reconciler.placement.constraints.limits import is_reservation
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.loops.planned_nodes import set_type
from reconciler.placement.offers.node_templates import NodeTemplate, NodeTemplates
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import Mask

_FIRST_ROWS = 64


class PlannedNodes:
    """All planned nodes of a placement, a row for each. Rows from `count` on are unused, and their template is -1.

    template: the number of each node's template. position: the index in that template's types of what the node would be bought as
    now: while chunks are placed it may be larger than they need. type, row, price: of that one, in billionths of a USD an hour; types and
    rows are numbered through all pools. All of these have shape (rows,).

    loads: what KeepEmpty chunks, KeepMinimum chunks and pending pods take, all of it together, and that without the pods; shape
    (5, rows, resources). used: all of it together. worth: see `arrays.py`.
    """

    def __init__(self, templates: NodeTemplates, worth: Fractions, kernel: Kernel) -> None:
        self.templates = templates
        self.kernel = kernel
        self.count = 0
        self._columns = len(worth)
        self.worth = worth
        self._make_rows(_FIRST_ROWS)

    def _make_rows(self, rows: int) -> None:
        """Allocates unused rows in the arrays that the loops take. The other attributes are views of them."""
        self.marks: Numbers = np.zeros((5, rows), dtype=np.int64)
        self.marks[TEMPLATE] = -1
        self.loads: Amounts = np.zeros((5, rows, self._columns), dtype=np.int64)
        self.found: Numbers = np.zeros((4, rows), dtype=np.int64)
        self.template, self.position, self.type, self.row, self.price = self.marks
        self.used = self.loads[USED]
        self.least: Fractions = np.zeros(rows)

    @property
    def total_price(self) -> int:
        """The price of all planned nodes, in billionths of a USD an hour."""
        return int(self.price[: self.count].sum())

    @property
    def arrays(self) -> NodeArrays:
        """As the loops take them; new ones whenever rows or templates are added."""
        lines = self.templates
        of_types = lines.spans, lines.line, lines.room, self.worth, lines.discounts
        return (self.found, self.marks, self.loads, *of_types, self.least)

    def add(self, batch: Batch, template: NodeTemplate, index: int, count: int, wanted: int) -> tuple[int, int]:
        """Adds chunks to a node, or to a new one after the last, and gives it this template. wanted: see `loops/planned_nodes.py`.

        Returns the template that it had before, below 0 for a new node, and its position then."""
        was, position = int(self.template[index]), int(self.position[index])
        self.kernel.add(self.arrays, batch.arrays, index, count, template.number, wanted)
        self.count += was < 0
        return was, position

    def undo(self, batch: Batch, index: int, count: int, was: int, position: int) -> None:
        """Takes away the chunks that came to a node last. was, position: what `add` returned for it."""
        if was < 0:
            self.count -= 1
            self.loads[:, index] = 0
            self.template[index] = -1
            return
        self.kernel.add(self.arrays, batch.arrays, index, -count, was, KEPT)
        set_type(self.arrays, index, was, position)

    def used_with(self, batch: Batch, index: int, count: int) -> Amounts:
        """What a node would hold, by resource column, if this many chunks came to it."""
        parts = self.loads[:USED, index].copy()
        parts[batch.part] += batch.needs.request * count
        return np.asarray(parts[EMPTY] + np.maximum(parts[MINIMUM], parts[RUNNING]), dtype=np.int64)

    def allocate(self, fresh: int) -> bool:
        """Makes sure that there are rows for this many new nodes. Returns whether there are more than there were."""
        rows = len(self.template)
        if self.count + fresh <= rows:
            return False
        marks, loads = self.marks, self.loads
        self._make_rows(2 * (self.count + fresh))
        self.marks[:, :rows], self.loads[:, :rows] = marks, loads
        return True

    @property
    def present(self) -> list[int]:
        """Numbers of the templates that some node has."""
        found: list[int] = np.flatnonzero(np.bincount(self.template[: self.count])).tolist()
        return found

    def of(self, index: int) -> NodeTemplate:
        return self.templates.list[int(self.template[index])]

    def rows(self, index: int) -> Mask:
        """By row of its pool's catalog: whether the node may still be bought as that, given what it holds."""
        template = self.of(index)
        return template.rows & template.offers.rows_holding(self.used[index])

    def primary(self, index: int) -> int:
        """The row of its pool's catalog that it would be bought as now: the cheapest that holds its chunks."""
        return int(self.of(index).type_rows[self.position[index]])

    def hosts(self, inclusion: Inclusion | None, *, unsure: bool = False) -> Amounts:
        """The planned nodes that a spread constraint looks at, or may look at. unsure: only those of which that is not certain."""
        judged = ((number, self.templates.list[number].is_included(inclusion)) for number in self.present)
        seen = np.zeros(len(self.templates.list), dtype=np.bool_)
        seen[[number for number, included in judged if included is None or (included and not unsure)]] = True
        return np.flatnonzero(seen[self.template[: self.count]])


_TIES = 0.05
"""The part of the worth that goes by what is asked for alone."""
_ENOUGH_BATCHES = 16
"""From this many batches on, a batch is priced as if others used the room that it leaves. With fewer, nobody does."""
_LEAST = 1e-9


def worth_of_room(offers: Sequence[PoolOffers], rooms: Amounts, asked: Fractions) -> tuple[Fractions, Fractions]:
    """By resource, what free room is worth; by type of all pools, what its room takes off its price. In billionths of a USD an hour.

    rooms: of these types, shape (types, resources). asked: what each batch requests in all, shape (batches, resources).
    """
    together = asked.sum(axis=0)
    scale = np.maximum(together, 1.0)
    # A reservation costs next to nothing, and there are few.
    least = [item.least_prices(item.rows & (not is_reservation(item))) for item in offers]
    prices = np.concatenate([np.zeros(0), *least])
    sold = (prices > 0) & (prices < PLENTY)
    if not sold.any() or not together.any():
        return np.zeros(len(together)), np.zeros(len(rooms))
    prices, parts = prices[sold], np.maximum(rooms[sold], 0) / scale
    even = 1.0 / max((parts.sum(axis=1) / prices).max(), _LEAST)
    wanted = together / scale
    dual = dual_of(parts, prices, wanted)
    worth = MOST_WORTH * ((1 - _TIES) * dual + _TIES * even) / scale
    if len(asked) < _ENOUGH_BATCHES:
        return worth, np.zeros(len(rooms))
    return worth, np.maximum(rooms, 0) @ worth


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
    found[rows[basic]] = np.maximum(table[basic, -1], 0.0)  # rounding leaves some a little below
    return found
