"""What disruption budgets allow, on a terminal: one row per day, one cell per hour of the reader's time zone.

A cell shows the fewest disruptions allowed at any time of its hour, by number, by shade, and by colour where there is colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import groupby

from reconciler.model.timelines import UNBOUNDED, BudgetCells
from reconciler.report.paint import Paint

SHADES = "·░▒▓█"
_STYLES = ("red", "yellow", "cyan", "cyan", "green")
_HOURS = 24
_WIDTH = 2
_LABEL = 10
_EVERY = 3
_NO_TIME = None
_HOUR = timedelta(hours=1)


class HourGrid:
    """Whole local days from the one of `start` to the last one before `end`. Cells outside [start, end) are blank.

    edges: the ascending instants between which the cells are, for `plan.budget_cells`.
    """

    def __init__(self, start: datetime, end: datetime, *, zone: tzinfo | None) -> None:
        self._zone = zone
        self._span = (start, end)
        first = start.astimezone(zone).date()
        last = (end - timedelta(microseconds=1)).astimezone(zone).date()
        self._days = [first + timedelta(days=index) for index in range((last - first).days + 1)]
        begins = {self._instant(day, hour) for day in self._days for hour in range(_HOURS)}
        inside = {instant for instant in begins if instant is not None and start < instant < end}
        self.edges = (start, *sorted(inside), end)
        self._index = {instant: index for index, instant in enumerate(self.edges[:-1])}

    def lines(self, cells: BudgetCells, *, values: Sequence[int], now: datetime, paint: Paint) -> list[str]:
        """The rows of one pool and reason under a ruler of hours, local and in UTC.

        values: those of all pictures of the output, ascending, since they share a scale.
        """
        return [*self.rulers(paint), *(self._row(day, cells, values, now, paint) for day in self._days)]

    def rulers(self, paint: Paint) -> list[str]:
        midnight = self._instant(self._days[0], 0) or self._span[0]
        local = [midnight + hour * _HOUR for hour in range(0, _HOURS, _EVERY)]
        name = local[0].astimezone(self._zone).tzname() or ""
        lines = [self._ruler(name, [f"{hour:02}" for hour in range(0, _HOURS, _EVERY)])]
        if midnight.astimezone(self._zone).utcoffset():
            minutes = "%H" if midnight.minute == 0 else "%H:%M"
            lines.append(self._ruler("UTC", [instant.astimezone(UTC).strftime(minutes) for instant in local]))
        return [paint("dim", line) for line in lines]

    def _ruler(self, name: str, hours: Sequence[str]) -> str:
        marks = "".join(f"{hour:<{_WIDTH * _EVERY}}" for hour in hours)
        return f"{name[:_LABEL]:>{_LABEL}}  {marks}".rstrip()

    def _row(self, day: date, cells: BudgetCells, values: Sequence[int], now: datetime, paint: Paint) -> str:
        found = [self._cell(day, hour, cells) for hour in range(_HOURS)]
        parts = []
        for value, run in groupby(found):
            width = _WIDTH * len(list(run))
            parts.append(" " * width if value is None else _run(value, width, values, paint))
        notes = []
        present = now.astimezone(self._zone)
        if present.date() == day:
            notes.append(paint("bold", f"◂ now {present:%H:%M}"))
        shift = self._shift(day)
        if shift:
            notes.append(paint("dim", shift))
        return f"{day:%a %d %b}  {''.join(parts)}  {' '.join(notes)}".rstrip()

    def _cell(self, day: date, hour: int, cells: BudgetCells) -> int | None:
        """The value of one hour; None if it is outside the span or the clock skips it."""
        start, end = self._span
        instant = self._instant(day, hour)
        if instant is None or instant >= end or instant + _HOUR <= start:
            return _NO_TIME
        return cells.allowed[self._index[max(instant, start)]]

    def _instant(self, day: date, hour: int) -> datetime | None:
        """Where a cell begins, in UTC; for an hour that occurs twice, the first one."""
        local = datetime.combine(day, time(hour), self._zone)
        try:
            instant = local.astimezone(UTC)
        except OverflowError:
            return None
        return instant if instant.astimezone(self._zone).hour == hour else None

    def _shift(self, day: date) -> str:
        """The clock change of this day, if there is one."""
        before = datetime.combine(day, time(), self._zone).astimezone(self._zone)
        after = (before.astimezone(UTC) + timedelta(days=1)).astimezone(self._zone)
        if before.utcoffset() == after.utcoffset():
            return ""
        offset = f"{after:%z}"
        return f"clocks change to {after.tzname()}, UTC{offset[:3]}:{offset[3:5]}"


def _run(value: int, width: int, values: Sequence[int], paint: Paint) -> str:
    step = _step(value, values)
    number = "∞" if value == UNBOUNDED else str(value)
    number = number if len(number) < width else ""
    return paint(_STYLES[step], number + SHADES[step] * (width - len(number)))


def _step(value: int, values: Sequence[int]) -> int:
    """0 is the lightest, unbounded the darkest; the others are between, by rank."""
    if value == 0:
        return 0
    if value == UNBOUNDED:
        return len(SHADES) - 1
    between = [item for item in values if item not in {0, UNBOUNDED}]
    return 1 + round(between.index(value) * (len(SHADES) - 3) / max(1, len(between) - 1))
