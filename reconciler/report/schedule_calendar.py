"""Schedules as an iCalendar file (RFC 5545): an event for each span in which a behavior counts. Called by `headroom schedule`.

An event keeps its UID from one export to the next, so that a calendar that imports the file again updates its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from reconciler import __version__
from reconciler.model.schedules import Schedule
from reconciler.model.timelines import ScheduleSpan, ScheduleTimeline
from reconciler.report.words import counted

_LONGEST_LINE = 75
"""Octets, without the line's end (RFC 5545, 3.1)."""


def schedules_calendar(timelines: Iterable[ScheduleTimeline], *, now: datetime, start: datetime, end: datetime) -> str:
    """Events that lie in [start, end) at least in part, whole. timelines: wide enough to hold those events whole."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", f"PRODID:-//headroom.dev//headroom {__version__}//EN"]
    lines += ["CALSCALE:GREGORIAN", "METHOD:PUBLISH", "X-WR-CALNAME:Scheduled capacity"]
    for timeline in timelines:
        for span in timeline.spans:
            if span.behavior is not None and span.start < end and span.end > start:
                lines += _event(timeline.schedule, span, span.behavior, now)
    lines.append("END:VCALENDAR")
    return "".join(f"{part}\r\n" for line in lines for part in _folded(line))


def _event(schedule: Schedule, span: ScheduleSpan, behavior: int, now: datetime) -> list[str]:
    name = f"{schedule.ref.namespace}/{schedule.ref.name}"
    place = schedule.behaviors[behavior].position
    where = f" in {place}" if place else ""
    summary = f"{name}: {counted(span.value, 'replica')}"
    description = f"behaviors[{behavior}] of MetricsProducer {name}{where}, reckoned in {schedule.timezone}"
    return [
        "BEGIN:VEVENT",
        f"UID:{_time(span.start)}-{behavior}-{schedule.ref.name}.{schedule.ref.namespace}@headroom.dev",
        f"DTSTAMP:{_time(now)}",
        f"DTSTART:{_time(span.start)}",
        f"DTEND:{_time(span.end)}",
        f"SUMMARY:{_text(summary)}",
        f"DESCRIPTION:{_text(description)}",
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    ]


def _time(moment: datetime) -> str:
    universal = moment.astimezone(UTC)
    return f"{universal.year:04}{universal:%m%dT%H%M%S}Z"


def _text(value: str) -> str:
    """RFC 5545, 3.3.11: what would end the value or its line is escaped."""
    for plain, escaped in (("\\", "\\\\"), (";", "\\;"), (",", "\\,"), ("\n", "\\n")):
        value = value.replace(plain, escaped)
    return value


def _folded(line: str) -> Iterator[str]:
    """The line in pieces of at most 75 octets, each after the first begun by a space; no character is cut in two."""
    piece = ""
    for character in line:
        if len((piece + character).encode()) > _LONGEST_LINE:
            yield piece
            piece = " "
        piece += character
    yield piece
