"""Capacity schedules as JSON, as rows for `schedule.html.j2`, as the manifest itself, and as a picture.

Each value has its number, a colour and a height. Collisions are numbered, with their first times listed; behaviors that are never in
effect are named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from math import ceil
from typing import Any
from zoneinfo import ZoneInfo

from reconciler.model.findings import Finding
from reconciler.model.quantity import time_text
from reconciler.model.schedules import MONTHS, WEEKDAYS, Schedule, ScheduleOutcome, TimePattern
from reconciler.model.timelines import Collision, ScheduleTimeline
from reconciler.report.drawing import (
    Drawing,
    TimeAxis,
    ValueSpan,
    draw_values,
    fitting,
    instant_words,
    lines_of,
    span_words,
    step_of,
    width_of,
)
from reconciler.report.escaping import members, timestamp
from reconciler.report.findings import finding_row, finding_words
from reconciler.report.words import moment
from reconciler.zone_data import time_zone, zone_names

WIDTH = 760
_LEFT = 12
_GRID = WIDTH - _LEFT - 12
_ROW, _BETWEEN = 58.0, 46.0
_WEEK = timedelta(days=7)
_BADGE = 14
"""The room of a collision's number, in pixels."""
MOST_COLLISIONS = 9
MOST_WEEKS = 9
_MARKED = {"overlapping-behaviors", "overlap-settled"}
"""Findings that the numbered marks already show."""


def schedule_chart(timelines: Sequence[ScheduleTimeline], *, now: datetime, findings: Sequence[Finding] = ()) -> str:
    """One SVG with the schedules one below the other, each in its own zone. findings: shown below their schedule."""
    title = "Capacity schedules" if len(timelines) != 1 else f"Schedule {timelines[0].schedule.ref.short}"
    told = (
        " ".join(
            f"{item.schedule.ref.short}: {_description(item, time_zone(item.schedule.timezone))}" for item in timelines
        )
        or "There is no schedule."
    )
    drawing = Drawing(WIDTH, title, told)
    y = 0.0
    for timeline in timelines:
        own = [finding for finding in findings if finding.ref == timeline.schedule.ref]
        y = _draw_schedule(drawing, timeline, own, now, y)
    if not timelines:
        drawing.text(12, 26, "There is no schedule.", "soft")
        y = 42.0
    return drawing.svg(y)


def _draw_schedule(
    drawing: Drawing, timeline: ScheduleTimeline, findings: Sequence[Finding], now: datetime, top: float
) -> float:
    """Draws one schedule. Returns its bottom."""
    zone = time_zone(timeline.schedule.timezone)
    ref = str(timeline.schedule.ref)
    drawing.text(12, top + 26, fitting(ref, WIDTH - 300, 15), "head", tooltip=ref)
    drawing.text(WIDTH - 12, top + 26, moment(now, zone), "soft small", anchor="end")
    drawing.text(12, top + 46, _now_words(timeline, zone))
    y = _legend(drawing, timeline, top + 66)
    y = _weeks(drawing, timeline, zone, now, y + 36)
    return _notes(drawing, timeline, zone, findings, y + 40)


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


def _weeks(drawing: Drawing, timeline: ScheduleTimeline, zone: ZoneInfo, now: datetime, top: float) -> float:
    """Draws a row of bars for each week, with the numbers of collisions below. Returns the bottom."""
    weeks = ceil((timeline.end - timeline.start) / _WEEK)
    for week in range(min(weeks, MOST_WEEKS)):
        begins = timeline.start + _WEEK * week
        ends = begins + _WEEK
        axis, bottom = TimeAxis(begins, ends, zone, _LEFT, _GRID), top + _ROW
        axis.draw(drawing, top, bottom)
        spans = [
            ValueSpan(max(span.start, begins), min(span.end, ends), span.value)
            for span in timeline.spans
            if span.start < ends and span.end > begins
        ]
        draw_values(drawing, axis, spans, top=top, height=_ROW, values=_values(timeline))
        free = 0.0
        for number, collision in enumerate(timeline.collisions[:MOST_COLLISIONS], 1):
            if collision.start >= ends or collision.end <= begins:
                continue
            x, tooltip = axis.x(collision.start), f"Collision {number}: {_collision_words(timeline, collision, zone)}"
            drawing.rectangle(x, bottom + 2, max(3.0, axis.x(collision.end) - x), 4, "none", tooltip=tooltip)
            if begins <= collision.start:
                free = max(free, x)
                drawing.text(free, bottom + 18, str(number), "strong bad small", tooltip=tooltip)
                free += _BADGE
        if begins < now < min(ends, timeline.end):
            drawing.line(axis.x(now), top, axis.x(now), bottom, "now")
        top = bottom + _BETWEEN
    if weeks > MOST_WEEKS:
        drawing.text(_LEFT, top - 16, f"… and {weeks - MOST_WEEKS:,} more weeks: JSON has them all", "soft small")
    return top - _BETWEEN


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


SCHEDULES_SCHEMA = "headroom.dev/schedules/v1"
MOST_DRAWN = 20
"""The most schedules in the picture. The editor has all of them."""
EXAMPLE = """apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata:
  name: office-hours
spec:
  schedule:
    timezone: UTC
    defaultReplicas: 0
    behaviors:
      - replicas: 3
        start: {weekdays: "Mon,Tue,Wed,Thu,Fri", hours: 9}
        end: {weekdays: "Mon,Tue,Wed,Thu,Fri", hours: 17}
"""
"""The editor's initial text if there is no schedule."""


