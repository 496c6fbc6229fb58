"""Which demands have less room because of a change, or more, at any time of the coming 30 days: how much, when, and why.

Room is what has a place, not what is asked for. So it is lost alike whether a manifest is deleted, asks for less, or finds no node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo

from reconciler.model.demand import REQUEST_KIND
from reconciler.model.quantity import PODS, Resources, readable_amount
from reconciler.model.refs import ObjectRef, counted, listed
from reconciler.model.schedules import WEEKDAYS
from reconciler.model.timelines import HOUR, DemandCost, SteadyState
from reconciler.report.costs import CostChange
from reconciler.report.words import moment

_DAYS = (*WEEKDAYS[1:], WEEKDAYS[0])
_MOST_NAMED = 3
_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class RoomChange:
    """before, after: chunks with a place when they differ most, from `at` on; None where the demand is absent.

    befores, afters: all numbers of chunks in that time, in order. spans: when they differ, [start, end). within: the time that is looked at. is_lasting: they differ during all of it. why: "" where nothing is to be said.
    chunk: what one chunk requests before and after, in words, where that differs.
    """

    ref: ObjectRef
    before: int | None
    after: int | None
    at: datetime
    spans: tuple[tuple[datetime, datetime], ...] = ()
    is_lasting: bool = False
    why: str = ""
    chunk: tuple[str, str] | None = None
    within: tuple[datetime, ...] = ()
    befores: tuple[int, ...] = ()
    afters: tuple[int, ...] = ()

    @property
    def difference(self) -> int:
        """By how many chunks the two sides differ."""
        return abs((self.after or 0) - (self.before or 0))

    @property
    def reason(self) -> str:
        """Why there is less room; "" for more, and for a demand that is new or removed."""
        return self.why if self.before is not None and self.after is not None and self.after <= self.before else ""


@dataclass(frozen=True, slots=True)
class RoomChanges:
    """By reference; a demand may be in both, at different times. unjudged: for how many hours room is not known."""

    less: tuple[RoomChange, ...] = ()
    more: tuple[RoomChange, ...] = ()
    unjudged: float = 0.0


def room_changes(cost: CostChange) -> RoomChanges:
    """Compares the two sides in every state of the schedules."""
    by_demand: dict[tuple[bool, ObjectRef], list[RoomChange]] = {}
    by_states: dict[tuple[int, int], list[tuple[bool, RoomChange]]] = {}
    unjudged = timedelta()
    for start, end, before, after in cost.spans():
        if before.is_mean or after.is_mean:
            unjudged += end - start
            continue
        pair = (id(before), id(after))
        if pair not in by_states:
            by_states[pair] = list(_changes(before, after, start))
        for is_less, change in by_states[pair]:
            by_demand.setdefault((is_less, change.ref), []).append(replace(change, at=start, spans=((start, end),)))
    whole = ((cost.head.start, cost.head.end),)
    joined = {key: _joined(changes, whole) for key, changes in sorted(by_demand.items())}
    less, more = (tuple(item for (side, _), item in joined.items() if side is wanted) for wanted in (True, False))
    return RoomChanges(less, more, unjudged / HOUR)


def _changes(before: SteadyState, after: SteadyState, at: datetime) -> Iterator[tuple[bool, RoomChange]]:
    """Every demand whose room differs; first, whether it is less."""
    shrinking = after.shrunk_since(before)
    for ref in before.demands.keys() | after.demands.keys():
        one, other = before.demands.get(ref), after.demands.get(ref)
        if any(side is not None and side.service.is_left for side in (one, other)):
            continue
        left, right = (0 if side is None else side.service.served for side in (one, other))
        chunk = (one.chunk, other.chunk) if one is not None and other is not None and one.chunk != other.chunk else None
        if left == right and (chunk is None or not right):
            continue
        is_smaller = chunk is not None and any(amount > chunk[1].get(name) for name, amount in chunk[0])
        change = RoomChange(
            ref,
            before=None if one is None else left,
            after=None if other is None else right,
            at=at,
            why=_why(one, other, shrinking),
            chunk=None if chunk is None or not (left and right) else _chunk_words(*chunk),
        )
        yield right < left or (right == left and is_smaller), change


def _why(before: DemandCost | None, after: DemandCost | None, shrinking: Collection[str]) -> str:
    """The reason that chunks have no place, of a NodePool that had more nodes before if there is one, or else what the size follows
    from now and did not before."""
    if before is None or after is None:
        return ""
    service = after.service
    if service.why and (not service.ready or service.missing > before.service.missing):
        return service.why_not(shrinking)
    return "; ".join(fact for fact in after.facts if fact not in before.facts)


def _chunk_words(before: Resources, after: Resources) -> tuple[str, str]:
    """The requests that differ: `cpu 100m`, `cpu 1100m`."""
    names = [name for name in dict.fromkeys((*before.names(), *after.names())) if name != PODS]
    changed = [name for name in names if before.get(name) != after.get(name)]
    left, right = (
        ", ".join(f"{name} {readable_amount(name, side.get(name))}" for name in changed) for side in (before, after)
    )
    return left, right


def _joined(changes: Sequence[RoomChange], whole: tuple[tuple[datetime, datetime]]) -> RoomChange:
    """The largest of the changes, the first of equal ones, with the spans of all."""
    spans: list[tuple[datetime, datetime]] = []
    for item in changes:
        start, end = item.spans[0]
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    largest = max(changes, key=lambda item: item.difference)
    # Room that a request has booked is used once, soon. So the end of the booking says nothing.
    is_lasting = tuple(spans) == whole or largest.ref.kind == REQUEST_KIND
    return replace(
        largest,
        spans=tuple(spans),
        is_lasting=is_lasting,
        within=whole[0],
        befores=tuple(sorted({item.before or 0 for item in changes})),
        afters=tuple(sorted({item.after or 0 for item in changes})),
    )


def room_words(change: RoomChange, zone: tzinfo | None, *, why: bool = True) -> str:
    """`shop/web removed (5 chunks)`, `shop/checkout 8 → 2 chunks (2 fit into its limits)`, `shop/web 10 → 4 chunks Fri 07:00–22:00 UTC`."""
    name = change.ref.short
    if change.after is None:
        return f"{name} removed ({_chunks(change.befores)})"
    if change.before is None:
        return f"{name} new ({size_words(change, zone)})"
    return f"{name} {size_words(change, zone)}{f' ({change.reason})' if why and change.reason else ''}"


def size_words(change: RoomChange, zone: tzinfo | None) -> str:
    """`8 → 2 chunks`, `2 or 3 → 12 chunks Fri 07:00–22:00 UTC`, `5 chunks of cpu 100m instead of cpu 1`."""
    when = "" if change.is_lasting else f" {when_words(change, zone)}"
    if change.before is None or change.after is None:
        return f"{_chunks(change.befores if change.after is None else change.afters)}{when}"
    if change.before == change.after and change.chunk is not None:
        return f"{_chunks(change.afters)} of {change.chunk[1]} instead of {change.chunk[0]}{when}"
    return f"{_numbers(change.befores)} → {_chunks(change.afters)}{when}"


def _chunks(numbers: Sequence[int]) -> str:
    return counted(1, "chunk") if numbers == (1,) else f"{_numbers(numbers)} chunks"


def _numbers(numbers: Sequence[int]) -> str:
    """`3`, `2 or 3`, `2 to 9`."""
    few = (numbers[0], numbers[-1])[: len(numbers)]
    return (" or " if len(numbers) == len(few) else " to ").join(f"{number:,}" for number in few)


def named_room(changes: Sequence[RoomChange], zone: tzinfo | None) -> str:
    """Those that change most by name, and how many more there are. A reason that all of several share stands at the end, once."""
    order = sorted(changes, key=lambda item: (item.after is not None, -item.difference, item.ref))
    reasons = {item.reason for item in order}
    is_shared = len(order) > 1 and len(reasons) == 1
    words = listed((room_words(item, zone, why=not is_shared) for item in order), most=_MOST_NAMED)
    return f"{words} ({', '.join(reasons)})" if is_shared and any(reasons) else words


def when_words(change: RoomChange, zone: tzinfo | None) -> str:
    """`Fri 07:00–22:00 UTC`, `Mon–Thu 18:00–08:00 and Fri 18:00–Mon 08:00 CET` where each week is alike; otherwise for how many hours.

    zone: None is the machine's.
    """
    spans = change.spans
    local = [(start.astimezone(zone), end.astimezone(zone)) for start, end in spans]
    groups = _weekly(local, [time.astimezone(zone) for time in change.within]) if len(local) > 1 else []
    if groups and len(groups) <= _MOST_NAMED:
        return f"{listed(groups)} {local[0][0].tzname()}"
    hours = sum((end - start for start, end in spans), timedelta()) / HOUR
    first = moment(spans[0][0], zone)
    if len(spans) == 1:
        return f"for {hours:,.0f} hours from {first}"
    return f"for {hours:,.0f} hours in {len(spans):,} parts, the first from {first}"


def _weekly(spans: Sequence[tuple[datetime, datetime]], within: Sequence[datetime]) -> list[str]:
    """The spans of one week, if every week has them; otherwise none. Local times without their zone, which clock changes leave alike.

    The first span may have begun before the time that is looked at, and the last may go on after it."""
    opens, closes = (time.replace(tzinfo=None) for time in within)
    plain = [(start.replace(tzinfo=None), end.replace(tzinfo=None)) for start, end in spans]
    plain = [(start, end) for start, end in plain if start > opens and end < closes]
    lengths = {start: end - start for start, end in plain}
    for start, length in lengths.items():
        others = (start - _WEEK, start + _WEEK)
        if any(other > opens and other + length < closes and lengths.get(other) != length for other in others):
            return []
    days: dict[str, set[int]] = {}
    for start, end in plain:
        if end - start >= _WEEK:
            return []
        day = "" if end - start < timedelta(days=1) else f"{_DAYS[end.weekday()]} "
        days.setdefault(f"{start:%H:%M}–{day}{end:%H:%M}", set()).add(start.weekday())
    return [f"{_day_words(own)} {times}" for times, own in days.items()]


def _day_words(days: set[int]) -> str:
    first, last = min(days), max(days)
    if len(days) > 2 and last - first + 1 == len(days):  # noqa: PLR2004 - two days are named one by one
        return "daily" if len(days) == len(_DAYS) else f"{_DAYS[first]}–{_DAYS[last]}"
    return ", ".join(_DAYS[day] for day in sorted(days))
