"""Days on a terminal on which the clock is changed: each cell shows what holds while the clock of the day shows its time."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest

from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.report.escaping import plain
from reconciler.report.schedules.text import Grid
from reconciler.timetable.capacity_schedule import timeline
from reconciler.zone_data import time_zone
from tests.timelines import schedule_ref


def cells(zone: str, day: date, cell: int) -> str:
    """The cells of a day, without their numbers."""
    return row_of(zone, day, cell)[12:60].replace("10", "··").ljust(48)


def row_of(zone: str, day: date, cell: int) -> str:
    """The row of a day on which there are 30 replicas in one cell and 10 in all others."""
    begin, end = (TimePattern(hours=(each // 2 % 24,), minutes=(each % 2 * 30,)) for each in (cell, cell + 1))
    schedule = Schedule(schedule_ref(), 10, (Behavior(30, begin, end),), zone)
    start = datetime.combine(day, time(), time_zone(zone)).astimezone(UTC)
    span = timeline(schedule, start, start + timedelta(days=1, hours=2), start)
    rows = Grid(span, now=start - timedelta(days=9), paint=plain).lines()
    return next(row for row in rows if row.startswith(f"{day:%a %d %b}"))


def test_a_day_on_which_clocks_change_says_so() -> None:
    """A window from 2 to 3 lasts two hours in October and does not come in March, which its row alone does not tell."""
    assert row_of("Europe/Berlin", date(2026, 10, 25), 4).endswith("·  clocks change to CET, UTC+01:00")
    assert row_of("Europe/Berlin", date(2026, 10, 26), 4).endswith("·")


@pytest.mark.parametrize(("cell", "night"), [(4, "····¦···"), (5, "····¦█··")])
def test_a_time_that_comes_twice_shows_both(cell: int, night: str) -> None:
    """From 2:00 to 2:30 is open the first time only. From 2:30 to 3:00 is open until the clock shows 3:00, and that comes once."""
    row = cells("Europe/Berlin", date(2026, 10, 25), cell)
    assert row == night + "·" * 40


def test_the_cell_before_a_gap_shows_what_holds_until_then() -> None:
    """The clock goes from 2:45 to 3:45, so that the window from 2:30 to 3:00 is all that there is of that half hour."""
    row = cells("Pacific/Chatham", date(2026, 9, 27), 5)
    assert row == "·····█ ·" + "·" * 40


@pytest.mark.parametrize(
    ("zone", "day", "missing"),
    [
        ("Europe/Berlin", date(2026, 3, 29), (4, 5)),
        ("Australia/Lord_Howe", date(2026, 10, 4), (4,)),
        ("Africa/Cairo", date(2026, 4, 24), (0, 1)),
        ("Pacific/Chatham", date(2026, 9, 27), (6,)),
    ],
)
def test_times_that_a_gap_skips_are_blank_and_no_others(zone: str, day: date, missing: tuple[int, ...]) -> None:
    row = cells(zone, day, 20)
    assert [index for index, sign in enumerate(row) if sign == " "] == list(missing)
    assert row[20] == "█"
