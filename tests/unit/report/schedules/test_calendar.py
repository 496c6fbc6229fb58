"""The calendar file is what RFC 5545 asks for, read back by an independent parser."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from icalendar import Calendar

from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.report.escaping import plain
from reconciler.report.schedules.calendar import schedules_calendar
from reconciler.report.schedules.text import Grid
from reconciler.timetable.capacity_schedule import timeline
from reconciler.zone_data import time_zone
from tests.timelines import schedule_ref

NOW = datetime(2026, 11, 23, 18, 30, tzinfo=UTC)
WEEK = timedelta(days=7)


def office_hours(file: str = "hours.yaml") -> Schedule:
    weekdays = (1, 2, 3, 4, 5)
    behavior = Behavior(
        replicas=3,
        start=TimePattern(hours=(9,), weekdays=weekdays),
        end=TimePattern(hours=(17,), weekdays=weekdays),
        position=SourcePosition(file, 9, 5),
    )
    ref = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "office-hours")
    return Schedule(ref, 1, (behavior,), "America/New_York")


def exported(schedule: Schedule, now: datetime = NOW) -> str:
    return schedules_calendar([timeline(schedule, now, now + WEEK, now)], now=now)


def test_an_event_for_each_span_in_which_a_behavior_counts() -> None:
    calendar = Calendar.from_ical(exported(office_hours()))
    assert (calendar["VERSION"], calendar["CALSCALE"]) == ("2.0", "GREGORIAN")
    events = list(calendar.walk("VEVENT"))
    assert [(event.decoded("DTSTART"), event.decoded("DTEND")) for event in events] == [
        (datetime(2026, 11, day, 14, tzinfo=UTC), datetime(2026, 11, day, 22, tzinfo=UTC))
        for day in (23, 24, 25, 26, 27, 30)
    ]
    assert {str(event["SUMMARY"]) for event in events} == {"shop/office-hours: 3 replicas"}
    assert {event.decoded("DTSTAMP") for event in events} == {NOW}


def test_events_keep_their_uid_from_one_export_to_the_next() -> None:
    """Also the one that has begun already, which is whole in both."""

    def uids(text: str) -> dict[str, datetime]:
        return {str(event["UID"]): event.decoded("DTSTART") for event in Calendar.from_ical(text).walk("VEVENT")}

    first, second = uids(exported(office_hours())), uids(exported(office_hours(), NOW + timedelta(days=1)))
    assert len(first) == 6
    assert len(first.keys() & second.keys()) == 5
    assert all(first[uid] == second[uid] for uid in first.keys() & second.keys())


def only_behavior(start: TimePattern, end: TimePattern) -> Schedule:
    ref = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "rare")
    return Schedule(ref, 0, (Behavior(2, start, end),), "Europe/Berlin")


def only_event(schedule: Schedule, now: datetime) -> dict[str, Any]:
    """What identifies and places it: what must not move with the clock."""
    (event,) = Calendar.from_ical(exported(schedule, now)).walk("VEVENT")
    return {"UID": str(event["UID"]), **{name: event.decoded(name) for name in ("DTSTART", "DTEND")}}


def test_an_event_that_never_ends_does_not_move_with_the_clock() -> None:
    endless = only_behavior(TimePattern(hours=(9,)), TimePattern(days=(30,), months=(2,)))
    seen = [only_event(endless, NOW + timedelta(days=days)) for days in (0, 1, 20)]
    year = {"DTSTART": datetime(2026, 1, 1, tzinfo=UTC), "DTEND": datetime(2027, 1, 1, tzinfo=UTC)}
    assert seen == [{"UID": "always-0-rare.shop@headroom.dev", **year}] * 3
    later = only_event(endless, NOW + timedelta(days=37))
    assert later == {**seen[0], "DTEND": datetime(2028, 1, 1, tzinfo=UTC)}, "the same event, which the calendar updates"


def test_an_event_of_years_has_its_true_beginning_and_end() -> None:
    """From 29 February to a 1 March that is a Monday: from 2024 to 2027."""
    rare = only_behavior(TimePattern(days=(29,), months=(2,)), TimePattern(days=(1,), months=(3,), weekdays=(1,)))
    seen = [only_event(rare, NOW + timedelta(days=days)) for days in (-900, 0, 1)]
    start, end = datetime(2024, 2, 28, 23, tzinfo=UTC), datetime(2027, 2, 28, 23, tzinfo=UTC)
    assert seen == [{"UID": "20240228T230000Z-0-rare.shop@headroom.dev", "DTSTART": start, "DTEND": end}] * 3


def test_lines_end_as_asked_for_and_are_at_most_75_octets_long() -> None:
    text = exported(office_hours("größe/" * 20 + "stunden; und, mehr\\.yaml"))
    assert text.endswith("END:VCALENDAR\r\n")
    lines = text.split("\r\n")
    assert max(len(line.encode()) for line in lines) == 75
    assert not any("\n" in line for line in lines)


def test_what_would_end_a_value_is_escaped_and_folds_cut_no_character() -> None:
    file = "größe/" * 20 + "stunden; und, mehr\\.yaml"
    event = Calendar.from_ical(exported(office_hours(file))).walk("VEVENT")[0]
    assert str(event["DESCRIPTION"]) == (
        f"behaviors[0] of MetricsProducer shop/office-hours in {file}:9:5, in time zone America/New_York"
    )


def test_nothing_counts_and_the_calendar_is_empty() -> None:
    schedule = Schedule(ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "constant"), 4)
    assert list(Calendar.from_ical(exported(schedule)).walk("VEVENT")) == []


# Days on a terminal on which the clock is changed: each cell shows what holds while the clock of the day shows its time.


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
