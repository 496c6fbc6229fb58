"""Labels of many rows as integer columns, so that a requirement is judged once for each distinct value.

A row is a node or NodeClaim in one table, and an offering in another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reconciler.placement.requirements import Requirements, Values

Mask: TypeAlias = NDArray[np.bool_]
Cell: TypeAlias = str | tuple[str | None, ...] | None
"""One value; None for no label; or all values that the label may still get, as for a NodeClaim without a node."""


class LabelTable:
    """Rows are mappings from label to cell. A label that a row does not name is absent there."""

    def __init__(self, rows: Sequence[Mapping[str, Cell]]) -> None:
        self._rows = rows
        self._columns: dict[str, tuple[NDArray[np.intp], list[Cell]]] = {}
        self._masks: dict[tuple[str, Values, bool], Mask] = {}
        self.keys: frozenset[str] = frozenset().union(*rows)

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, number: int) -> Mapping[str, Cell]:
        return self._rows[number]

    def column(self, key: str) -> tuple[NDArray[np.intp], list[Cell]]:
        """By row, the index of its cell in the list of distinct cells; and that list."""
        if key not in self._columns:
            found = [row.get(key) for row in self._rows]
            index = {cell: code for code, cell in enumerate(dict.fromkeys(found))}
            codes = [index[cell] for cell in found]
            self._columns[key] = (np.array(codes, dtype=np.intp), list(index))
        return self._columns[key]

    def domains(self, key: str) -> list[str | None]:
        """The value in each row; None where it is absent or undecided."""
        return [cell if isinstance(cell, str) else None for cell in (row.get(key) for row in self._rows)]

    def having(self, key: str) -> Mask:
        """By row, whether it is certain to have the label, even if its value is not decided yet."""
        codes, cells = self.column(key)
        sure = [isinstance(cell, str) or (bool(cell) and None not in _possible(cell)) for cell in cells]
        return np.array(sure, dtype=np.bool_)[codes]

    def allowed(self, key: str, values: Values, *, possibly: bool = False) -> Mask:
        """By row, whether its value fits. Where it is undecided, every possible value must fit, or any of them with `possibly`."""
        asked = (key, values, possibly)
        if asked not in self._masks:
            codes, cells = self.column(key)
            judge = any if possibly else all
            fits = [judge(values.allows(value) for value in _possible(cell)) for cell in cells]
            self._masks[asked] = np.array(fits, dtype=np.bool_)[codes] if cells else np.zeros(0, dtype=np.bool_)
        return self._masks[asked]

    def matching(self, requirements: Requirements, *, possibly: bool = False) -> Mask:
        mask = np.ones(len(self._rows), dtype=np.bool_)
        for key, values in requirements.entries:
            mask &= self.allowed(key, values, possibly=possibly)
        return mask


def distinct(codes: NDArray[np.intp]) -> list[int]:
    """The codes that occur, ascending. `numpy.unique` would load masked arrays, which takes as long as a small placement."""
    found: list[int] = np.flatnonzero(np.bincount(codes)).tolist()
    return found


def settled(cells: Iterable[Cell]) -> frozenset[str | None]:
    """The cells with one value, or None; not those that are undecided."""
    return frozenset(cell for cell in cells if not isinstance(cell, tuple))


def _possible(cell: Cell) -> tuple[str | None, ...]:
    return cell if isinstance(cell, tuple) else (cell,)
