"""What only the calendar shows: behaviors that never begin, never end, overlap, or never count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.manifests.schedule_findings import MOST_COLLISIONS, schedule_findings
from reconciler.model.findings import Finding
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
