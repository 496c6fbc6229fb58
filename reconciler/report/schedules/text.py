"""Schedules as text for a terminal: the value now, the next changes, its days as a grid. Called by `headroom schedule`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from reconciler.model.findings import Finding
from reconciler.model.refs import ObjectRef
from reconciler.model.timelines import ScheduleSpan, ScheduleTimeline
from reconciler.report.escaping import terminal_lines
from reconciler.report.findings.text import finding_lines
from reconciler.report.paint import Paint, plain
from reconciler.report.schedules.grid import Grid
from reconciler.report.terminal_rows import MOST_ROWS
from reconciler.report.words import counted, moment
from reconciler.report.wrapping import wrapped
from reconciler.zone_data import time_zone

MOST_GRIDS = 10
MOST_CHANGES = 8
MOST_NAME = 40
"""The longest name that leaves room for its numbers on the same line of the list."""


def schedules_text(
    timelines: Sequence[ScheduleTimeline],
    *,
    now: datetime,
    findings: Sequence[Finding],
    paint: Paint = plain,
    width: int | None = None,
) -> str:
    """Every schedule. Findings about one are below its days, all others at the end. timelines: in whole days.

    width: the columns to wrap sentences at. Grids and lists of times are not wrapped.
    """
    lines = []
    if not timelines:
        lines += [paint("bold", "No schedule to show."), ""]
    if len(timelines) > 1:
        lines += [*_overview(timelines, now, paint, width), ""]
    for timeline in timelines[:MOST_GRIDS]:
        own = [finding for finding in findings if _is_about(finding, timeline)]
        lines += [*_schedule_lines(timeline, now, paint, width), *_findings(own, paint, width), ""]
    if len(timelines) > MOST_GRIDS:
        rest = counted(len(timelines) - MOST_GRIDS, "schedule")
        lines += [f"… and {rest} more: --schedule NAMESPACE/NAME shows its days, --output json has them all.", ""]
    shown = timelines[:MOST_GRIDS]
    others = [finding for finding in findings if not any(_is_about(finding, timeline) for timeline in shown)]
    lines += _findings(others, paint, width)[1:]
    while lines and not lines[-1]:
        lines.pop()
    return terminal_lines(lines, paint)


def _is_about(finding: Finding, timeline: ScheduleTimeline) -> bool:
    position = timeline.schedule.position
    same_file = finding.position is None or position is None or finding.position.file == position.file
    return finding.ref == timeline.schedule.ref and same_file


def _overview(timelines: Sequence[ScheduleTimeline], now: datetime, paint: Paint, width: int | None) -> list[str]:
    names = [_name(timeline.schedule.ref) for timeline in timelines[:MOST_ROWS]]
    # One long name must not push the numbers of all others out of sight.
    room = min(max(map(len, names)), MOST_NAME if width is None else max(1, width // 3))
    most = max(len(f"{timeline.outcome.current_value:,}") for timeline in timelines)
    lines = [paint("bold", f"{counted(len(timelines), 'schedule')}, {moment(now, None)}")]
    for name, timeline in zip(names, timelines, strict=False):
        lines += wrapped(f"  {name:<{room}}  {timeline.outcome.current_value:>{most},}  {_next_words(timeline)}", width)
    rest = len(timelines) - len(names)
    return [*lines, f"  … and {rest:,} more"] if rest else lines


def _schedule_lines(timeline: ScheduleTimeline, now: datetime, paint: Paint, columns: int | None) -> list[str]:
    schedule = timeline.schedule
    zone = time_zone(schedule.timezone)
    where = f"  {paint('dim', f'{schedule.position.file}:{schedule.position.line}')}" if schedule.position else ""
    lines = [
        f"{paint('bold', _name(schedule.ref))}{where}",
        *wrapped(f"  {timeline.outcome.current_value:,} now, {moment(now, zone)}; {_next_words(timeline)}", columns),
        "",
        f"  Hours of {schedule.timezone}{_offsets(timeline, zone)}",
        *(f"  {line}".rstrip() for line in Grid(timeline, now=now, paint=paint).lines()),
    ]
    changes = _changes(timeline, now)
    if changes:
        lines += ["", f"  {paint('bold', 'Next changes')}"]
        words = [(dated(span.start, zone), before, span) for before, span in changes[:MOST_CHANGES]]
        width = max(len(time) for time, _, _ in words)
        lines += [
            f"    {time:<{width}}  {before:,} → {span.value:,}  {paint('dim', behavior_name(span.behavior))}"
            for time, before, span in words
        ]
        if len(changes) > MOST_CHANGES:
            lines.append(f"    … and {len(changes) - MOST_CHANGES:,} more in this span (--output json has them all)")
    return lines


def _changes(timeline: ScheduleTimeline, now: datetime) -> list[tuple[int, ScheduleSpan]]:
    """Each later change of value, with the value before it."""
    spans = timeline.spans
    return [
        (spans[index - 1].value, span)
        for index, span in enumerate(spans)
        if index and span.value != spans[index - 1].value and span.start > now
    ]


def _next_words(timeline: ScheduleTimeline) -> str:
    outcome = timeline.outcome
    if outcome.next_value is None or outcome.next_value_time is None:
        return "nothing changes any more"
    return f"{outcome.next_value:,} from {dated(outcome.next_value_time, time_zone(timeline.schedule.timezone))}"


def dated(time: datetime, zone: ZoneInfo) -> str:
    """`Mon 2026-11-23 09:00 PST (17:00 UTC)`, with the weekday, since schedules go by weekdays."""
    try:
        local = time.astimezone(zone)
    except (OverflowError, ValueError):
        local = time
    return f"{local:%a} {moment(time, zone)}"


def behavior_name(behavior: int | None) -> str:
    return "default" if behavior is None else f"behaviors[{behavior}]"


def _offsets(timeline: ScheduleTimeline, zone: ZoneInfo) -> str:
    """` (UTC-08:00, then UTC-07:00)`: the offsets at both ends of the span; "" for UTC itself."""
    ends = (timeline.start, timeline.end - timedelta(seconds=1))
    first, last = (f"{time.astimezone(zone):%z}" for time in ends)
    words = [f"UTC{text[:3]}:{text[3:5]}" for text in dict.fromkeys((first, last))]
    return "" if zone.key == "UTC" else f" ({', then '.join(words)})"


def _findings(findings: Iterable[Finding], paint: Paint, width: int | None) -> list[str]:
    lines = finding_lines(findings, paint, None if width is None else width - 2)
    return ["", f"  {paint('bold', 'Findings')}", *(f"  {line}" for line in lines)] if lines else []


def _name(ref: ObjectRef) -> str:
    return f"{ref.namespace}/{ref.name}"
