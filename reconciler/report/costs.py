"""What a change costs over the coming 30 days, and what demands lose by it. Headline, verdict, bounds and tables all use this."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, Generic, TypeVar

from reconciler.model.demand import REQUEST_KIND, Keeper, Service
from reconciler.model.refs import ObjectRef, by_key, counted
from reconciler.model.timelines import HOUR, Spending, SteadyState, WindowCost, aligned
from reconciler.report.words import (
    NOT_SHOWN,
    amounts_words,
    an_hour,
    change_words,
    dollars,
    keeper_words,
    moment,
    table_row,
)

T = TypeVar("T")
CENTS = 0.005
"""In USD. Amounts that differ by less are the same."""
_BAR = 10
"""Blocks of the longest bar."""
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """losing: how many chunks have a place before but not after. lacking: how many others have none, beyond those before.

    unready: it becomes not ready. unsure: how many chunks are left to an autoscaler that nothing in the cluster shows. handed_over:
    how many of these have a place before. Truthy if any of this is so.
    """

    losing: int = 0
    lacking: int = 0
    unready: bool = False
    unsure: int = 0
    handed_over: int = 0
    why: str = ""

    @property
    def chunks(self) -> int:
        """How many chunks have no place because of the change."""
        return self.losing + self.lacking

    def __bool__(self) -> bool:
        return bool(self.chunks or self.unready or self.unsure)


@dataclass(frozen=True, slots=True)
class Rise(Generic[T]):
    """How something grows over time. first, since: its first value, and when that begins. most, at: the largest, and when it begins."""

    first: T
    since: datetime
    most: T
    at: datetime


def rise_of(values: Sequence[tuple[datetime, T]], size: Callable[[T], Any]) -> Rise[T]:
    """values: by time, at least one. size: what makes one larger than another."""
    (since, first), (at, most) = values[0], max(values, key=lambda item: size(item[1]))
    return Rise(first, since, most, at)


def shortfall(before: Service | None, after: Service | None, shrinking: Collection[str] = ()) -> Shortfall:
    """What a demand loses. before, after: None if it is absent on that side. shrinking: NodePools with fewer nodes than before."""
    if after is None or after.is_left:
        return Shortfall()
    old = before or Service(0)
    if not after.ready:
        return Shortfall(losing=old.served, unready=old.ready, why=after.why)
    why = after.why_not(shrinking)
    losing = max(0, min(old.served, after.wanted or 0) - after.served)
    newly = max(0, after.missing - old.missing)
    unsure = 0 if after.certain or not old.certain else after.served
    return Shortfall(losing, max(0, newly - losing), unsure=unsure, handed_over=min(unsure, old.served), why=why)


def short_words(short: Shortfall, when: str, later: str = "") -> list[str]:
    """A sentence for each kind of loss. when: since when, in words. later: how it goes on, in words."""
    why = f": {short.why}" if short.why else ""
    if short.unready:
        lost = f", so that {losing_words(short.losing)}{later}" if short.losing else ""
        return [f"not ready {when}{lost}{why}"]
    words = [f"{counted(short.chunks, 'chunk')} without a place {when}{later}{why}"] if short.chunks else []
    if short.unsure:
        have = "has" if short.unsure == 1 else "have"
        words.append(f"whether {counted(short.unsure, 'chunk')} {have} a place is unknown: {NOT_SHOWN}")
    return words


def loss_words(loss: Rise[Shortfall], zone: tzinfo | None) -> list[str]:
    """A sentence for each kind of loss: since when, and if it grows, the most and when that begins."""
    first, worst = loss.first, loss.most
    since, at = f"from {moment(loss.since, zone)}", f"from {moment(loss.at, zone)}"
    if first.unready != worst.unready or (worst.chunks and not first.chunks and not first.unready):
        return [*short_words(first, since), *short_words(worst, at)]
    if worst.chunks == first.chunks:
        return short_words(worst, since)
    if not first.chunks:
        return short_words(worst, since, f" {at}")
    begun = replace(worst, losing=first.losing, lacking=first.lacking)
    return short_words(begun, since, f", up to {worst.chunks:,} {at}")


def losing_words(count: int) -> str:
    """`1 chunk loses its place`, `3 chunks lose their place`."""
    return f"{counted(count, 'chunk')} {'loses its' if count == 1 else 'lose their'} place"


@dataclass(frozen=True, slots=True)
class CostRow:
    """One buffer or NodePool over the span, in USD. per_replica: of one chunk kept for the whole span; None where there is none.
    per_hour: of a request, for as long as its pods run; None for what is not one.

    name: a NodePool's; "" for nodes without one. kept_by: who keeps it in the head; None if it is not there."""

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
    """One value of a schedule in both revisions, as `WindowCost` has it; None on a side where it never has this value."""

    schedule: ObjectRef
    value: int | None
    before: WindowCost | None
    after: WindowCost | None


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

    def spans(self) -> Iterator[tuple[datetime, datetime, SteadyState, SteadyState]]:
        """The time cut wherever either side changes, with both states."""
        sides = ([(span.start, span.end, span.state) for span in side.spans] for side in (self.base, self.head))
        for start, end, (before, after) in aligned(*sides):
            yield start, end, before, after

    def new_nodes(self) -> Rise[int] | None:
        """By how many nodes the head exceeds the base; None if it never does."""
        counts = ((instant, after.nodes - before.nodes) for instant, _, before, after in self.spans())
        more = [(instant, count) for instant, count in counts if count > 0]
        return rise_of(more, int) if more else None

    def unpriced(self) -> tuple[int, int]:
        """By how many nodes without a known price the head exceeds the base at most, and falls short of it at most."""
        more = [after.unpriced - before.unpriced for _, _, before, after in self.spans()]
        return max(0, *more), max(0, *(-count for count in more))

    def shortfalls(self) -> dict[ObjectRef, Rise[Shortfall]]:
        """What each demand loses over time, of those that lose anything at any time."""
        losses = by_key(
            (ref, (instant, short))
            for instant, _, before, after in self.spans()
            for ref, short in _shortfalls(before, after)
        )
        return {ref: rise_of(values, _weight) for ref, values in losses.items()}

    def lacking(self) -> Rise[int] | None:
        """How many new chunks are without a place; None if there are never any."""
        counts: Counter[datetime] = Counter()
        for instant, _, before, after in self.spans():
            counts[instant] += sum(short.lacking for _, short in _shortfalls(before, after))
        more = [(instant, count) for instant, count in counts.items() if count]
        return rise_of(more, int) if more else None

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
            rows.append(
                CostRow(ref, str(ref), before, after, per_replica, kept_by.get(ref), self.head.per_hour_of(ref))
            )
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
        rows = [WindowRow(*key, left.get(key), right.get(key)) for key in order]
        return [row for row in rows if _differs(row)]


