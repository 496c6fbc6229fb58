"""A capacity schedule as a picture: a week, hour by hour in its own time zone, and the whole span. Called by `headroom schedule`.

Each value has its number, a colour and, over the span, a height. Collisions are numbered, with their first times listed;
behaviors that are never in effect are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from reconciler.model.findings import Finding
from reconciler.model.timelines import Collision, ScheduleSpan, ScheduleTimeline
from reconciler.report.drawing.svg import NORMAL, Drawing, fitting, lines_of, on_step, step_of, width_of
from reconciler.report.drawing.time_axis import (
    Pass,
    TimeAxis,
    day_pieces,
    day_words,
    instant_words,
    midnight,
    span_words,
)
from reconciler.report.drawing.value_lanes import ValueSpan, draw_values
from reconciler.report.words import behavior_name, moment
from reconciler.zone_data import time_zone

WIDTH = 760
_LEFT = 88
_GRID = WIDTH - _LEFT - 12
_ROW = 26
_WEEK = 7
_TWO_DAYS = timedelta(days=2)
_BADGE = 14
MOST_COLLISIONS = 9
_MARKED = {"overlapping-behaviors", "overlap-settled"}
"""Findings that the numbered marks already show."""


@dataclass(frozen=True, slots=True)
class _Badge:
    """The number of a collision in the grid. left: pixels."""

    number: int
    day: date
    left: float


def schedule_chart(timelines: Sequence[ScheduleTimeline], *, now: datetime, findings: Sequence[Finding] = ()) -> str:
    """One SVG with the schedules one below the other, each in its own zone. findings: shown below their schedule."""
    title = "Capacity schedules" if len(timelines) != 1 else f"Schedule {_ref(timelines[0])}"
    told = (
        " ".join(f"{_ref(item)}: {_description(item, time_zone(item.schedule.timezone))}" for item in timelines)
        or "There is no schedule."
    )
    drawing = Drawing(WIDTH, title, told)
    y = 0.0
    for timeline in timelines:
        own = [finding for finding in findings if finding.ref == timeline.schedule.ref]
        y = _schedule(drawing, timeline, own, now, y)
    if not timelines:
        drawing.text(12, 26, "There is no schedule.", "soft")
        y = 42.0
    return drawing.svg(y)


def _schedule(
    drawing: Drawing, timeline: ScheduleTimeline, findings: Sequence[Finding], now: datetime, top: float
) -> float:
    """Draws one schedule. Returns its bottom."""
    zone = time_zone(timeline.schedule.timezone)
    ref = str(timeline.schedule.ref)
    drawing.text(12, top + 26, fitting(ref, WIDTH - 300, 15), "head", tooltip=ref)
    drawing.text(WIDTH - 12, top + 26, moment(now, zone), "soft small", anchor="end")
    drawing.text(12, top + 46, _now_words(timeline, zone))
    y = _legend(drawing, timeline, top + 66)
    y = _week(drawing, timeline, zone, now, y + 26)
    if timeline.end - timeline.start > timedelta(days=_WEEK + 1):
        y = _span(drawing, timeline, zone, now, y + 42)
    return _notes(drawing, timeline, zone, findings, y + 24)


def _ref(timeline: ScheduleTimeline) -> str:
    return f"{timeline.schedule.ref.namespace}/{timeline.schedule.ref.name}"


def _now_words(timeline: ScheduleTimeline, zone: ZoneInfo) -> str:
    outcome = timeline.outcome
    words = f"Now {outcome.current_value:,}"
    if outcome.next_value is None or outcome.next_value_time is None:
        return f"{words}; nothing changes any more."
    return f"{words}; {outcome.next_value:,} from {moment(outcome.next_value_time, zone)}."


def _description(timeline: ScheduleTimeline, zone: ZoneInfo) -> str:
    changes = [
        f"{span.value} from {instant_words(span.start, zone)}"
        for index, span in enumerate(timeline.spans)
        if index and span.value != timeline.spans[index - 1].value
    ]
    beyond = f", and {len(changes) - 20:,} more" if len(changes) > 20 else ""  # noqa: PLR2004 - a listener's patience
    words = f"{_now_words(timeline, zone)} Time zone {timeline.schedule.timezone}."
    return f"{words} Changes: {'; '.join(changes[:20])}{beyond}." if changes else words


def _values(timeline: ScheduleTimeline) -> list[int]:
    schedule = timeline.schedule
    return [schedule.default_replicas, *(behavior.replicas for behavior in schedule.behaviors)]


def _legend(drawing: Drawing, timeline: ScheduleTimeline, y: float) -> float:
    """Draws each value once, with what it comes from, in as many lines as needed. Returns the last base line."""
    schedule = timeline.schedule
    givers: dict[int, list[str]] = {schedule.default_replicas: ["default"]}
    for index, behavior in enumerate(schedule.behaviors):
        givers.setdefault(behavior.replicas, []).append(f"behaviors[{index}]")
    x = 12.0
    for value in sorted(givers):
        words = f"{value:,} {', '.join(givers[value])}"
        shown = fitting(words, WIDTH - 60)
        if x > 12 and x + 20 + width_of(shown) > WIDTH - 12:  # noqa: PLR2004 - the left margin
            x, y = 12.0, y + 18
        drawing.rectangle(x, y - 10, 12, 12, f"v{step_of(value, _values(timeline))}", round_by=2)
        drawing.text(x + 17, y, shown, "small", tooltip=words)
        x += 17 + width_of(shown) + 14
    return y


def _week(drawing: Drawing, timeline: ScheduleTimeline, zone: ZoneInfo, now: datetime, top: float) -> float:
    """Draws a row for each day, midnight to midnight. Returns the bottom."""
    first = timeline.start.astimezone(zone).date()
    days = [first + timedelta(days=index) for index in range(_WEEK)]
    days = [day for day in days if midnight(day, zone) < timeline.end]
    bottom = top + _ROW * len(days)
    for row, day in enumerate(days):
        drawing.text(_LEFT - 8, top + row * _ROW + 17, day_words(day), "small", anchor="end")
        drawing.rectangle(_LEFT, top + row * _ROW + 1, _GRID, _ROW - 2, "faint")
    for hour in range(0, 25, 3):
        x = _LEFT + _GRID * hour / 24
        drawing.text(x, top - 7, f"{hour:02}", "soft small", anchor="middle")
    badges = _badges(timeline, zone, days)
    for span in timeline.spans:
        _week_span(drawing, timeline, zone, span, days=days, top=top, badges=badges)
    for hour in range(0, 25, 3):
        x = _LEFT + _GRID * hour / 24
        drawing.line(x, top - 3, x, bottom, "line")
    for number, collision in enumerate(timeline.collisions[:MOST_COLLISIONS], 1):
        tooltip = f"Collision {number}: {_collision_words(timeline, collision, zone)}"
        for piece in day_pieces(collision.start, min(collision.end, midnight(days[-1] + _TWO_DAYS, zone)), zone):
            if piece.day in days:
                x, y = _LEFT + _GRID * piece.first_hour / 24, top + days.index(piece.day) * _ROW
                width = max(4.0, _GRID * (piece.last_hour - piece.first_hour) / 24 - 2)
                drawing.rectangle(x + 1, y + 2, width, _ROW - 4, "mark", tooltip=tooltip)
        for badge in (item for item in badges if item.number == number):
            y = top + days.index(badge.day) * _ROW
            drawing.rectangle(badge.left, y + 3, _BADGE - 1, _ROW - 6, "page", tooltip=tooltip)
            drawing.text(badge.left + 6.5, y + 17, str(number), "strong bad small", anchor="middle", tooltip=tooltip)
    today = now.astimezone(zone)
    if today.date() in days and timeline.start <= now < timeline.end:
        x = _LEFT + _GRID * (today.hour + today.minute / 60) / 24
        y = top + days.index(today.date()) * _ROW
        drawing.line(x, y, x, y + _ROW, "now")
    return bottom


def _badges(timeline: ScheduleTimeline, zone: ZoneInfo, days: Sequence[date]) -> list[_Badge]:
    """The positions of the numbers of collisions: where these begin, side by side if several begin together."""
    found: list[_Badge] = []
    for number, collision in enumerate(timeline.collisions[:MOST_COLLISIONS], 1):
        piece = next(day_pieces(collision.start, collision.end, zone))
        if piece.day not in days:
            continue
        left = min(_LEFT + _GRID * piece.first_hour / 24 + 2, _LEFT + _GRID - _BADGE * MOST_COLLISIONS)
        while any(item.day == piece.day and abs(item.left - left) < _BADGE for item in found):
            left += 1
        found.append(_Badge(number, piece.day, left))
    return found


def _week_span(
    drawing: Drawing,
    timeline: ScheduleTimeline,
    zone: ZoneInfo,
    span: ScheduleSpan,
    *,
    days: Sequence[date],
    top: float,
    badges: Sequence[_Badge],
) -> None:
    """Draws a span in its days, with its number if there is room next to the numbers of collisions."""
    last_day_end = midnight(days[-1] + _TWO_DAYS, zone)
    step = step_of(span.value, _values(timeline))
    tooltip = f"{span.value:,} ({behavior_name(span.behavior)}): {span_words(span.start, span.end, zone)}"
    for piece in day_pieces(span.start, min(span.end, last_day_end), zone):
        if piece.day not in days:
            continue
        y = top + days.index(piece.day) * _ROW
        x = _LEFT + _GRID * piece.first_hour / 24
        width = _GRID * (piece.last_hour - piece.first_hour) / 24
        # A time that occurs twice is drawn in halves: the first above, the second below.
        half = (_ROW - 2) / 2
        top_of = y + 1 + (half if piece.which is Pass.AGAIN else 0)
        height = _ROW - 2 if piece.which is Pass.ONLY else half
        drawing.rectangle(x, top_of, max(1.0, width - 0.5), height, f"v{step}", tooltip=tooltip)
        if piece.which is not Pass.ONLY:
            continue
        number = f"{span.value:,}"
        room = width_of(number, NORMAL) + 2
        left = x + (width - room) / 2
        for badge in sorted((item for item in badges if item.day == piece.day), key=lambda item: item.left):
            if badge.left < left + room and left < badge.left + _BADGE:
                left = badge.left + _BADGE
        if x <= left and left + room <= x + width:
            drawing.text(left + room / 2, y + 17, number, on_step(step), anchor="middle", tooltip=tooltip)


def _span(drawing: Drawing, timeline: ScheduleTimeline, zone: ZoneInfo, now: datetime, top: float) -> float:
    """Draws the whole span as bars. Returns the bottom."""
    axis = TimeAxis(timeline.start, timeline.end, zone, _LEFT, _GRID)
    height = 64.0
    drawing.text(_LEFT - 8, top + height - 4, "whole span", "soft small", anchor="end")
    axis.draw(drawing, top, top + height)
    spans = [ValueSpan(span.start, span.end, span.value) for span in timeline.spans]
    draw_values(drawing, axis, spans, top=top, height=height)
    for collision in timeline.collisions[:MOST_COLLISIONS]:
        x = axis.x(collision.start)
        tooltip = f"Collision: {_collision_words(timeline, collision, zone)}"
        drawing.rectangle(x, top + height + 3, max(3.0, axis.x(collision.end) - x), 4, "none", tooltip=tooltip)
    if timeline.start < now < timeline.end:
        drawing.line(axis.x(now), top, axis.x(now), top + height, "now")
    return top + height + 8


def _collision_words(timeline: ScheduleTimeline, collision: Collision, zone: ZoneInfo) -> str:
    behaviors = timeline.schedule.behaviors
    winner, loser = behaviors[collision.winner], behaviors[collision.loser]
    why = "higher priority" if winner.priority > loser.priority else "first in the spec"
    return (
        f"{span_words(collision.start, collision.end, zone)}: behaviors[{collision.winner}] ({winner.replicas:,}) "
        f"wins over behaviors[{collision.loser}] ({loser.replicas:,}), {why}"
    )


def _notes(
    drawing: Drawing, timeline: ScheduleTimeline, zone: ZoneInfo, findings: Sequence[Finding], y: float
) -> float:
    """Draws a line for each collision, behavior without effect, and finding. Returns the height of the whole drawing."""
    lines: list[tuple[str, str]] = []
    for number, collision in enumerate(timeline.collisions[:MOST_COLLISIONS], 1):
        lines.append(("bad", f"{number}  Collision, first {_collision_words(timeline, collision, zone)}"))
    left = len(timeline.collisions) - MOST_COLLISIONS
    if left > 0:
        lines.append(("soft", f"… and {left:,} more pairs that collide"))
    seen = {span.behavior for span in timeline.spans}
    told = " ".join(finding.message for finding in findings)
    for index, behavior in enumerate(timeline.schedule.behaviors):
        if index not in seen and f"behaviors[{index}]" not in told:
            lines.append(("soft", f"behaviors[{index}] ({behavior.replicas:,}) is never in effect in this span"))
    lines += [("bad", finding.message) for finding in findings if finding.code not in _MARKED]
    lines.append(("soft", f"Times are {timeline.schedule.timezone}."))
    for look, words in lines:
        for line in lines_of(words, WIDTH - 24):
            drawing.text(12, y, line, f"{look} small")
            y += 17
    return y
