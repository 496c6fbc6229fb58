"""The algebra of label requirements: which values a label may have, absence included. And labels of many rows as columns, for masks.

Karpenter's algebra does not represent absence and derives it from the operator. Here absence is a value of its own, so that
intersection is exact. `NotIn [a]` and `DoesNotExist` allow a node without the label, `Exists` and bounds do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    stable_label,
)
from reconciler.model.quantity import whole_number
from reconciler.model.requirements import Operator, Requirement

WINDOWS_BUILD_LABEL = "node.kubernetes.io/windows-build"
WELL_KNOWN = frozenset(
    {
        NODEPOOL_LABEL,
        ZONE_LABEL,
        REGION_LABEL,
        INSTANCE_TYPE_LABEL,
        ARCHITECTURE_LABEL,
        OPERATING_SYSTEM_LABEL,
        CAPACITY_TYPE_LABEL,
        WINDOWS_BUILD_LABEL,
    }
)
"""Labels that a pod may ask for without any NodePool naming them (Karpenter's WellKnownLabels)."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values that one label may have.

    complement: all values but `names` are allowed. at_least, at_most: inclusive bounds, which only integers can meet.
    absent: the label may also be missing. min_values: at least this many values must stay open (Karpenter's minValues).
    """

    names: frozenset[str] = frozenset()
    complement: bool = False
    at_least: int | None = None
    at_most: int | None = None
    absent: bool = False
    min_values: int | None = None

    def allows(self, value: str | None) -> bool:
        """Whether a node with this value (None: without the label) fits."""
        if value is None:
            return self.absent
        return (value in self.names) != self.complement and self._within(value)

    def _within(self, value: str) -> bool:
        if self.at_least is None and self.at_most is None:
            return True
        number = whole_number(value)
        if number is None:
            return False
        return (self.at_least is None or number >= self.at_least) and (self.at_most is None or number <= self.at_most)

    @property
    def is_empty(self) -> bool:
        return not self.complement and not self.names and not self.absent

    @property
    def single(self) -> str | None:
        """The one value left, if there is just one and the label must be there."""
        if self.complement or self.absent or len(self.names) != 1:
            return None
        return next(iter(self.names))

    def intersection(self, other: Values) -> Values:
        """What both allow, with the larger min_values of the two."""
        at_least = _of_both(max, self.at_least, other.at_least)
        at_most = _of_both(min, self.at_most, other.at_most)
        min_values = _of_both(max, self.min_values, other.min_values)
        absent = self.absent and other.absent
        if self.complement and other.complement:
            if at_least is not None and at_most is not None and at_least > at_most:
                return Values(absent=absent, min_values=min_values)
            return Values(self.names | other.names, True, at_least, at_most, absent, min_values)
        if self.complement or other.complement:
            listed, excluded = (other, self) if self.complement else (self, other)
            names = listed.names - excluded.names
        else:
            names = self.names & other.names
        bounds = Values(complement=True, at_least=at_least, at_most=at_most)
        return Values(frozenset(name for name in names if bounds.allows(name)), absent=absent, min_values=min_values)

    def is_within(self, other: Values) -> bool:
        """Whether the other allows all of these. False for values that cannot be listed, unless both are equal."""
        if self.complement or (self.absent and not other.absent):
            return self == other
        return all(other.allows(name) for name in self.names)

    def example(self) -> str | None:
        """One allowed value, always the same; None if only absence is allowed."""
        if not self.complement:
            return min(self.names, default=None)
        if self.at_least is not None or self.at_most is not None:
            return self._bounded_example()
        return next(name for name in ("true", *(f"value-{n}" for n in range(len(self.names) + 1))) if self.allows(name))

    def _bounded_example(self) -> str | None:
        step = 1 if self.at_least is not None else -1
        start = self.at_least if self.at_least is not None else (self.at_most or 0)
        numbers = (str(start + step * n) for n in range(len(self.names) + 1))
        return next((number for number in numbers if self.allows(number)), None)

    def requirements(self, key: str) -> tuple[Requirement, ...]:
        """As a NodeClaim or NodePool writes them."""
        if not self.complement:
            operator = Operator.IN if self.names else Operator.DOES_NOT_EXIST
            return (Requirement(key, operator, tuple(sorted(self.names)), self.min_values),)
        written = []
        if self.at_least is not None:
            written.append(Requirement(key, Operator.GTE, (str(self.at_least),), self.min_values))
        if self.at_most is not None:
            written.append(Requirement(key, Operator.LTE, (str(self.at_most),), self.min_values))
        if self.names:
            written.append(Requirement(key, Operator.NOT_IN, tuple(sorted(self.names)), self.min_values))
        return tuple(written) or (Requirement(key, Operator.EXISTS, (), self.min_values),)


ABSENT = Values(absent=True)


def one_of(*names: str) -> Values:
    return Values(frozenset(names))


def values_of(requirement: Requirement) -> Values:
    """The values that one requirement allows. A bound that is not an integer allows none, and the API server rejects it."""
    names, minimum = requirement.values, requirement.min_values
    match requirement.operator:
        case Operator.IN:
            values = Values(frozenset(names))
        case Operator.NOT_IN:
            values = Values(frozenset(names), complement=True, absent=True)
        case Operator.EXISTS:
            values = Values(complement=True)
        case Operator.DOES_NOT_EXIST:
            values = Values(absent=True)
        case _:
            values = _bounded(requirement)
    return replace(values, min_values=minimum)


def _bounded(requirement: Requirement) -> Values:
    bound = whole_number(next(iter(requirement.values), ""))
    if bound is None:
        return Values()
    least = {Operator.GT: bound + 1, Operator.GTE: bound}.get(requirement.operator)
    most = {Operator.LT: bound - 1, Operator.LTE: bound}.get(requirement.operator)
    return Values(complement=True, at_least=least, at_most=most)


@dataclass(frozen=True, slots=True)
class Requirements:
    """Values by label, sorted by label. A label that is not named may have any value or be missing."""

    entries: tuple[tuple[str, Values], ...] = ()

    @classmethod
    def of(cls, requirements: Iterable[Requirement], *, stable: bool = True) -> Requirements:
        """stable: older label names become the stable ones, as in Karpenter; otherwise they stay, as in kube-scheduler."""
        return cls.joined((stable_label(item.key) if stable else item.key, values_of(item)) for item in requirements)

    @classmethod
    def labels(cls, labels: Iterable[tuple[str, str]], *, stable: bool = True) -> Requirements:
        return cls.joined((stable_label(key) if stable else key, one_of(value)) for key, value in labels)

    @classmethod
    def joined(cls, entries: Iterable[tuple[str, Values]]) -> Requirements:
        """Entries for the same label are intersected."""
        merged: dict[str, Values] = {}
        for key, values in entries:
            merged[key] = merged[key].intersection(values) if key in merged else values
        return cls(tuple(sorted(merged.items(), key=lambda entry: entry[0])))

    def get(self, key: str) -> Values | None:
        return next((values for name, values in self.entries if name == key), None)

    def both(self, other: Requirements) -> Requirements:
        """What meets both: values of the same label are intersected."""
        if not other.entries:
            return self
        if not self.entries:
            return other
        return Requirements.joined((*self.entries, *other.entries))

    def without(self, keys: frozenset[str]) -> Requirements:
        return Requirements(tuple(entry for entry in self.entries if entry[0] not in keys))

    def only(self, keys: frozenset[str]) -> Requirements:
        return Requirements(tuple(entry for entry in self.entries if entry[0] in keys))

    def conflict(self, other: Requirements) -> str | None:
        """The first label for which no value meets both, None if there is none."""
        mine = dict(self.entries)
        for key, values in other.entries:
            if key in mine and mine[key].intersection(values).is_empty:
                return key
        return None

    def match(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with exactly these labels fits."""
        return all(values.allows(labels.get(key)) for key, values in self.entries)

    def minimums(self) -> tuple[tuple[str, int], ...]:
        """Labels with their min_values, where there are any."""
        return tuple((key, values.min_values) for key, values in self.entries if values.min_values is not None)

    def without_minimums(self) -> Requirements:
        return Requirements(tuple((key, replace(values, min_values=None)) for key, values in self.entries))


ANYWHERE = Requirements()
"""Nothing is asked."""


def _of_both(choose: Callable[[int, int], int], left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return choose(left, right)


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

    def seen(self, key: str, rows: Mask | NDArray[np.intp]) -> list[Cell]:
        """The cells of a label in these rows, each once."""
        codes, cells = self.column(key)
        # `numpy.unique` would load masked arrays, which takes as long as a small placement.
        return [cells[code] for code in np.flatnonzero(np.bincount(codes[rows])).tolist()]

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


def settled(cells: Iterable[Cell]) -> frozenset[str | None]:
    """The cells with one value, or None; not those that are undecided."""
    return frozenset(cell for cell in cells if not isinstance(cell, tuple))


def _possible(cell: Cell) -> tuple[str | None, ...]:
    return cell if isinstance(cell, tuple) else (cell,)
