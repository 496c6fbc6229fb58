"""The coming week as rows: of the daemon's page, and of text blocks for a pull request, since GitHub shows no inline SVG.

A line of blocks has a cell for every four hours of the reader's time zone. A cell draws its highest value, or for budgets the lowest,
so that neither a peak nor a closed budget is hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import groupby

from reconciler.model.refs import abridged
from reconciler.model.timelines import CapacityTimeline, FillPoint
from reconciler.report.drawing import UNBOUNDED, day_words, instant_words, midnight, midnights, number_of
from reconciler.report.escaping import timestamp
from reconciler.report.timeline.chart import (
    ALLOWED,
    ASKED,
    DESK,
    PHONE,
    Lane,
    LaneRow,
    Present,
    changed_rows,
    difference_chart,
    lanes,
    moving_rows,
    shared_out,
    timeline_chart,
)
from reconciler.report.words import Row, local_zone, moment
from reconciler.zone_data import time_zone

BLOCKS = "▁▂▃▄▅▆▇█"
CELLS = 6
"""Cells for each day."""
MOST_LANES = 16
MOST_CHANGES = 3
MOST_CONSTANT = 12
VARIES = "◦"
LEGEND = (
    "Each block is four hours. Its height is the highest value in them, relative to the {}; for budgets it is the lowest. "
    "· is 0, ◦ is 0 for part of the block, ∞ is no limit."
)
MOST_ROWS = 500
"""The most rows of the table. Nobody would read more."""


def week_rows(timeline: CapacityTimeline, zone: tzinfo) -> Row:
    """Rows for the templates: a line for each lane that changes, and constant values in words."""
    every, moving = lanes(timeline), moving_rows(timeline)
    of_them = f"{len(moving):,} of {len(every):,} change" if moving else "no change"
    week = _week(f"The coming week: {of_them}", moving, timeline, zone, "line's maximum")
    constant = _constant([lane for lane in every if lane.is_constant])
    return {**week, "count": len(every), "constant": constant, "chart": timeline_chart(timeline, zone=zone)}


def change_rows(base: CapacityTimeline, head: CapacityTimeline, zone: tzinfo) -> Row:
    """The same for two revisions: only lanes that differ, with lines for before and after."""
    changes = changed_rows(base, head)
    differ = f"{len(changes):,} differ{'s' if len(changes) == 1 else ''}"
    week = _week(f"The coming week, before and after: {differ}", changes, head, zone, "maximum of both lines")
    return {**week, "count": len(changes), "constant": [], "chart": difference_chart(base, head, zone=zone)}


def _week(title: str, rows: Sequence[LaneRow], timeline: CapacityTimeline, zone: tzinfo, highest: str) -> Row:
    """highest: what the highest block stands for."""
    return {
        "title": title,
        "heading": " ".join(name.ljust(CELLS) for name, _, _ in _days(timeline, zone)).rstrip(),
        "legend": LEGEND.format(highest),
        "zone": timeline.start.astimezone(zone).tzname() or "",
        "lines": [_line(row, timeline, zone) for row in shared_out(rows, MOST_LANES)],
        "left": max(0, len(rows) - MOST_LANES),
    }


def _constant(those: Sequence[Lane]) -> list[str]:
    """A line for each group with its constant values."""
    lines = []
    for group, members in groupby(those, key=lambda lane: lane.group):
        words = [f"{lane.name} {number_of(lane.now)}" for lane in members]
        lines.append(f"{group}: {abridged(words, MOST_CONSTANT)}")
    return lines


def _line(row: LaneRow, timeline: CapacityTimeline, zone: tzinfo) -> Row:
    most = max(row.values, default=0)
    blocks = [
        (label, side if isinstance(side, str) else _blocks(side, timeline, zone, most)) for label, side in row.sides
    ]
    words = " → ".join(side if isinstance(side, str) else _range_words(side) for _, side in row.sides)
    alone = row.sides[0][1]
    if len(row.sides) == 1 and isinstance(alone, Lane):
        words = f"now {number_of(alone.now)}; {_change_words(alone, zone)}"
    return {"name": row.name, "blocks": blocks, "words": words}


def _range_words(lane: Lane) -> str:
    """`1 to 8`, `0 to ∞`, or the one value."""
    values = sorted({span.value for span in lane.spans}, key=lambda value: (value is None, value or 0))
    return number_of(values[0]) if len(values) == 1 else f"{number_of(values[0])} to {number_of(values[-1])}"


def _change_words(lane: Lane, zone: tzinfo) -> str:
    changes = [f"{number_of(span.value)} from {instant_words(span.start, zone)}" for span in lane.spans[1:]]
    left = len(changes) - MOST_CHANGES
    return ", ".join(changes[:MOST_CHANGES]) + (f", and {left:,} more changes" if left > 0 else "")


def _days(timeline: CapacityTimeline, zone: tzinfo) -> list[tuple[str, datetime, datetime]]:
    """Name, begin and end of each day, the first and last in full."""
    return [
        (day_words(day)[:CELLS], begins, midnight(day + timedelta(days=1), zone))
        for day, begins in midnights(timeline.start, timeline.end, zone)
    ]


def _blocks(lane: Lane, timeline: CapacityTimeline, zone: tzinfo, most: int) -> str:
    days = []
    for _, begins, ends in _days(timeline, zone):
        step = (ends - begins) / CELLS
        days.append("".join(_block(lane, timeline, begins + step * cell, step, most) for cell in range(CELLS)))
    return "|".join(days)


def _block(lane: Lane, timeline: CapacityTimeline, begins: datetime, step: timedelta, most: int) -> str:
    start, end = max(begins, timeline.start), min(begins + step, timeline.end)
    values = [span.value for span in lane.spans if span.start < end and span.end > start]
    if start >= end or not values:
        return " "
    numbers = [value for value in values if value is not None]
    if not numbers or (len(numbers) < len(values) and lane.group != ALLOWED):
        return UNBOUNDED
    value = min(numbers) if lane.group == ALLOWED else max(numbers)
    if value <= 0:
        # For budgets the lowest value is drawn, so a short window that allows disruption needs a sign of its own.
        return VARIES if lane.group == ALLOWED and len(set(values)) > 1 else "·"
    return BLOCKS[max(0, -(-value * len(BLOCKS) // max(1, most)) - 1)]


def timeline_page(
    timeline: CapacityTimeline, now: datetime, *, there: Mapping[str, Sequence[FillPoint]], zone: tzinfo | None = None
) -> Row:
    """The picture shows what changes in the week; the table everything, with its value now and next.

    there: by buffer and static NodePool (`CapacityBuffer/shop/web`), how many chunks or nodes there were, the oldest point first. zone: for
    the picture; None is that of the schedules if they share one, and otherwise the machine's.
    """
    names = {item.schedule.timezone for item in timeline.schedules}
    place = zone or (time_zone(names.pop()) if len(names) == 1 else local_zone(now))
    zones = {str(item.schedule.ref): item.schedule.timezone for item in timeline.schedules}
    every = lanes(timeline)
    return {
        "when": moment(now, place),
        "dashed": any(there.get(lane.name) and not lane.is_constant for lane in every),
        "charts": [
            {"look": look, "svg": timeline_chart(timeline, zone=place, layout=layout, present=Present(now, there))}
            for look, layout in (("wide", DESK), ("slim", PHONE))
            if any(not lane.is_constant for lane in every)
        ],
        "rows": [
            _lane_row(lane, now, there.get(lane.name, ()), zones.get(lane.name, "")) for lane in every[:MOST_ROWS]
        ],
        "left": max(0, len(every) - MOST_ROWS),
    }


def _lane_row(lane: Lane, now: datetime, there: Sequence[FillPoint], zone: str) -> Row:
    """zone: a schedule's own, in which its next time is told too."""
    following = next((span for span in lane.spans if span.start > now), None)
    present = next(span for span in reversed(lane.spans) if span.start <= now)
    lacks = lane.group == ASKED and bool(there) and there[-1].ready < (present.value or 0)
    return {
        "group": lane.group,
        "name": lane.name,
        "now": number_of(present.value),
        "there": f"{there[-1].ready:,}" if there else "",
        "tone": "bad" if lacks else "",
        "next": "" if following is None else number_of(following.value),
        "at": None if following is None else timestamp(following.start),
        "local": "" if following is None or not zone else f"{instant_words(following.start, time_zone(zone))} {zone}",
        "why": present.why,
    }
