"""Schedules as an iCalendar file (RFC 5545): an event for each span in which a behavior is in effect. Called by `headroom schedule`.

An event keeps its UID in every export, so that a calendar that imports the file again updates its events. A behavior that is
always in effect has no beginning for its UID: its one event spans the whole years that the export touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from reconciler import __version__
from reconciler.model.refs import counted
from reconciler.model.schedules import Schedule
from reconciler.model.timelines import ScheduleTimeline
from reconciler.report.escaping import calendar_text
from reconciler.timetable.capacity_schedule import counts_since, counts_until

_LONGEST_LINE = 75
"""Octets, without the line's end (RFC 5545, 3.1)."""


@dataclass(frozen=True, slots=True)
class _Event:
    """since, until: the true bounds of the effect, even outside the export; None: unbounded."""

    behavior: int
    value: int
    since: datetime | None
    until: datetime | None


def schedules_calendar(timelines: Iterable[ScheduleTimeline], *, now: datetime) -> str:
    """A calendar of the events that overlap the spans of the timelines. Events are not cut."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", f"PRODID:-//headroom.dev//headroom {__version__}//EN"]
    lines += ["CALSCALE:GREGORIAN", "METHOD:PUBLISH", "X-WR-CALNAME:Scheduled capacity"]
    for timeline in timelines:
        for event in _events(timeline):
            lines += _event(timeline, event, now)
    lines.append("END:VCALENDAR")
    return "".join(f"{part}\r\n" for line in lines for part in _folded(line))


def _events(timeline: ScheduleTimeline) -> Iterator[_Event]:
    for index, span in enumerate(timeline.spans):
        if span.behavior is None:
            continue
        since, until = span.start, span.end
        is_first, is_last = not index, index == len(timeline.spans) - 1
        yield _Event(
            span.behavior,
            span.value,
            counts_since(timeline.schedule, since) if is_first else since,
            counts_until(timeline.schedule, since) if is_last else until,
        )


def _event(timeline: ScheduleTimeline, event: _Event, now: datetime) -> list[str]:
    schedule = timeline.schedule
    name = f"{schedule.ref.namespace}/{schedule.ref.name}"
    summary = f"{name}: {counted(event.value, 'replica')}"
    begins = _time(event.since) if event.since else "always"
    start = event.since or _new_year(timeline.start.astimezone(UTC).year)
    end = event.until or _new_year(timeline.end.astimezone(UTC).year + 1)
    return [
        "BEGIN:VEVENT",
        f"UID:{begins}-{event.behavior}-{schedule.ref.name}.{schedule.ref.namespace}@headroom.dev",
        f"DTSTAMP:{_time(now)}",
        f"DTSTART:{_time(start)}",
        f"DTEND:{_time(end)}",
        f"SUMMARY:{calendar_text(summary)}",
        f"DESCRIPTION:{calendar_text(_description(schedule, event))}",
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    ]


def _description(schedule: Schedule, event: _Event) -> str:
    place = schedule.behaviors[event.behavior].position
    where = f" in {place}" if place else ""
    producer = f"MetricsProducer {schedule.ref.namespace}/{schedule.ref.name}"
    words = f"behaviors[{event.behavior}] of {producer}{where}, in time zone {schedule.timezone}"
    if event.since is None:
        words += "; it has no beginning, so the event begins at a new year"
    if event.until is None:
        words += "; it has no end, so the event ends at a new year"
    return words


def _new_year(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)


def _time(moment: datetime) -> str:
    universal = moment.astimezone(UTC)
    return f"{universal.year:04}{universal:%m%dT%H%M%S}Z"


def _folded(line: str) -> Iterator[str]:
    """The line in pieces of at most 75 octets. Every piece but the first begins with a space, and no character is split."""
    if line.isascii():  # nearly every line, and slicing is fast
        yield line[:_LONGEST_LINE]
        for at in range(_LONGEST_LINE, len(line), _LONGEST_LINE - 1):
            yield f" {line[at : at + _LONGEST_LINE - 1]}"
        return
    piece = ""
    for character in line:
        if len((piece + character).encode()) > _LONGEST_LINE:
            yield piece
            piece = " "
        piece += character
    yield piece
