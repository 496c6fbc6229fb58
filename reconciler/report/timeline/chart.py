"""All capacity as lanes, each with the values of one object over time, as a picture; two revisions compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from itertools import groupby

from reconciler.model.refs import counted
from reconciler.model.timelines import CapacityTimeline, FillPoint, joined
from reconciler.report.drawing import (
    NUMBER_ROOM,
    Drawing,
    TimeAxis,
    ValueSpan,
    draw_allowed,
    draw_values,
    fitting,
    number_of,
    width_of,
)
from reconciler.report.words import moment

ASKED, WORTH, ALLOWED = "Asked for", "Schedules", "Disruptions allowed"
"""The groups of lanes, in the order in which they are shown."""
MOST_LANES = 40
_TALL, _FLAT = 44.0, 24.0
_ABOVE = 17.0
"""The height of a name above its lane."""
_LEAST_LEFT = 100


@dataclass(frozen=True, slots=True)
class Lane:
    """group: one of the above. spans: they fill the timeline, and neighbours differ in value."""

    group: str
    name: str
    spans: tuple[ValueSpan, ...]

    @property
    def now(self) -> int | None:
        return self.spans[0].value

    @property
    def is_constant(self) -> bool:
        return len(self.spans) == 1


@dataclass(frozen=True, slots=True)
class LaneRow:
    """What is shown of one object. sides: its lane alone, without a label, or `before` and `after`; words where a revision has no lane."""

    group: str
    name: str
    sides: tuple[tuple[str, Lane | str], ...]

    @property
    def labelled(self) -> list[tuple[str, Lane | str]]:
        """The sides with the labels that they have in a picture: the name stands above, once."""
        (label, first), *others = self.sides
        return [(f"{self.name}, {label}" if label else self.name, first), *others]

    @property
    def values(self) -> list[int]:
        """All values of the sides, which share a scale."""
        return [span.value or 0 for _, side in self.sides if isinstance(side, Lane) for span in side.spans]


def lanes(timeline: CapacityTimeline) -> tuple[Lane, ...]:
    """Every buffer that is ready and static NodePool, every schedule, every NodePool and reason."""
    return tuple(lane for lane in _lanes(timeline) if lane.spans)


def _lanes(timeline: CapacityTimeline) -> Iterator[Lane]:
    for ref, demands in groupby(timeline.demands, key=lambda span: span.ref):
        own = [
            ValueSpan(item.start, item.end, item.replicas, item.why) for item in demands if item.replicas is not None
        ]
        yield _lane_of(ASKED, str(ref), own)
    for schedule in timeline.schedules:
        spans = [ValueSpan(item.start, item.end, item.value) for item in schedule.spans]
        yield _lane_of(WORTH, str(schedule.schedule.ref), spans)
    by_budget = groupby(timeline.budgets, key=lambda span: (span.outcome.node_pool, span.outcome.reason))
    for (pool, reason), budgets in by_budget:
        spans = [ValueSpan(item.start, item.end, item.outcome.allowed, item.outcome.why) for item in budgets]
        yield _lane_of(ALLOWED, _budget_name(pool, reason), spans)


def _lane_of(group: str, name: str, spans: Sequence[ValueSpan]) -> Lane:
    """Neighbours of equal value are one span, with the first one's reason."""
    return Lane(group, name, tuple(joined(spans, lambda span: span.value)))


def shared_out(rows: Sequence[LaneRow], most: int) -> list[LaneRow]:
    """Which of many to show, in their order: as many of each group, as far as it has that many."""
    ranks: Counter[str] = Counter()
    places = []
    for index, row in enumerate(rows):
        places.append((ranks[row.group], index))
        ranks[row.group] += 1
    return [rows[index] for index in sorted(index for _, index in sorted(places)[:most])]


def moving_rows(timeline: CapacityTimeline) -> list[LaneRow]:
    """A row for each lane that changes."""
    return [LaneRow(lane.group, lane.name, (("", lane),)) for lane in lanes(timeline) if not lane.is_constant]


def changed_rows(base: CapacityTimeline, head: CapacityTimeline) -> list[LaneRow]:
    """A row for each lane that differs at some time of both timelines, or is in only one. In the head's order, removed ones last.

    Budgets are not compared where one side alone has no node of the NodePool: 10% of no nodes is 0.
    """
    before = {(lane.group, lane.name): lane for lane in lanes(base)}
    after = {(lane.group, lane.name): lane for lane in lanes(head)}
    unready = {(ASKED, str(span.ref)) for side in (base, head) for span in side.demands if span.replicas is None}
    idle = _without_nodes(base) ^ _without_nodes(head)
    start, end = max(base.start, head.start), min(base.end, head.end)
    rows = []
    for key in dict.fromkeys((*after, *before)):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None and (key in idle or not _differ(old, new, start, end)):
            continue
        missing = "not ready" if key in unready else "absent"
        rows.append(LaneRow(*key, (("before", old or missing), ("after", new or missing))))
    return sorted(rows, key=lambda row: (ASKED, WORTH, ALLOWED).index(row.group))


def _without_nodes(timeline: CapacityTimeline) -> set[tuple[str, str]]:
    return {
        (ALLOWED, _budget_name(span.outcome.node_pool, span.outcome.reason))
        for span in timeline.budgets
        if not span.outcome.total
    }


def _budget_name(pool: str, reason: str) -> str:
    return f"NodePool/{pool} {reason}"


