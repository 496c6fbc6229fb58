"""A schedule's days on a terminal: one row per day, one cell per half hour of the schedule's own time zone.

Values are shown by number, by shade, and by colour where there is colour.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby

from reconciler.model.timelines import ScheduleTimeline
from reconciler.report.drawing.time_axis import clock_change, midnight
from reconciler.report.paint import Paint
from reconciler.zone_data import time_zone

SHADES = "·░▒▓█"
_STYLES = ("blue", "cyan", "green", "yellow", "red")
_CHANGES = "¦"
_NO_TIME = " "
_CELL = timedelta(minutes=30)
_CELLS = 48
_LABEL = 10
_AXIS = "".join(f"{hour:02}    " for hour in range(0, 24, 3)).rstrip()


class Grid:
    """The picture of one timeline. now: its day is marked."""

    def __init__(self, timeline: ScheduleTimeline, *, now: datetime, paint: Paint) -> None:
        self._timeline = timeline
        self._zone = time_zone(timeline.schedule.timezone)
        self._now = now.astimezone(self._zone)
        self._paint = paint
        self._starts = [span.start for span in timeline.spans]
        self._values = sorted({span.value for span in timeline.spans})
        self._has_changes = False

    def lines(self) -> list[str]:
        rows = [self._row(day) for day in self._days()]
        return [f"{'':{_LABEL}}  {self._paint('dim', _AXIS)}", *rows, "", *self._legend()]

    def _days(self) -> Iterator[date]:
        first = self._timeline.start.astimezone(self._zone).date()
        last = (self._timeline.end - timedelta(microseconds=1)).astimezone(self._zone).date()
        return (first + timedelta(days=index) for index in range((last - first).days + 1))

    def _row(self, day: date) -> str:
        parts = []
        for key, run in groupby(self._cells(day)):
            width = len(list(run))
            parts.append(key * width if isinstance(key, str) else self._run(key, width))
        mark = f"  {self._paint('bold', f'◂ now {self._now:%H:%M}')}" if day == self._now.date() else ""
        return f"{day:%a %d %b}  {''.join(parts)}{mark}".rstrip()

    def _run(self, value: int, width: int) -> str:
        number = f"{value}" if len(f"{value}") < width else ""
        return self._paint(_STYLES[self._step(value)], number + self._shade(value) * (width - len(number)))

    def _cells(self, day: date) -> Iterator[int | str]:
        """The value in each cell, or the sign for none or several. A time that occurs twice shows the values of both."""
        stretches = list(self._stretches(day))
        for index in range(_CELLS):
            local = datetime.combine(day, time(), UTC) + index * _CELL
            values: set[int] = set()
            for begins, ends, offset in stretches:
                values |= self._values_in(max(begins, local - offset), min(ends, local + _CELL - offset))
            self._has_changes = self._has_changes or len(values) > 1
            yield _CHANGES if len(values) > 1 else values.pop() if values else _NO_TIME

    def _stretches(self, day: date) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """The day in pieces between clock changes: begin, end, and the offset between them."""
        begins, ends = midnight(day, self._zone), midnight(day + timedelta(days=1), self._zone)
        turn = clock_change(begins, ends, self._zone)
        for start, end in ((begins, turn), (turn, ends)):
            offset = start.astimezone(self._zone).utcoffset()
            assert offset is not None
            yield start, end, offset

    def _values_in(self, start: datetime, end: datetime) -> set[int]:
        start, end = max(start, self._timeline.start), min(end, self._timeline.end)
        if start >= end:
            return set()
        first = bisect_right(self._starts, start) - 1
        last = bisect_left(self._starts, end)
        return {span.value for span in self._timeline.spans[first:last]}

    def _step(self, value: int) -> int:
        """The shade of a value: the lowest is the lightest, the highest the darkest."""
        if len(self._values) == 1:
            return len(SHADES) // 2
        if len(self._values) > len(SHADES) and self._values[0] == 0:
            # No other value may look like 0.
            rank, ranks = self._values.index(value), len(self._values)
            return 0 if value == 0 else 1 + round((rank - 1) * (len(SHADES) - 2) / (ranks - 2))
        return round(self._values.index(value) * (len(SHADES) - 1) / (len(self._values) - 1))

    def _shade(self, value: int) -> str:
        return SHADES[self._step(value)]

    def _legend(self) -> list[str]:
        givers: dict[int, list[str]] = {value: [] for value in self._values}
        for behavior, value in sorted(
            {(span.behavior, span.value) for span in self._timeline.spans}, key=lambda item: (item[0] is not None, item)
        ):
            givers[value].append("default" if behavior is None else f"behaviors[{behavior}]")
        lines = [
            f"{self._paint(_STYLES[self._step(value)], self._shade(value) * 2)} {value:>{len(str(self._values[-1]))}}"
            f"  {', '.join(names)}"
            for value, names in givers.items()
        ]
        width = len(str(self._values[-1]))
        return [*lines, f"{_CHANGES * 2} {'':{width}}  changes within the half hour"] if self._has_changes else lines
