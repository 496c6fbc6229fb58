"""What only the calendar shows: behaviors that never begin, never end, overlap, or never count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cli.init_schedule import Window, read_window, schedule_of
from reconciler.manifests.repository.declared import read
from reconciler.manifests.schedule_findings import MOST_COLLISIONS, schedule_findings
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Schedule, TimePattern
from reconciler.report.schedules.page import schedule_document
from reconciler.timetable.capacity_schedule import state_at
from tests.unit.manifests.reading import declared

NOW = datetime(2026, 11, 23, 18, 30, tzinfo=UTC)
HEAD = """\
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: hours, namespace: shop}
spec:
  schedule:
    timezone: Europe/Berlin
    defaultReplicas: 1
    behaviors:
"""


def found(*behaviors: str, now: datetime = NOW) -> list[Finding]:
    text = HEAD + "".join(f"      - {{{behavior}}}\n" for behavior in behaviors)
    return list(schedule_findings(declared(text).schedules, now))


def codes(*behaviors: str) -> list[str]:
    return [finding.code for finding in found(*behaviors)]


DAY = "replicas: 3, start: {hours: 9}, end: {hours: 17}"
NIGHT = "replicas: 2, start: {hours: 22}, end: {hours: 6}"
ALWAYS = "replicas: 5, start: {hours: 0}, end: {days: 30, months: Feb}"


def test_nothing_is_odd_about_days_and_nights() -> None:
    assert found(DAY, NIGHT) == []
    assert found() == []


def test_one_that_ends_where_another_begins_is_no_overlap() -> None:
    assert found(DAY, "replicas: 4, start: {hours: 17}, end: {hours: 22}") == []


@pytest.mark.parametrize("pattern", ["{days: 30, months: Feb}", '{days: "31", months: "Apr,Jun,Sep,Nov"}'])
def test_a_start_that_never_comes(pattern: str) -> None:
    (finding,) = found(DAY, f"replicas: 2, start: {pattern}, end: {{}}")
    assert (finding.code, finding.path) == ("start-never-comes", "spec.schedule.behaviors[1].start")
    assert finding.position is not None
    assert finding.position.line == 10
    assert str(finding.ref) == "MetricsProducer/shop/hours"


def test_29_february_comes_on_every_weekday() -> None:
    assert found("replicas: 2, start: {days: 29, months: Feb, weekdays: Mon}, end: {days: 1, months: Mar}") == []


@pytest.mark.parametrize(
    "behavior",
    [
        ALWAYS,
        "replicas: 5, start: {hours: 9}, end: {hours: 9}",
        'replicas: 5, start: {hours: "9,17"}, end: {hours: 17, weekdays: Fri}',
        "replicas: 5, start: {days: 31}, end: {days: 31, months: Jan}",
    ],
)
def test_an_end_that_never_comes(behavior: str) -> None:
    (finding,) = found(behavior)
    assert (finding.code, finding.path) == ("end-never-comes", "spec.schedule.behaviors[0].end")


def test_an_end_that_comes_sometimes_is_an_end() -> None:
    assert found('replicas: 5, start: {hours: 9, weekdays: "Mon,Tue"}, end: {hours: 9, weekdays: "Tue,Wed"}') == []


def test_the_first_time_is_in_the_schedules_zone_and_in_utc() -> None:
    (finding,) = found("replicas: 4, start: {hours: 16, weekdays: Sat}, end: {hours: 18, weekdays: Sat}", DAY)
    assert finding.code == "overlapping-behaviors"
    assert finding.path == "spec.schedule.behaviors[1]"
    assert finding.message == (
        "behaviors[0] (4) and behaviors[1] (3) overlap, first from Sat 2026-11-28 16:00 to 17:00 Europe/Berlin"
        " (2026-11-28 15:00 UTC): behaviors[0] counts, since it comes first in the list"
    )


def test_an_overlap_that_is_on_is_told_with_its_true_beginning_and_the_same_words_hour_after_hour() -> None:
    saturday = "replicas: 4, start: {hours: 12, weekdays: Sat}, end: {hours: 18, weekdays: Mon}"
    before, during, later = (
        found(saturday, DAY, now=datetime(2026, 11, 28, hour, 20, tzinfo=UTC)) for hour in (10, 12, 15)
    )
    assert "first from Sat 2026-11-28 12:00 to 17:00" in before[0].message
    assert before == during == later


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ("replicas: 4", "replicas: 3", "overlapping-behaviors"),
        ("replicas: 4, priority: 1", "replicas: 3", "overlap-settled"),
        ("replicas: 4", "replicas: 3, priority: 2", "overlap-settled"),
        ("replicas: 3", "replicas: 3", "overlap-settled"),
    ],
)
def test_an_overlap_matters_only_where_the_order_alone_decides(first: str, second: str, code: str) -> None:
    assert codes(
        f"{first}, start: {{hours: 9}}, end: {{hours: 17}}", f"{second}, start: {{hours: 16}}, end: {{hours: 18}}"
    ) == [code]


def test_one_that_is_always_hidden_is_unreachable_and_says_by_what() -> None:
    (finding,) = found(DAY, "replicas: 4, start: {hours: 12}, end: {hours: 13}")
    assert (finding.code, finding.path) == ("unreachable-behavior", "spec.schedule.behaviors[1]")
    assert "behaviors[0] is too" in finding.message


def test_two_may_hide_a_third_together() -> None:
    hidden = [
        finding
        for finding in found(
            "replicas: 3, start: {hours: 9}, end: {hours: 13}",
            "replicas: 2, start: {hours: 13}, end: {hours: 18}",
            "replicas: 4, start: {hours: 12}, end: {hours: 14}",
        )
        if finding.code == "unreachable-behavior"
    ]
    assert [finding.path for finding in hidden] == ["spec.schedule.behaviors[2]"]
    assert "behaviors[0] and behaviors[1] are too" in hidden[0].message


def test_one_that_counts_one_day_in_four_years_is_not_unreachable() -> None:
    leap_day = "replicas: 9, priority: 1, start: {days: 29, months: Feb}, end: {days: 1, months: Mar}"
    assert "unreachable-behavior" not in codes(ALWAYS, leap_day)


def test_many_overlaps_are_counted_after_the_first_few() -> None:
    behaviors = [
        f"replicas: {index}, start: {{hours: {index}}}, end: {{hours: 20, minutes: {index}}}" for index in range(9)
    ]
    findings = found(*behaviors)
    assert len(findings) == MOST_COLLISIONS
    assert findings[-1].message.endswith("; 26 more pairs of this schedule overlap")


def test_a_schedule_that_changes_every_minute_is_not_looked_at_for_years() -> None:
    """200 behaviors of every minute of the day: the span shrinks with what it would cost."""
    every = ",".join(map(str, range(60)))
    hours = ",".join(map(str, range(24)))
    behaviors = [
        f'replicas: 1, start: {{hours: "{hours}", minutes: "{every}"}}, end: {{hours: 0, minutes: {index % 60}, weekdays: Mon}}'
        for index in range(200)
    ]
    assert {finding.code for finding in found(*behaviors)} == {"end-never-comes", "unreachable-behavior"}


@pytest.mark.parametrize("now", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
def test_at_the_ends_of_the_calendar_nothing_breaks(now: datetime) -> None:
    assert isinstance(found(DAY, ALWAYS, now=now), list)


def test_the_findings_of_one_hour_are_the_same() -> None:
    overlap = "replicas: 4, start: {hours: 16}, end: {hours: 18}"
    assert found(DAY, overlap, now=NOW) == found(DAY, overlap, now=NOW + timedelta(minutes=29))


# Windows in plain words: what a person types, and the lists that come of it.

MONDAY_TO_FRIDAY = (1, 2, 3, 4, 5)
EVERY_DAY = None
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SUNDAY = datetime(2026, 11, 22, tzinfo=UTC)


def schedule(*words: str) -> Schedule:
    windows = [(window, window.replicas or 3) for window in map(read_window, words)]
    text = schedule_document(schedule_of(ObjectRef("", "MetricsProducer", "shop", "hours"), "UTC", 1, windows))
    declared = read({"hours.yaml": text.encode()})
    assert declared.findings == ()
    (found,) = declared.schedules
    return found


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("mon-fri 9-17", (MONDAY_TO_FRIDAY, 9, 0), (MONDAY_TO_FRIDAY, 17, 0)),
        ("weekdays 9-17:30", (MONDAY_TO_FRIDAY, 9, 0), (MONDAY_TO_FRIDAY, 17, 30)),
        ("sat,sun 10-14", ((0, 6), 10, 0), ((0, 6), 14, 0)),
        ("weekend 0-12", ((0, 6), 0, 0), ((0, 6), 12, 0)),
        ("daily 0-12", (EVERY_DAY, 0, 0), (EVERY_DAY, 12, 0)),
        ("fri-mon 8-9", ((0, 1, 5, 6), 8, 0), ((0, 1, 5, 6), 9, 0)),
        ("daily 22-6", (EVERY_DAY, 22, 0), (EVERY_DAY, 6, 0)),
        ("fri 22-6", ((5,), 22, 0), ((6,), 6, 0)),
        ("mon-fri 18-24", (MONDAY_TO_FRIDAY, 18, 0), ((2, 3, 4, 5, 6), 0, 0)),
        ("sat 0-24", ((6,), 0, 0), ((0,), 0, 0)),
        ("fri 17 - mon 9", ((5,), 17, 0), ((1,), 9, 0)),
    ],
)
def test_what_a_person_types(
    words: str, start: tuple[tuple[int, ...] | None, int, int], end: tuple[tuple[int, ...] | None, int, int]
) -> None:
    def pattern(expected: tuple[tuple[int, ...] | None, int, int]) -> TimePattern:
        weekdays, hour, minute = expected
        return TimePattern(minutes=(minute,) if minute else None, hours=(hour,), weekdays=weekdays)

    (behavior,) = schedule(words).behaviors
    assert (behavior.start, behavior.end) == (pattern(start), pattern(end))


def test_a_window_may_say_how_many() -> None:
    assert read_window("mon-fri 9-17 = 12").replicas == 12
    assert read_window("mon-fri 9-17=0").replicas == 0
    assert read_window("mon-fri 9-17:30").replicas is None


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("whenever", "write it like"),
        ("mon-fri", "write it like"),
        ("mun-fri 9-17", "write Sun, Mon"),
        ("mondays 9-17", "write Sun, Mon"),
        ("mon 9-25", "write 9, 9:30"),
        ("mon 9:75-10", "write 9, 9:30"),
        ("mon 24-3", "write 0 and the next day"),
        ("mon,tue 9 - fri 17", "write it like"),
        ("daily 0-24", "--default"),
        ("daily 9-9", "--default"),
        ("", "write it like"),
    ],
)
def test_what_cannot_be_meant_has_a_hint(words: str, hint: str) -> None:
    with pytest.raises(Invalid) as error:
        read_window(words)
    assert hint in error.value.hint


def test_words_cannot_break_out_of_their_comment() -> None:
    window = Window("mon 9-17", frozenset({1}), 9 * 60, frozenset({1}), 17 * 60)
    assert read_window("mon\n9-17") == window


@settings(deadline=None, max_examples=40)
@given(
    days=st.sets(st.integers(0, 6), min_size=1),
    times=st.lists(st.integers(0, 24 * 4), min_size=2, max_size=2, unique=True),
)
def test_the_schedule_is_worth_what_the_words_say(days: set[int], times: list[int]) -> None:
    """At every quarter of an hour of a week; windows over midnight too."""
    first, last = times
    if first == 24 * 4 or (first, last) == (0, 24 * 4):
        return
    names = ",".join(DAYS[day] for day in sorted(days))
    found = schedule(f"{names} {first // 4}:{first % 4 * 15:02}-{last // 4}:{last % 4 * 15:02}")
    length = (last - first) % (24 * 4)
    wanted = {(day * 96 + first + step) % (7 * 96) for day in days for step in range(length)}
    for quarter in range(0, 7 * 96, 11):
        value = state_at(found, SUNDAY + timedelta(minutes=15 * quarter)).current_value
        assert value == (3 if quarter in wanted else 1), quarter