def _differ(before: Lane, after: Lane, start: datetime, end: datetime) -> bool:
    """Whether their values differ at any time of [start, end), wherever their first spans begin."""

    def worth(lane: Lane) -> list[tuple[datetime, int | None]]:
        return [(max(span.start, start), span.value) for span in lane.spans if span.end > start and span.start < end]

    return worth(before) != worth(after)


@dataclass(frozen=True, slots=True)
class Layout:
    """width: of the picture, in pixels. left: where lanes begin; names are to the left of them, or above them where there is no room."""

    width: int = 1040
    left: int = 236

    @property
    def names_above(self) -> bool:
        return self.left < _LEAST_LEFT


DESK, PHONE = Layout(), Layout(358, 8)


@dataclass(frozen=True, slots=True)
class Present:
    """now: an instant of the timeline. there: by a lane's name, how many chunks or nodes there were, the oldest point first."""

    now: datetime
    there: Mapping[str, Sequence[FillPoint]] = field(default_factory=dict)


def timeline_chart(
    timeline: CapacityTimeline, *, zone: tzinfo, layout: Layout = DESK, present: Present | None = None
) -> str:
    """One SVG; "" when nothing changes in the span. present: drawn as a line, with what there was before it."""
    return _chart("Capacity over the coming week", timeline, moving_rows(timeline), zone, layout, present)


def difference_chart(base: CapacityTimeline, head: CapacityTimeline, *, zone: tzinfo) -> str:
    """One SVG with each lane that differs, before and after; "" when none does."""
    return _chart("Capacity over the coming week, before and after", head, changed_rows(base, head), zone)


def _chart(
    title: str,
    timeline: CapacityTimeline,
    rows: Sequence[LaneRow],
    zone: tzinfo,
    layout: Layout = DESK,
    present: Present | None = None,
) -> str:
    if not rows:
        return ""
    drawing = Drawing(layout.width, title, described(rows))
    if present is None:
        drawing.text(12, 26, title, "head")
        drawing.text(layout.width - 12, 26, moment(timeline.start, zone), "soft small", anchor="end")
    axis = TimeAxis(timeline.start, timeline.end, zone, layout.left, layout.width - layout.left - 12)
    y = 46.0 if present is None else 8.0
    for group, members in groupby(shared_out(rows, MOST_LANES), key=lambda row: row.group):
        y = draw_group(drawing, axis, group, list(members), top=y, layout=layout, present=present)
    if len(rows) > MOST_LANES:
        drawing.text(12, y, f"… and {len(rows) - MOST_LANES:,} more", "soft small")
        y += 18
    return drawing.svg(y)


def draw_group(
    drawing: Drawing,
    axis: TimeAxis,
    group: str,
    rows: Sequence[LaneRow],
    *,
    top: float,
    layout: Layout,
    present: Present | None,
) -> float:
    """Draws a heading with the days, and a lane for each object. Returns the y at which the next group begins."""
    above = _ABOVE if layout.names_above else 0.0
    height = _FLAT if group == ALLOWED else _TALL
    drawing.text(min(12, layout.left), top + 12, group, "strong")
    begins = top + (44 if layout.names_above else 26)
    bottom = begins + sum(len(row.sides) for row in rows) * (height + above)
    axis.draw(drawing, begins - 6, bottom)
    values = [value for row in rows for value in row.values if value]
    y = begins
    room = layout.width - 16 if layout.names_above else layout.left - 24
    has_room = all(width_of(name) <= room for row in rows for name, _ in row.labelled)
    for row in rows:
        for name, lane in row.labelled:
            shown = fitting(name if has_room else _without_kind(name), room)
            if layout.names_above:
                drawing.text(layout.left, y + 11, shown, "small", tooltip=name)
            else:
                drawing.text(12, y + height / 2 + 4, shown, "small", tooltip=name)
            y += above
            if isinstance(lane, str):
                drawing.text(layout.left + 4, y + height / 2 + 4, lane, "soft small")
            elif group == ALLOWED:
                draw_allowed(drawing, axis, lane.spans, top=y + 1, height=height - 3, values=values)
            else:
                draw_values(drawing, axis, lane.spans, top=y + 1, height=height - 5, values=row.values)
                if present is not None and present.there.get(name):
                    most = max((*row.values, 1))
                    _draw_there(drawing, axis, present.there[name], present.now, most, y + 1, height - 5)
            if present is not None:  # not through a name above the lane
                drawing.line(axis.x(present.now), y - 1, axis.x(present.now), y + height, "now")
            y += height
    if present is not None:
        drawing.text(axis.x(present.now), bottom + 11, "now", "bad small")
    return bottom + 18


def _draw_there(
    drawing: Drawing, axis: TimeAxis, points: Sequence[FillPoint], now: datetime, most: int, top: float, height: float
) -> None:
    """A dashed outline of what there was until now, on the scale of the bars beside it."""
    base, scale = top + height, (height - NUMBER_ROOM) / most
    places = [(axis.x(point.since), base - min(point.ready, most) * scale) for point in points]
    shown = [*(place for place in places[:-1] if place[0] > axis.left), places[-1]]
    drawing.steps([*shown, (axis.x(now), shown[-1][1])], base, "free")


def _without_kind(name: str) -> str:
    """`shop/web`. Used for all names of a group if not every full name fits."""
    return name.partition("/")[2] or name


def described(rows: Sequence[LaneRow]) -> str:
    """The picture in words."""
    parts = []
    for row in rows[:MOST_LANES]:
        for name, lane in row.labelled:
            if isinstance(lane, str):
                parts.append(f"{name}: {lane}")
            else:
                changes = counted(len(lane.spans) - 1, "change")
                parts.append(f"{name}: {number_of(lane.now)} at first, {changes}")
    return "; ".join(parts)
