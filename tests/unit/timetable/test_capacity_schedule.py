"""What a schedule is worth: the rules one by one, and the odd days of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.errors import Invalid
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.model.timelines import joined
from reconciler.timetable import capacity_schedule
from reconciler.timetable.activity import activities
from reconciler.timetable.capacity_schedule import next_change, state_at, timeline

REF = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "hours")
MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
HOUR = timedelta(hours=1)
EVERY_MINUTE = TimePattern(hours=tuple(range(24)), minutes=tuple(range(60)))


def at(hour: int, minute: int = 0, **more: tuple[int, ...]) -> TimePattern:
    return TimePattern(hours=(hour,), minutes=(minute,), **more)


def schedule(*behaviors: Behavior, zone: str = "UTC", default: int = 0) -> Schedule:
    return Schedule(REF, default, behaviors, zone)


def value(found: Schedule, now: datetime) -> int:
    return state_at(found, now).current_value


def edges(found: Schedule, start: datetime, days: float) -> list[str]:
    """Changes of value as `2026-03-29T01:00 5`, in UTC."""
    end = start + timedelta(days=days)
    spans = joined(timeline(found, start, end, start).spans, lambda span: span.value)
    return [f"{span.start:%Y-%m-%dT%H:%M} {span.value}" for span in spans[1:]]


def test_29_february_comes_in_leap_years_and_not_in_2100() -> None:
    leap_day = schedule(Behavior(1, TimePattern(days=(29,), months=(2,)), TimePattern(days=(1,), months=(3,))))
    assert next_change(leap_day, datetime(2096, 3, 1, tzinfo=UTC)) == datetime(2104, 2, 29, tzinfo=UTC)


def test_a_leap_day_on_a_weekday_may_be_forty_years_off() -> None:
    """29 February is a Monday in 2072 and, since 2100 has none, not before 2112."""
    monday = TimePattern(days=(29,), months=(2,), weekdays=(1,))
    found = schedule(Behavior(1, monday, TimePattern(days=(1,), months=(3,))))
    assert next_change(found, datetime(2072, 3, 1, tzinfo=UTC)) == datetime(2112, 2, 29, tzinfo=UTC)


def test_what_began_years_ago_is_still_active() -> None:
    found = schedule(
        Behavior(7, TimePattern(days=(29,), months=(2,)), TimePattern(days=(29,), months=(2,), weekdays=(0,)))
    )
    assert value(found, datetime(2027, 8, 1, tzinfo=UTC)) == 7


def test_without_another_value_to_come_there_is_no_next() -> None:
    always = Behavior(5, at(0), TimePattern(days=(30,), months=(2,)))
    for found in (schedule(), schedule(Behavior(0, at(9), at(17))), schedule(always)):
        outcome = state_at(found, MONDAY)
        assert (outcome.next_value, outcome.next_value_time) == (None, None)
        assert next_change(found, MONDAY) is None
    assert value(schedule(always), MONDAY) == 5


@pytest.mark.parametrize("end", [EVERY_MINUTE, at(9), TimePattern(days=(30,), months=(2,))])
def test_what_begins_anew_at_each_of_its_ends_is_always_on(monkeypatch: pytest.MonkeyPatch, end: TimePattern) -> None:
    """No end is looked for over forty years of minutes."""
    spans = []

    def noting(found: Schedule, start: int, last: int) -> Any:
        spans.append(timedelta(seconds=last - start))
        return activities(found, start, last)

    monkeypatch.setattr(capacity_schedule, "activities", noting)
    outcome = state_at(schedule(Behavior(2, EVERY_MINUTE, end)), MONDAY)
    assert (outcome.current_value, outcome.next_value_time) == (2, None)
    assert len(spans) == 1
    assert spans[0] < timedelta(days=30)


def test_one_that_begins_anew_hides_no_other_that_begins_some_day() -> None:
    leap_day = Behavior(7, TimePattern(days=(29,), months=(2,)), TimePattern(days=(1,), months=(3,)), priority=1)
    found = schedule(Behavior(2, EVERY_MINUTE, EVERY_MINUTE), leap_day)
    assert next_change(found, MONDAY) == datetime(2028, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (at(2, 15), at(2, 45), ["2026-03-09T06:15 5", "2026-03-09T06:45 0"]),
        (at(2), at(3), ["2026-03-09T06:00 5", "2026-03-09T07:00 0"]),
        (at(2, 45), at(2, 15), ["2026-03-09T06:15 0", "2026-03-09T06:45 5"]),
        (at(2, 30), at(2, 30), []),
    ],
)
def test_times_in_a_gap_keep_their_order(start: TimePattern, end: TimePattern, expected: list[str]) -> None:
    """New York leaves out 2:00 to 3:00 on 8 March 2026; of what falls on one instant, the last on the clock decides."""
    found = schedule(Behavior(5, start, end), zone="America/New_York")
    assert edges(found, datetime(2026, 3, 8, 5, tzinfo=UTC), 1.5) == expected


def test_a_local_time_that_occurs_twice_counts_at_the_first() -> None:
    """Berlin shows 2:00 to 3:00 twice on 25 October 2026, first from 0:00 UTC."""
    found = schedule(Behavior(5, at(2, 30), at(2, 45)), zone="Europe/Berlin")
    assert edges(found, datetime(2026, 10, 24, 12, tzinfo=UTC), 1) == ["2026-10-25T00:30 5", "2026-10-25T00:45 0"]


def test_a_timeline_tells_the_behavior_and_the_first_time_of_each_collision() -> None:
    found = schedule(Behavior(3, at(9), at(17)), Behavior(2, at(16), at(18)), default=1)
    seen = timeline(found, MONDAY, MONDAY + timedelta(days=2), MONDAY + 10 * HOUR)
    assert [(span.start.hour, span.value, span.behavior) for span in seen.spans] == [
        (0, 1, None),
        (9, 3, 0),
        (17, 2, 1),
        (18, 1, None),
        (9, 3, 0),
        (17, 2, 1),
        (18, 1, None),
    ]
    (collision,) = seen.collisions
    assert (collision.winner, collision.loser) == (0, 1)
    assert (collision.start, collision.end) == (MONDAY + 16 * HOUR, MONDAY + 17 * HOUR)
    assert (seen.outcome.current_value, seen.outcome.next_value) == (3, 2)


def test_a_zone_that_is_not_known_is_refused_with_a_hint() -> None:
    with pytest.raises(Invalid, match="'Mars/Base' is not a time zone") as error:
        state_at(schedule(Behavior(1, at(9), at(17)), zone="Mars/Base"), MONDAY)
    assert "Europe/Berlin" in error.value.hint


@pytest.mark.parametrize("now", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)])
def test_at_the_ends_of_the_calendar_there_is_an_answer(now: datetime) -> None:
    assert value(schedule(Behavior(1, at(9), at(17)), zone="America/New_York", default=4), now) in {1, 4}
