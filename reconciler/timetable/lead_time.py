"""A schedule's value with a lead time: it rises earlier by the lead, and falls when the schedule does.

At any instant it is the largest value of [instant, instant + lead], both ends included.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import pairwise

from reconciler.model.schedules import Schedule
from reconciler.model.timelines import ScheduleSpan
from reconciler.timetable.capacity_schedule import next_change, state_at, timeline

_INSTANT = timedelta(microseconds=1)
"""The resolution of `datetime`: added to the end, it makes a half-open span include it."""


def value_with_lead(schedule: Schedule, lead: timedelta, at: datetime) -> int:
    """Replicas at the instant. Raises `Invalid` for an unknown time zone."""
    if not lead:
        return state_at(schedule, at).current_value
    return max(span.value for span in timeline(schedule, at, at + lead + _INSTANT, at).spans)


def spans_with_lead(
    schedule: Schedule,
    lead: timedelta,
    start: datetime,
    end: datetime,
) -> tuple[tuple[datetime, datetime, int], ...]:
    """Spans as (start, end, replicas) that fill [start, end) without gaps; neighbours differ."""
    spans = timeline(schedule, start, end + lead, start).spans
    found: list[tuple[datetime, datetime, int]] = []
    for opens, closes, value in _highest(spans, lead, start, end):
        if found and found[-1][2] == value:
            found[-1] = (found[-1][0], closes, value)
        else:
            found.append((opens, closes, value))
    return tuple(found)


def _highest(
    spans: tuple[ScheduleSpan, ...],
    lead: timedelta,
    start: datetime,
    end: datetime,
) -> list[tuple[datetime, datetime, int]]:
    """Each span counts from `lead` before it begins until it ends; where several do, the highest wins."""
    moments = {start, end}
    for span in spans:
        moments |= {moment for moment in (span.start - lead, span.end) if start < moment < end}
    ordered = sorted(moments)
    waiting = list(spans)
    waiting.reverse()
    open_spans: list[tuple[int, datetime]] = []
    pieces = []
    for opens, closes in pairwise(ordered):
        while waiting and waiting[-1].start - lead <= opens:
            span = waiting.pop()
            heappush(open_spans, (-span.value, span.end))
        while open_spans and open_spans[0][1] <= opens:
            heappop(open_spans)
        pieces.append((opens, closes, -open_spans[0][0]))
    return pieces


def next_look(schedule: Schedule, lead: timedelta, after: datetime) -> datetime | None:
    """The first instant after this one at which the value with lead may change; None: never again."""
    falls = next_change(schedule, after)
    rises = next_change(schedule, after + lead) if lead else None
    return min(
        (moment for moment in (falls, None if rises is None else rises - lead) if moment is not None), default=None
    )