def schedules_document(
    timelines: Iterable[ScheduleTimeline], *, now: datetime, start: datetime, end: datetime, findings: Iterable[Finding]
) -> dict[str, Any]:
    """Every schedule's value now and next, and its timeline in [start, end)."""
    return {
        "schemaVersion": SCHEDULES_SCHEMA,
        "now": timestamp(now),
        "from": timestamp(start),
        "to": timestamp(end),
        "schedules": [_schedule(timeline) for timeline in timelines],
        "findings": [finding_row(finding) for finding in findings],
    }


def _schedule(timeline: ScheduleTimeline) -> dict[str, Any]:
    schedule = timeline.schedule
    return {
        **schedule_row(timeline.outcome),
        "timezone": schedule.timezone,
        "source": None if schedule.position is None else members(schedule.position, "file", "line"),
        "timeline": [
            {"from": timestamp(span.start), "to": timestamp(span.end), "value": span.value, "behavior": span.behavior}
            for span in timeline.spans
        ],
        "collisions": [
            {"from": timestamp(item.start), "to": timestamp(item.end), "winner": item.winner, "loser": item.loser}
            for item in timeline.collisions
        ],
    }


def schedule_row(row: ScheduleOutcome) -> dict[str, Any]:
    return members(row, "namespace", "name", "current_value", "next_value", "next_value_time")


@dataclass(frozen=True, slots=True)
class BrokenDocument:
    """A document with errors, as in its file, for the editor to begin with.

    name: `NAMESPACE/NAME`, or its position if the name cannot be read. lines: the first and the last, from 1.
    """

    name: str
    file: str
    lines: tuple[int, int]
    text: str

    def has(self, finding: Finding) -> bool:
        place = finding.position
        return place is not None and place.file == self.file and self.lines[0] <= place.line <= self.lines[1]


def time_zones() -> list[str]:
    """The time zone names that a schedule may have. Browsers accept others, but the page does not."""
    return sorted(zone_names())


def schedule_page(
    timelines: Sequence[ScheduleTimeline],
    *,
    now: datetime,
    findings: Sequence[Finding] = (),
    broken: Sequence[BrokenDocument] = (),
    zone: tzinfo | None = None,
) -> dict[str, Any]:
    """The page computes everything from the documents, broken ones first; the picture is for readers without scripts."""
    schedules = [{"name": item.name, "document": item.text} for item in broken] + [
        {"name": timeline.schedule.ref.short, "document": schedule_document(timeline.schedule)}
        for timeline in timelines
    ]
    return {
        "title": "Capacity schedules",
        "when": moment(now, zone),
        "now": time_text(now),
        "zones": time_zones(),
        "schedules": schedules or [{"name": "an example", "document": EXAMPLE}],
        "chart": schedule_chart(timelines[:MOST_DRAWN], now=now, findings=findings),
        "is_example": not schedules,
        "findings": [{**finding_words(finding), "schedule": _about(finding, broken)} for finding in findings],
    }


def _about(finding: Finding, broken: Sequence[BrokenDocument]) -> str:
    """The name in the editor's list of what the finding is about."""
    broken_name = next((item.name for item in broken if item.has(finding)), None)
    if broken_name is not None:
        return broken_name
    return "" if finding.ref is None else finding.ref.short


def schedule_document(schedule: Schedule) -> str:
    """The MetricsProducer as YAML."""
    lines = [
        "apiVersion: autoscaling.karpenter.sh/v1alpha1",
        "kind: MetricsProducer",
        f"metadata: {{name: {json.dumps(schedule.ref.name)}, namespace: {json.dumps(schedule.ref.namespace)}}}",
        "spec:",
        "  schedule:",
        f"    timezone: {schedule.timezone}",
        f"    defaultReplicas: {schedule.default_replicas}",
        "    behaviors:" if schedule.behaviors else "    behaviors: []",
    ]
    for behavior in schedule.behaviors:
        lines.append(f"      - replicas: {behavior.replicas}")
        lines += [f"        priority: {behavior.priority}"] if behavior.priority else []
        lines += [f"        start: {_pattern(behavior.start)}", f"        end: {_pattern(behavior.end)}"]
    return "\n".join(lines) + "\n"


def _pattern(pattern: TimePattern) -> str:
    """`{weekdays: "Sat,Sun", hours: 9}`. Several values are quoted, since some parsers would read 1,2 as one number."""
    fields: dict[str, Sequence[object] | None] = {
        "weekdays": pattern.weekdays
        and [WEEKDAYS[number] for number in sorted(pattern.weekdays, key=lambda number: (number - 1) % 7)],
        "days": pattern.days,
        "months": pattern.months and [MONTHS[number - 1] for number in pattern.months],
        "hours": pattern.hours,
        "minutes": pattern.minutes,
    }
    texts = {name: ",".join(map(str, values)) for name, values in fields.items() if values}
    words = (f"{name}: {json.dumps(text) if ',' in text else text}" for name, text in texts.items())
    return f"{{{', '.join(words)}}}"
