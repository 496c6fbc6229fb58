"""What two revisions cost over the same span of time, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.refs import ObjectRef
from reconciler.model.spending import MONTH, Spending, SteadyState, WindowCost

_CENTS = 0.005
"""USD; what differs by less is the same."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """One buffer or NodePool over the span, in USD. per_replica: of one chunk that is kept for all of the span; None where there is none.

    name: of a NodePool; "" for nodes of none."""

    ref: ObjectRef | None
    name: str
    before: float
    after: float
    per_replica: float | None = None

    @property
    def delta(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One value of a schedule in both revisions; None: it never has it there."""

    before: WindowCost | None
    after: WindowCost | None

    @property
    def either(self) -> WindowCost:
        window = self.after or self.before
        assert window is not None
        return window


@dataclass(frozen=True, slots=True)
class CostChange:
    """Both over the same span."""

    base: Spending
    head: Spending

    @property
    def before(self) -> float:
        return self.base.total

    @property
    def after(self) -> float:
        return self.head.total

    @property
    def delta(self) -> float:
        return self.after - self.before

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.base.notes, *self.head.notes)))

    def spans(self) -> Iterator[tuple[datetime, SteadyState, SteadyState]]:
        """The instants at which either side changes, with the states from there on."""
        moments = sorted({span.start for side in (self.base, self.head) for span in side.spans})
        left, right = 0, 0
        for moment in moments:
            while self.base.spans[left].end <= moment:
                left += 1
            while self.head.spans[right].end <= moment:
                right += 1
            yield moment, self.base.spans[left].state, self.head.spans[right].state

    def most_new_nodes(self) -> int:
        """The most nodes by which the head exceeds the base at any time; 0 where it never does."""
        return max(0, *(after.nodes - before.nodes for _, before, after in self.spans()))

    def more_unpriced(self) -> int:
        """Nodes without a known price by which the head exceeds the base at most."""
        return max(0, *(after.unpriced - before.unpriced for _, before, after in self.spans()))

    def unplaced(self) -> dict[ObjectRef, tuple[int, datetime]]:
        """The most chunks of each demand that have no place in the head beyond those of the base, and when that is first so."""
        found: dict[ObjectRef, tuple[int, datetime]] = {}
        for moment, before, after in self.spans():
            for ref, cost in after.demands.items():
                known = before.demands.get(ref)
                more = cost.unplaced - (0 if known is None else known.unplaced)
                if more > found.get(ref, (0, moment))[0]:
                    found[ref] = (more, moment)
        return found

    def demands(self) -> list[CostRow]:
        """Those that cost anything, what changes most first."""
        left, right = self.base.of_demands(), self.head.of_demands()
        hours = (self.head.end - self.head.start) / MONTH * MONTH.days * 24
        rows = []
        for ref in left.keys() | right.keys():
            before, (after, chunk_hours) = left.get(ref, (0.0, 0.0))[0], right.get(ref, (0.0, 0.0))
            per_replica = after / chunk_hours * hours if chunk_hours else None
            rows.append(CostRow(ref, str(ref), before, after, per_replica))
        return _ordered(rows)

    def pools(self) -> list[CostRow]:
        """Those that cost anything, what changes most first."""
        left, right = self.base.of_pools(), self.head.of_pools()
        return _ordered(
            [CostRow(None, name, left.get(name, 0.0), right.get(name, 0.0)) for name in left.keys() | right.keys()]
        )

    def windows(self) -> list[WindowRow]:
        """Values of schedules that cost another amount, or last for another time."""
        left = {(row.schedule, row.value): row for row in self.base.windows}
        right = {(row.schedule, row.value): row for row in self.head.windows}
        order = sorted(left.keys() | right.keys(), key=lambda key: (key[0], key[1] is not None, -(key[1] or 0)))
        rows = [WindowRow(left.get(key), right.get(key)) for key in order]
        return [row for row in rows if _differs(row)]


def _ordered(rows: list[CostRow]) -> list[CostRow]:
    paid = [row for row in rows if max(row.before, row.after) >= _CENTS]
    return sorted(paid, key=lambda row: (-round(abs(row.delta), 2), row.name))


def _differs(row: WindowRow) -> bool:
    if row.before is None or row.after is None:
        return True
    return abs(row.before.cost - row.after.cost) >= _CENTS or row.before.hours != row.after.hours