def unpriced_words(cost: CostChange) -> str:
    """`2 more nodes without a known price`; "" where as many have none on both sides."""
    counts = zip(cost.unpriced(), ("more node", "fewer node"), strict=True)
    words = [counted(count, noun) for count, noun in counts if count]
    return f"{' or '.join(words)} without a known price" if words else ""


def _shortfalls(before: SteadyState, after: SteadyState) -> Iterator[tuple[ObjectRef, Shortfall]]:
    shrinking = after.shrunk_since(before)
    for ref, cost in after.demands.items():
        earlier = before.demands.get(ref)
        short = shortfall(None if earlier is None else earlier.service, cost.service, shrinking)
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


def cost_parts(cost: CostChange | Spending) -> list[tuple[str, Rows]]:
    """What each part is by, and its rows. A change has two amounts in each row, and rows only for what changes; the plan of one revision has one amount, and all rows."""
    is_alone = isinstance(cost, Spending)
    change = CostChange(Spending(cost.start, cost.end, ()), cost) if isinstance(cost, Spending) else cost
    parts = (
        ("by buffer", [_row(item, is_alone=is_alone) for item in change.demands()]),
        ("by NodePool", [_row(item, is_alone=is_alone) for item in change.pools()]),
        ("by what a schedule says", [_window(item, is_alone=is_alone) for item in change.windows()]),
    )
    return [(by, rows if is_alone else _with_bars(rows)) for by, rows in parts]


def _with_bars(rows: Rows) -> Rows:
    """Each with a bar as long as its change is large beside the largest. Whether it is dearer or cheaper is its colour and its sign.
    Of 500 buffers, those that cost what they did would bury the one that does not."""
    most = max((abs(row["delta"]) for row in rows), default=0.0)
    return [{**row, "bar": "▇" * round(_BAR * abs(row["delta"]) / most)} for row in rows if abs(row["delta"]) >= CENTS]


def _row(item: CostRow, *, is_alone: bool) -> dict[str, Any]:
    pool = f"NodePool {item.name}" if item.name else "nodes of no NodePool"
    return _amounts(pool if item.ref is None else str(item.ref), item.before, item.after, _about(item), is_alone)


def _window(item: WindowRow, *, is_alone: bool) -> dict[str, Any]:
    sides = (item.before, item.after)
    says = "above 0" if item.value is None else f"{item.value:,}"
    before, after = (0.0 if side is None else side.cost for side in sides)
    hours = _hours(item.after) if is_alone else " → ".join(map(_hours, sides))
    return _amounts(f"while {item.schedule} is {says}", before, after, [f"{hours} hours"], is_alone)


def _amounts(name: str, before: float, after: float, about: list[str], is_alone: bool) -> dict[str, Any]:  # noqa: FBT001 - private
    what = dollars(after) if is_alone else amounts_words(before, after)
    why = about if is_alone else [change_words(before, after), *about]
    return table_row(name, what, "; ".join(why), delta=after - before)


def _about(item: CostRow) -> list[str]:
    """Notes about the cost of one demand: of a chunk all the time, of a request while it runs, and whose nodes these are."""
    if item.ref is None:
        return []
    words = []
    if item.ref.kind == REQUEST_KIND:
        words.append("once, while its capacity is booked")
        words += [f"{an_hour(item.per_hour)} an hour for as long as its pods run"] if item.per_hour is not None else []
    elif item.per_replica is not None:
        words.append(f"{dollars(item.per_replica)} for one replica all the time")
    if item.kept_by is not None and item.kept_by.by is not Keeper.HEADROOM:
        words.append(f"kept by {keeper_words(item.kept_by)}, whose nodes are priced as headroom's would be")
    return words


def _hours(window: WindowCost | None) -> str:
    """`220`, `36.5`."""
    return f"{0.0 if window is None else window.hours:,.1f}".removesuffix(".0")
