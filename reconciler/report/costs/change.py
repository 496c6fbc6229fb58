"""What two revisions cost over the same span of time, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.model.demand import REQUEST_KIND
from reconciler.model.refs import ObjectRef
from reconciler.model.service import Keeper, Service
from reconciler.model.spending import HOUR, Spending, SteadyState, WindowCost
from reconciler.report.costs.shortfall import Loss, Shortfall, shortfall

CENTS = 0.005
"""In USD. Amounts that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """One buffer or NodePool over the span, in USD. per_replica: of one chunk kept for the whole span; None where there is none.
    per_hour: of a request, for as long as its pods run; None for what is not one.

    name: a NodePool's; "" for nodes without one. kept_by: who keeps it in the head; None if that is headroom."""

    ref: ObjectRef | None
    name: str
    before: float
    after: float
    per_replica: float | None = None
    kept_by: Service | None = None
    per_hour: float | None = None

    @property
    def delta(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class WindowRow:
    """One value of a schedule in both revisions; None on a side where it never has this value."""

    before: WindowCost | None
    after: WindowCost | None

    @property
    def either(self) -> WindowCost:
        window = self.after or self.before
        assert window is not None
        return window


@dataclass(frozen=True, slots=True)
class Peak:
    """count: the most at one time. at: when that begins. first: when there are any. first_count: how many there are then."""

    count: int
    at: datetime
    first: datetime
    first_count: int


@dataclass(frozen=True, slots=True)
class MostAsked:
    """The most chunks that a demand asks for at any time, on both sides, and since when in the head."""

    ref: ObjectRef
    before: int
    after: int
    at: datetime


@dataclass(frozen=True, slots=True)
class CostChange:
    """The costs of base and head over the same span."""

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

    def new_nodes(self) -> Peak | None:
        """By how many nodes the head exceeds the base at most; None if it never does."""
        return _peak((moment, after.nodes - before.nodes) for moment, before, after in self.spans())

    def more_unpriced(self) -> int:
        """By how many nodes without a known price the head exceeds the base at most."""
        return max(0, *(after.unpriced - before.unpriced for _, before, after in self.spans()))

    def shortfalls(self) -> dict[ObjectRef, Loss]:
        """By demand that loses anything at any time: its first and its worst loss."""
        found: dict[ObjectRef, Loss] = {}
        for moment, before, after in self.spans():
            for ref, short in _shortfalls(before, after):
                known = found.get(ref)
                if known is None:
                    found[ref] = Loss(short, moment, short, moment)
                elif _weight(short) > _weight(known.worst):
                    found[ref] = replace(known, worst=short, at=moment)
        return found

    def most_lacking(self) -> Peak | None:
        """The most new chunks without a place at one time; None if there are never any."""
        return _peak(
            (moment, sum(short.lacking for _, short in _shortfalls(before, after)))
            for moment, before, after in self.spans()
        )

    def most_asked(self) -> tuple[MostAsked, ...]:
        """Demands of the head whose highest number of chunks differs from the base, by reference."""
        left, right = _most_asked(self.base), _most_asked(self.head)
        return tuple(
            MostAsked(ref, left[ref][0], *right[ref])
            for ref in sorted(left.keys() & right.keys())
            if left[ref][0] != right[ref][0]
        )

    def demands(self) -> list[CostRow]:
        """Those that cost anything, what changes most first."""
        left, right = self.base.of_demands(), self.head.of_demands()
        hours = (self.head.end - self.head.start) / HOUR
        kept_by = {ref: cost.service for span in self.head.spans for ref, cost in span.state.demands.items()}
        rows = []
        for ref in left.keys() | right.keys():
            before, (after, chunk_hours) = left.get(ref, (0.0, 0.0))[0], right.get(ref, (0.0, 0.0))
            lasts = chunk_hours and ref.kind != REQUEST_KIND  # a request is served once, not for the whole span
            per_replica = after / chunk_hours * hours if lasts else None
            keeper = kept_by.get(ref)
            if keeper is not None and keeper.by is Keeper.HEADROOM:
                keeper = None
            rows.append(CostRow(ref, str(ref), before, after, per_replica, keeper, self.head.per_hour_of(ref)))
        return _ordered(rows)

    def pools(self) -> list[CostRow]:
        """Those that cost anything, what changes most first."""
        left, right = self.base.of_pools(), self.head.of_pools()
        return _ordered(
            [CostRow(None, name, left.get(name, 0.0), right.get(name, 0.0)) for name in left.keys() | right.keys()]
        )

    def windows(self) -> list[WindowRow]:
        """Values of schedules whose cost or duration differs."""
        left = {(row.schedule, row.value): row for row in self.base.windows}
        right = {(row.schedule, row.value): row for row in self.head.windows}
        order = sorted(left.keys() | right.keys(), key=lambda key: (key[0], key[1] is not None, -(key[1] or 0)))
        rows = [WindowRow(left.get(key), right.get(key)) for key in order]
        return [row for row in rows if _differs(row)]


def _peak(counts: Iterable[tuple[datetime, int]]) -> Peak | None:
    """The peak of counts by time; None if none is above 0."""
    found = None
    for moment, count in counts:
        if found is None:
            found = Peak(count, moment, moment, count) if count > 0 else None
        elif count > found.count:
            found = replace(found, count=count, at=moment)
    return found


def _most_asked(side: Spending) -> dict[ObjectRef, tuple[int, datetime]]:
    """The most chunks of each demand that is ready, and since when."""
    found: dict[ObjectRef, tuple[int, datetime]] = {}
    for span in side.spans:
        for ref, cost in span.state.demands.items():
            wanted = cost.service.wanted
            if wanted is not None and (ref not in found or wanted > found[ref][0]):
                found[ref] = (wanted, span.start)
    return found


def _shortfalls(before: SteadyState, after: SteadyState) -> Iterator[tuple[ObjectRef, Shortfall]]:
    for ref, cost in after.demands.items():
        known = before.demands.get(ref)
        short = shortfall(None if known is None else known.service, cost.service)
        if short:
            yield ref, short


def _weight(short: Shortfall) -> tuple[bool, int, int]:
    return (short.unready, short.chunks, short.unsure)


def _ordered(rows: list[CostRow]) -> list[CostRow]:
    paid = [row for row in rows if max(row.before, row.after) >= CENTS]
    return sorted(paid, key=lambda row: (-round(abs(row.delta), 2), row.name))


def _differs(row: WindowRow) -> bool:
    if row.before is None or row.after is None:
        return True
    return abs(row.before.cost - row.after.cost) >= CENTS or row.before.hours != row.after.hours
