"""Capacity schedules as text for a terminal: what holds now and next, then each day hour by hour. Called by `headroom schedule`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from itertools import pairwise
from operator import attrgetter
from zoneinfo import ZoneInfo

from reconciler.model.findings import Finding
from reconciler.model.refs import counted
from reconciler.model.timelines import ScheduleSpan, ScheduleTimeline
from reconciler.report.day_rows import NAME_WIDTH, NO_TIME, SHADES, day_row, local_days
from reconciler.report.drawing import midnight
from reconciler.report.escaping import MOST_ROWS, Paint, plain, terminal_lines, wrapped
from reconciler.report.findings import finding_lines
from reconciler.report.words import moment
from reconciler.zone_data import time_zone

MOST_GRIDS = 10
MOST_CHANGES = 8
MOST_NAME = 40
"""The longest name that leaves room for its numbers on the same line of the list."""
_STYLES = ("blue", "cyan", "green", "yellow", "red")
_CHANGES = "¦"
_MINUTES, _CELLS = 30, 48
"""Minutes of a cell, and cells of a day."""
_STEP = timedelta(minutes=15)
"""Clocks change at full quarters of an hour in UTC."""
_AXIS = "".join(f"{hour:02}    " for hour in range(0, 24, 3)).rstrip()


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
    names = [timeline.schedule.ref.short for timeline in timelines[:MOST_ROWS]]
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
    where = f"  {paint('dim', schedule.position.in_file)}" if schedule.position else ""
    lines = [
        f"{paint('bold', schedule.ref.short)}{where}",
        *wrapped(f"  {timeline.outcome.current_value:,} now, {moment(now, zone)}; {_next_words(timeline)}", columns),
        "",
        f"  Hours of {schedule.timezone}",
        *(f"  {line}".rstrip() for line in _grid(timeline, zone, now, paint)),
    ]
    changes = _changes(timeline, now)
    if changes:
        lines += ["", f"  {paint('bold', 'Next changes')}"]
        words = [(dated(span.start, zone), before, span) for before, span in changes[:MOST_CHANGES]]
        width = max(len(time) for time, _, _ in words)
        lines += [
            f"    {time:<{width}}  {before:,} → {span.value:,}  {paint('dim', _behavior_name(span.behavior))}"
            for time, before, span in words
        ]
        if len(changes) > MOST_CHANGES:
            lines.append(f"    … and {len(changes) - MOST_CHANGES:,} more in this span (--output json has them all)")
    return lines


def _changes(timeline: ScheduleTimeline, now: datetime) -> list[tuple[int, ScheduleSpan]]:
    """Each later change of value, with the value before it."""
    pairs = pairwise(timeline.spans)
    return [(before.value, span) for before, span in pairs if span.value != before.value and span.start > now]


def _next_words(timeline: ScheduleTimeline) -> str:
    outcome = timeline.outcome
    if outcome.next_value is None or outcome.next_value_time is None:
        return "nothing changes any more"
    return f"{outcome.next_value:,} from {dated(outcome.next_value_time, time_zone(timeline.schedule.timezone))}"


def _behavior_name(behavior: int | None) -> str:
    return "default" if behavior is None else f"behaviors[{behavior}]"


def dated(time: datetime, zone: ZoneInfo) -> str:
    """`Mon 2026-11-23 09:00 PST (17:00 UTC)`, with the weekday, since schedules go by weekdays."""
    return f"{time.astimezone(zone):%a} {moment(time, zone)}"


def _findings(findings: Iterable[Finding], paint: Paint, width: int | None) -> list[str]:
    lines = finding_lines(findings, paint, None if width is None else width - 2)
    return ["", f"  {paint('bold', 'Findings')}", *(f"  {line}" for line in lines)] if lines else []


def _grid(timeline: ScheduleTimeline, zone: ZoneInfo, now: datetime, paint: Paint) -> list[str]:
    """The picture of one timeline. now: its day is marked."""
    values = sorted({span.value for span in timeline.spans})
    look = partial(_look, values=values)
    days = {day: _cells(timeline, day, zone) for day in local_days(timeline.start, timeline.end, zone)}
    lines = [f"{'':{NAME_WIDTH}}  {paint('dim', _AXIS)}"]
    lines += [day_row(day, cells, look, now=now, zone=zone, paint=paint) for day, cells in days.items()]
    lines.append("")
    width = len(str(values[-1]))
    givers = sorted(
        {(span.behavior, span.value) for span in timeline.spans}, key=lambda item: (item[0] is not None, item)
    )
    for value in values:
        _, shade, style = look(value)
        names = (_behavior_name(behavior) for behavior, given in givers if given == value)
        lines.append(f"{paint(style, SHADES[shade] * 2)} {value:>{width}}  {', '.join(names)}")
    if any(_CHANGES in cells for cells in days.values()):
        lines.append(f"{_CHANGES * 2} {'':{width}}  changes within the half hour")
    return lines


def _look(value: int, values: Sequence[int]) -> tuple[str, int, str]:
    """The lowest value has the lightest shade, the highest the darkest."""
    rank, ranks = values.index(value), len(values)
    if ranks == 1:
        shade = len(SHADES) // 2
    elif ranks > len(SHADES) and values[0] == 0:
        # No other value may look like 0.
        shade = 0 if value == 0 else 1 + round((rank - 1) * (len(SHADES) - 2) / (ranks - 2))
    else:
        shade = round(rank * (len(SHADES) - 1) / (ranks - 1))
    return str(value), shade, _STYLES[shade]


def _cells(timeline: ScheduleTimeline, day: date, zone: ZoneInfo) -> list[int | str]:
    """The value in each cell, or the sign for none or several. A time that occurs twice shows the values of both."""
    cells: list[set[int]] = [set() for _ in range(_CELLS)]
    begins, ends = midnight(day, zone), midnight(day + timedelta(days=1), zone)
    while begins < ends:
        local = begins.astimezone(zone)
        cells[(local.hour * 60 + local.minute) // _MINUTES] |= _values_in(timeline, begins, begins + _STEP)
        begins += _STEP
    return [_CHANGES if len(values) > 1 else values.pop() if values else NO_TIME for values in cells]


def _values_in(timeline: ScheduleTimeline, start: datetime, end: datetime) -> set[int]:
    start, end = max(start, timeline.start), min(end, timeline.end)
    if start >= end:
        return set()
    starts = attrgetter("start")
    first = bisect_right(timeline.spans, start, key=starts) - 1
    last = bisect_left(timeline.spans, end, key=starts)
    return {span.value for span in timeline.spans[first:last]}
