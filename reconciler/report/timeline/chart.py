"""All capacity over time as one picture: demands, schedules and disruption budgets.

Only what changes in the span is drawn, or what differs between two revisions. The page lists constant values in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from reconciler.model.timelines import CapacityTimeline
from reconciler.report.drawing.svg import Drawing, fitting, width_of
from reconciler.report.drawing.time_axis import TimeAxis
from reconciler.report.drawing.value_lanes import draw_allowed, draw_values, number_of
from reconciler.report.timeline.lanes import ALLOWED, Lane, LaneChange, lane_changes, lanes, shared_out
from reconciler.report.words import counted, moment

WIDTH = 1040
LEFT = 236
GRID = WIDTH - LEFT - 12
MOST_LANES = 40
_TALL, _FLAT = 44.0, 24.0
_Row = tuple[str, Lane | str]
"""The label, and the lane to draw, or words if that revision has none."""


def timeline_chart(timeline: CapacityTimeline, *, zone: tzinfo) -> str:
    """One SVG; "" when nothing changes in the span."""
    moving = [lane for lane in lanes(timeline) if not lane.is_constant]
    return _chart("Capacity over the coming week", timeline, [[(lane.name, lane)] for lane in moving], zone)


def difference_chart(base: CapacityTimeline, head: CapacityTimeline, *, zone: tzinfo) -> str:
    """One SVG with each lane that differs, before and after; "" when none does."""
    rows = [_sides(item) for item in lane_changes(base, head)]
    return _chart("Capacity over the coming week, before and after", head, rows, zone)


def _sides(item: LaneChange) -> list[_Row]:
    return [(f"{item.either.name}, before", item.before or item.missing), ("after", item.after or item.missing)]


def _chart(title: str, timeline: CapacityTimeline, rows: Sequence[Sequence[_Row]], zone: tzinfo) -> str:
    if not rows:
        return ""
    drawing = Drawing(WIDTH, title, _description(rows))
    drawing.text(12, 26, title, "head")
    drawing.text(WIDTH - 12, 26, moment(timeline.start, zone), "soft small", anchor="end")
    axis = TimeAxis(timeline.start, timeline.end, zone, LEFT, GRID)
    groups: dict[str, list[Sequence[_Row]]] = {}
    for row in (rows[index] for index in shared_out([_lane(row).group for row in rows], MOST_LANES)):
        groups.setdefault(_lane(row).group, []).append(row)
    y = 46.0
    for group, members in groups.items():
        y = _group(drawing, axis, group, members, top=y)
    if len(rows) > MOST_LANES:
        drawing.text(12, y, f"… and {len(rows) - MOST_LANES:,} more", "soft small")
        y += 18
    return drawing.svg(y)


def _lane(row: Sequence[_Row]) -> Lane:
    return next(lane for _, lane in row if isinstance(lane, Lane))


def _group(drawing: Drawing, axis: TimeAxis, group: str, rows: Sequence[Sequence[_Row]], *, top: float) -> float:
    """Draws a heading with the days, and a lane for each object. Returns the y at which the next group begins."""
    height = _FLAT if group == ALLOWED else _TALL
    drawing.text(12, top + 12, group, "strong")
    begins = top + 26
    bottom = begins + sum(len(row) for row in rows) * height
    axis.draw(drawing, begins - 6, bottom)
    values = [
        span.value for row in rows for _, lane in row if isinstance(lane, Lane) for span in lane.spans if span.value
    ]
    y = begins
    has_room = all(width_of(name) <= LEFT - 24 for row in rows for name, _ in row)
    for row in rows:
        for name, lane in row:
            shown = name if has_room else _without_kind(name)
            drawing.text(12, y + height / 2 + 4, fitting(shown, LEFT - 24), "small", tooltip=name)
            if isinstance(lane, str):
                drawing.text(LEFT + 4, y + height / 2 + 4, lane, "soft small")
            elif group == ALLOWED:
                draw_allowed(drawing, axis, lane.spans, top=y + 1, height=height - 3, values=values)
            else:
                # Before and after share a scale.
                scale = [span.value or 0 for _, side in row if isinstance(side, Lane) for span in side.spans]
                draw_values(drawing, axis, lane.spans, top=y + 1, height=height - 5, values=scale)
            y += height
    return bottom + 18


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
