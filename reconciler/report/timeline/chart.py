"""All capacity over time as one picture: demands, schedules and disruption budgets.

Only what changes in the span is drawn, or what differs between two revisions. The page lists constant values in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from reconciler.model.fill import FillPoint
from reconciler.model.timelines import CapacityTimeline
from reconciler.report.drawing.svg import Drawing, fitting, width_of
from reconciler.report.drawing.time_axis import TimeAxis
from reconciler.report.drawing.value_lanes import NUMBER_ROOM, draw_allowed, draw_values, number_of
from reconciler.report.timeline.lanes import ALLOWED, Lane, LaneChange, lane_changes, lanes, shared_out
from reconciler.report.words import counted, moment

MOST_LANES = 40
_TALL, _FLAT = 44.0, 24.0
_ABOVE = 15.0
"""The height of a name above its lane."""
_Row = tuple[str, Lane | str]
"""The label, and the lane to draw, or words if that revision has none."""


@dataclass(frozen=True, slots=True)
class Layout:
    """width: of the picture, in pixels. left: where lanes begin; names are to the left of them, or above them where there is no room."""

    width: int = 1040
    left: int = 236

    @property
    def names_above(self) -> bool:
        return self.left < _LEAST_LEFT


DESK, PHONE = Layout(), Layout(358, 8)
_LEAST_LEFT = 100


@dataclass(frozen=True, slots=True)
class Present:
    """now: an instant of the timeline. there: by a lane's name, how many chunks or nodes there were, the oldest point first."""

    now: datetime
    there: Mapping[str, Sequence[FillPoint]] = field(default_factory=dict)


def timeline_chart(
    timeline: CapacityTimeline, *, zone: tzinfo, layout: Layout = DESK, present: Present | None = None
) -> str:
    """One SVG; "" when nothing changes in the span. present: drawn as a line, with what there was before it."""
    moving = [[(lane.name, lane)] for lane in lanes(timeline) if not lane.is_constant]
    return _chart("Capacity over the coming week", timeline, moving, zone, layout, present)


def difference_chart(base: CapacityTimeline, head: CapacityTimeline, *, zone: tzinfo) -> str:
    """One SVG with each lane that differs, before and after; "" when none does."""
    rows = [_sides(item) for item in lane_changes(base, head)]
    return _chart("Capacity over the coming week, before and after", head, rows, zone)


def _sides(item: LaneChange) -> list[_Row]:
    return [(f"{item.either.name}, before", item.before or item.missing), ("after", item.after or item.missing)]


def _chart(  # noqa: PLR0917 - title, content and look
    title: str,
    timeline: CapacityTimeline,
    rows: Sequence[Sequence[_Row]],
    zone: tzinfo,
    layout: Layout = DESK,
    present: Present | None = None,
) -> str:
    if not rows:
        return ""
    drawing = Drawing(layout.width, title, _description(rows))
    if present is None:
        drawing.text(12, 26, title, "head")
        drawing.text(layout.width - 12, 26, moment(timeline.start, zone), "soft small", anchor="end")
    axis = TimeAxis(timeline.start, timeline.end, zone, layout.left, layout.width - layout.left - 12)
    groups: dict[str, list[Sequence[_Row]]] = {}
    for row in (rows[index] for index in shared_out([_lane(row).group for row in rows], MOST_LANES)):
        groups.setdefault(_lane(row).group, []).append(row)
    y = 46.0 if present is None else 8.0
    for group, members in groups.items():
        y = _group(drawing, axis, group, members, top=y, layout=layout, present=present)
    if len(rows) > MOST_LANES:
        drawing.text(12, y, f"… and {len(rows) - MOST_LANES:,} more", "soft small")
        y += 18
    return drawing.svg(y)


def _lane(row: Sequence[_Row]) -> Lane:
    return next(lane for _, lane in row if isinstance(lane, Lane))


def _group(
    drawing: Drawing,
    axis: TimeAxis,
    group: str,
    rows: Sequence[Sequence[_Row]],
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
    bottom = begins + sum(len(row) for row in rows) * (height + above)
    axis.draw(drawing, begins - 6, bottom)
    values = [
        span.value for row in rows for _, lane in row if isinstance(lane, Lane) for span in lane.spans if span.value
    ]
    y = begins
    room = layout.width - 16 if layout.names_above else layout.left - 24
    has_room = all(width_of(name) <= room for row in rows for name, _ in row)
    for row in rows:
        for name, lane in row:
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
                # Before and after share a scale.
                scale = [span.value or 0 for _, side in row if isinstance(side, Lane) for span in side.spans]
                draw_values(drawing, axis, lane.spans, top=y + 1, height=height - 5, values=scale)
                if present is not None and present.there.get(name):
                    _draw_there(drawing, axis, present.there[name], present.now, max((*scale, 1)), y + 1, height - 5)
            y += height
    if present is not None:
        x = axis.x(present.now)
        drawing.line(x, begins - 6, x, bottom, "now")
        drawing.text(x, bottom + 11, "now", "bad small")
    return bottom + 18


def _draw_there(  # noqa: PLR0917 - a place on a drawing
    drawing: Drawing,
    axis: TimeAxis,
    points: Sequence[FillPoint],
    now: datetime,
    most: int,
    top: float,
    height: float,
) -> None:
    """A dashed outline of what there was until now, on the scale of the bars beside it."""
    base, scale = top + height, (height - NUMBER_ROOM) / most
    known = [(axis.x(point.since), base - min(point.ready, most) * scale) for point in points]
    shown = [*(place for place in known[:-1] if place[0] > axis.left), known[-1]]
    drawing.steps([*shown, (axis.x(now), shown[-1][1])], base, "free")


def _without_kind(name: str) -> str:
    """`shop/web`. Used for all names of a group if not every full name fits."""
    return name.partition("/")[2] or name


def _description(rows: Sequence[Sequence[_Row]]) -> str:
    parts = []
    for row in rows[:MOST_LANES]:
        for name, lane in row:
            if isinstance(lane, str):
                parts.append(f"{name}: {lane}")
            else:
                changes = counted(len(lane.spans) - 1, "change")
                parts.append(f"{name}: {number_of(lane.now)} at first, {changes}")
    return "; ".join(parts)
