"""Values over whole local days as text for a terminal: a row of shaded blocks for each day, with a number where a value begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import groupby

from reconciler.report.escaping import Paint

SHADES = "·░▒▓█"
NAME_WIDTH = 10
"""Columns of a day's name, before its blocks."""
NO_TIME = " "
"""A cell of a time that the clock skips, or that is not shown."""
Look = Callable[[int], tuple[str, int, str]]
"""Gives the number, the index of the shade and the style of a value."""


def local_days(start: datetime, end: datetime, zone: tzinfo | None) -> Iterator[date]:
    """Each day of [start, end), in the zone."""
    first = start.astimezone(zone).date()
    last = (end - timedelta(microseconds=1)).astimezone(zone).date()
    return (first + timedelta(days=index) for index in range((last - first).days + 1))


def day_row(
    day: date, cells: Iterable[int | str], look: Look, *, now: datetime, zone: tzinfo | None, paint: Paint
) -> str:
    """`Fri 23 Oct  0········4░░░░░░  ◂ now 09:00`. cells: of one column each: values, or the signs of what has none."""
    blocks = ""
    for cell, run in groupby(cells):
        width = len(list(run))
        if isinstance(cell, str):
            blocks += cell * width
            continue
        number, shade, style = look(cell)
        number = number if len(number) < width else ""
        blocks += paint(style, number + SHADES[shade] * (width - len(number)))
    present = now.astimezone(zone)
    marks = [paint("bold", f"◂ now {present:%H:%M}")] if present.date() == day else []
    shift = _clock_change(day, zone)
    marks += [paint("dim", shift)] if shift else []
    return f"{day:%a %d %b}  {blocks}  {' '.join(marks)}".rstrip()


def _clock_change(day: date, zone: tzinfo | None) -> str:
    """`clocks change to CET, UTC+01:00`; "" on a day without a change."""
    before = datetime.combine(day, time(), zone).astimezone(zone)
    after = (before.astimezone(UTC) + timedelta(days=1)).astimezone(zone)
    if before.utcoffset() == after.utcoffset():
        return ""
    offset = f"{after:%z}"
    return f"clocks change to {after.tzname()}, UTC{offset[:3]}:{offset[3:5]}"
