"""Planned nodes as arrays. A row is a node of which it is still open what it will be bought as."""

from __future__ import annotations

import numpy as np

from reconciler.placement.arrays import (
    EMPTY,
    KEPT,
    MINIMUM,
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
from reconciler.placement.loops.kernel import Kernel
from reconciler.placement.loops.planned_nodes import set_type
from reconciler.placement.offers.node_templates import NodeTemplate, NodeTemplates
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
