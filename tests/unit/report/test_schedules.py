"""Schedules on a terminal: the grid of days, and what stands around it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.report.schedules.text import schedules_text
from reconciler.timetable.capacity_schedule import timeline

REF = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "hours")


def drawn(schedule: Schedule, first: date, days: int = 1, *, now: datetime | None = None) -> list[str]:
    zone = ZoneInfo(schedule.timezone)
    start, end = (datetime.combine(day, time(), zone).astimezone(UTC) for day in (first, first + timedelta(days=days)))
    now = now or start
    return schedules_text([timeline(schedule, start, end, now)], now=now, findings=()).splitlines()


def row(lines: list[str], day: str) -> str:
    return next(line for line in lines if line.strip().startswith(day))


def daily(start: TimePattern, end: TimePattern, zone: str = "UTC", replicas: int = 12) -> Schedule:
    return Schedule(REF, 0, (Behavior(replicas, start, end),), zone)


def test_a_row_has_a_cell_each_half_hour_with_the_value_where_it_begins() -> None:
    lines = drawn(daily(TimePattern(hours=(9,)), TimePattern(hours=(17,), minutes=(30,))), date(2026, 11, 23))
    assert row(lines, "Mon 23 Nov")[14:62] == "0·················12███████████████0············"


def test_the_axis_stands_over_the_hours() -> None:
    lines = drawn(daily(TimePattern(hours=(9,)), TimePattern(hours=(12,))), date(2026, 11, 23))
    axis = next(line for line in lines if "00    03" in line)
    assert row(lines, "Mon 23 Nov")[axis.index("09") :].startswith("12█")
    assert row(lines, "Mon 23 Nov")[axis.index("12") :].startswith("0·")


def test_a_change_within_a_half_hour_is_marked_and_explained() -> None:
    lines = drawn(
        daily(TimePattern(hours=(9,), minutes=(10,)), TimePattern(hours=(9,), minutes=(20,))), date(2026, 11, 23)
    )
    assert row(lines, "Mon 23 Nov")[14:62] == f"{'0':·<18}¦{'0':·<29}"
    assert "changes within the half hour" in "\n".join(lines)


def test_the_present_is_marked_in_its_row() -> None:
    now = datetime(2026, 11, 24, 8, 5, tzinfo=UTC)
    lines = drawn(daily(TimePattern(hours=(9,)), TimePattern(hours=(17,))), date(2026, 11, 23), 3, now=now)
    assert [line for line in lines if "◂" in line] == [row(lines, "Tue 24 Nov")]
    assert row(lines, "Tue 24 Nov").endswith("◂ now 08:05")


def test_an_hour_that_is_set_over_is_blank_and_one_that_comes_twice_is_one_cell() -> None:
    schedule = daily(TimePattern(hours=(0,)), TimePattern(hours=(12,)), "Europe/Berlin", 7)
    spring = row(drawn(schedule, date(2026, 3, 29)), "Sun 29 Mar")
    assert spring[14:62] == f"{'7':█<4}  {'7':█<18}{'0':·<24}"
    autumn = row(drawn(schedule, date(2026, 10, 25)), "Sun 25 Oct")
    assert autumn[14:62] == f"{'7':█<24}{'0':·<24}"


def test_one_value_is_neither_light_nor_dark() -> None:
    lines = drawn(Schedule(REF, 3), date(2026, 11, 23))
    assert row(lines, "Mon 23 Nov")[14:62] == f"{'3':▒<48}"
    assert "Next changes" not in "\n".join(lines)


def test_times_are_in_the_schedules_zone_and_utc() -> None:
    schedule = daily(TimePattern(hours=(9,)), TimePattern(hours=(17,)), "Asia/Tokyo")
    lines = drawn(schedule, date(2026, 11, 23))
    assert "    Mon 2026-11-23 09:00 JST (00:00 UTC)  0 → 12  behaviors[0]" in lines
    assert "    Mon 2026-11-23 17:00 JST (08:00 UTC)  12 → 0  default" in lines


def test_many_schedules_have_an_overview_and_the_rest_is_counted() -> None:
    start = datetime(2026, 11, 23, tzinfo=UTC)
    timelines = [
        timeline(
            Schedule(ObjectRef("g", "MetricsProducer", "shop", f"s{number:02}"), number),
            start,
            start + timedelta(days=7),
            start,
        )
        for number in range(12)
    ]
    text = schedules_text(timelines, now=start, findings=())
    assert text.startswith("12 schedules, ")
    assert "  shop/s11  11  nothing changes any more\n" in text
    assert "… and 2 schedules more: --schedule NAMESPACE/NAME shows its days" in text
