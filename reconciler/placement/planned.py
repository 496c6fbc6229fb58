"""Nodes to be made, as arrays: a row is a node, still open. Used by state, fill, make and offer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconciler.model.nodes import HOSTNAME_LABEL
from reconciler.model.pods import HostPort
from reconciler.placement.batches import Batch
from reconciler.placement.blueprints import Blueprint, Blueprints, Numbers
from reconciler.placement.counters import Inclusion
from reconciler.placement.label_table import Amounts, Mask
from reconciler.placement.requirements import Requirements

_FIRST_ROWS = 64


@dataclass(frozen=True, slots=True)
class Before:
    """A planned node as it was before chunks came to it, None in `blueprint` when it was not there."""

    blueprint: int | None
    place: int
    ports: tuple[HostPort, ...]


@dataclass(frozen=True, slots=True)
class PlannedBin:
    """One of them as it came to be. rows: what it may be bought as; own: labels that the catalogue does not judge; wanted:
    what its chunks ask of labels, all together; used: what they take; primary: the cheapest row that holds them."""

    pool: int
    rows: Mask
    own: Requirements
    wanted: Requirements
    used: Amounts
    primary: int


class PlannedNodes:
    """blueprint: number of each node's; place: where in the blueprint's types the one is that it would be bought as now (the
    cheapest that holds what is in it); type, row, price: of that one (types and rows are numbered through all pools).

    empty, minimum, running: what its KeepEmpty chunks, KeepMinimum chunks and pending pods take; used: all of it together;
    lean: without what runs. ports: by row. census: how many nodes each blueprint has.
    """

    def __init__(self, blueprints: Blueprints, columns: int) -> None:
        self.blueprints = blueprints
        self.count = 0
        self.blueprint: Numbers = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.place: Numbers = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.type: Numbers = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.row: Numbers = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.price: Numbers = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.empty: Amounts = np.zeros((_FIRST_ROWS, columns), dtype=np.int64)
        self.minimum: Amounts = np.zeros((_FIRST_ROWS, columns), dtype=np.int64)
        self.running: Amounts = np.zeros((_FIRST_ROWS, columns), dtype=np.int64)
        self.used: Amounts = np.zeros((_FIRST_ROWS, columns), dtype=np.int64)
        self.lean: Amounts = np.zeros((_FIRST_ROWS, columns), dtype=np.int64)
        self.ports: list[tuple[HostPort, ...]] = []
        self.census: dict[int, int] = {}
        self.census_version = 0
        """Grows whenever a blueprint comes or goes, so that what follows from the census can be kept."""

    def __len__(self) -> int:
        return self.count

    def put(self, batch: Batch, index: int, blueprint: Blueprint, count: int) -> Before:
        """Adds chunks to a node, which is of this blueprint from now on; `index` one past the last makes a new node."""
        if index == self.count:
            before = Before(None, 0, ())
            self._add_row()
            self.ports.append(blueprint.offers.host_ports)
            kept = False
        else:
            before = Before(int(self.blueprint[index]), int(self.place[index]), self.ports[index])
            self._leave(int(self.blueprint[index]))
            kept = before.blueprint == blueprint.number
        self._join(blueprint.number)
        self._add(batch, index, count)
        if batch.needs.shape.host_ports:
            self.ports[index] = (*self.ports[index], *batch.needs.shape.host_ports)
        self.blueprint[index] = blueprint.number
        used = self.used[index]
        if not kept or not bool((blueprint.room[self.place[index]] >= used).all()):
            self._set_place(index, blueprint, blueprint.cheapest(used))
        return before

    def undo(self, batch: Batch, index: int, count: int, before: Before) -> None:
        self._leave(int(self.blueprint[index]))
        if before.blueprint is None:
            assert index == self.count - 1
            self.count -= 1
            self.ports.pop()
            return
        self._add(batch, index, -count)
        self._join(before.blueprint)
        self.blueprint[index] = before.blueprint
        self.ports[index] = before.ports
        self._set_place(index, self.blueprints.list[before.blueprint], before.place)

    def _set_place(self, index: int, blueprint: Blueprint, place: int) -> None:
        self.place[index] = place
        self.type[index] = blueprint.types[place] + self.blueprints.type_base[blueprint.pool]
        self.row[index] = blueprint.type_rows[place] + self.blueprints.row_base[blueprint.pool]
        self.price[index] = blueprint.type_prices[place]

    def _add(self, batch: Batch, index: int, count: int) -> None:
        amounts = batch.needs.request * count
        if batch.pods:
            self.running[index] += amounts
        elif batch.keeps_minimum:
            self.minimum[index] += amounts
        else:
            self.empty[index] += amounts
            self.lean[index] += amounts
            self.used[index] += amounts
            return
        self.lean[index] = self.empty[index] + self.minimum[index]
        self.used[index] = self.empty[index] + np.maximum(self.running[index], self.minimum[index])

    def _add_row(self) -> None:
        if self.count == len(self.blueprint):
            for name in ("blueprint", "place", "type", "row", "price", "empty", "minimum", "running", "used", "lean"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        for array in (self.empty, self.minimum, self.running, self.used, self.lean):
            array[self.count] = 0
        self.count += 1

    def _join(self, blueprint: int) -> None:
        there = self.census.get(blueprint, 0)
        self.census[blueprint] = there + 1
        self.census_version += not there

    def _leave(self, blueprint: int) -> None:
        self.census[blueprint] -= 1
        self.census_version += not self.census[blueprint]

    def bin(self, index: int) -> PlannedBin:
        item = self.of(index)
        return PlannedBin(
            item.pool, self.rows(index), item.own, item.wanted, self.used[index].copy(), self.primary(index)
        )

    def of(self, index: int) -> Blueprint:
        return self.blueprints.list[int(self.blueprint[index])]

    def rows(self, index: int) -> Mask:
        """What a node may still be bought as, with what it holds."""
        blueprint = self.of(index)
        return blueprint.rows & blueprint.offers.rows_holding(self.used[index])

    def primary(self, index: int) -> int:
        """The row of its pool's catalogue that it would be bought as now."""
        return int(self.of(index).type_rows[self.place[index]])

    def cells(self, index: int, key: str) -> frozenset[str | None]:
        """Values of a label that the catalogue decides, as far as the node may come to have them."""
        blueprint = self.of(index)
        found = blueprint.cells(key)
        if found is None:
            codes, cells = blueprint.offers.offerings.table.column(key)
            found = frozenset(cells[code] for code in np.unique(codes[self.rows(index)]).tolist())
        return frozenset(cell for cell in found if not isinstance(cell, tuple))

    def values(self, index: int, key: str) -> frozenset[str]:
        """Values of a label that the node may come to have."""
        blueprint = self.of(index)
        if key in blueprint.offers.offerings.table.keys:
            return frozenset(cell for cell in self.cells(index, key) if cell is not None)
        values = blueprint.own.get(key)
        return values.names if values is not None and not values.complement else frozenset()

    def decided(self, index: int, key: str) -> str | None:
        """The value of a label that the node is sure to have."""
        blueprint = self.of(index)
        if key not in blueprint.offers.offerings.table.keys:
            values = blueprint.own.get(key)
            return None if values is None else values.single
        cells = self.cells(index, key)
        return next(iter(cells)) if len(cells) == 1 else None

    def is_included(self, index: int, inclusion: Inclusion | None) -> bool:
        """Whether a spread constraint looks at the node."""
        if inclusion is None:
            return True
        if any(key != HOSTNAME_LABEL and not self.values(index, key) for key in inclusion.keys):
            return False
        known = self.of(index).is_included(inclusion)
        return known if known is not None else self._could_be(index, inclusion)

    def _could_be(self, index: int, inclusion: Inclusion) -> bool:
        blueprint, rows = self.of(index), self.rows(index)
        for term in inclusion.terms or ():
            wanted = blueprint.offers.rows_for(term.stable)
            if not isinstance(wanted, np.ndarray) or blueprint.own.conflict(term.stable) is not None:
                continue
            if bool((wanted & rows).any()):
                return True
        return False

    def is_plain(self, blueprint: int, keys: tuple[str, ...], inclusion: Inclusion | None) -> bool:
        """Whether these labels, and being included, are the same for all nodes of the blueprint, whatever they hold."""
        item = self.blueprints.list[blueprint]
        table = item.offers.offerings.table
        wanted = keys if inclusion is None else (*keys, *inclusion.keys)
        if any(key in table.keys and item.cells(key) is None for key in wanted if key != HOSTNAME_LABEL):
            return False
        return inclusion is None or item.is_included(inclusion) is not None

    def with_blueprint(self, blueprint: int) -> list[int]:
        return [int(index) for index in np.flatnonzero(self.blueprint[: self.count] == blueprint)]
