"""Capacity schedules: lists of calendar fields, and what to write instead of anything else."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.manifests.metrics_producer import read_field
from reconciler.model.schedules import Schedule
from reconciler.zone_data import zone_data
from tests.unit.manifests.reading import declared, findings, only

HEAD = """\
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: hours, namespace: shop}
spec:
  schedule:
"""


def schedule(text: str) -> Schedule:
    (read,) = declared(text).schedules
    return read


def test_no_behaviors_and_no_zone() -> None:
    assert schedule(HEAD + "    defaultReplicas: 0\n").behaviors == ()
    assert schedule(HEAD + "    defaultReplicas: 0\n").timezone == "UTC"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hours", 9, (9,)),
        ("hours", "9", (9,)),
        ("minutes", "30,0,30", (0, 30)),
        ("days", [1, "15", "31"], (1, 15, 31)),
        ("months", "jan, DEC", (1, 12)),
        ("months", 2, (2,)),
        ("weekdays", ["Sun", "Mon,Sat", 3], (0, 1, 3, 6)),
    ],
)
def test_fields(name: str, value: Any, expected: tuple[int, ...]) -> None:
    assert read_field(name, value) == (expected, ())


LIST, VALUE, TYPE = "list-only", "invalid-value", "wrong-type"


@pytest.mark.parametrize(
    ("name", "value", "code", "hint"),
    [
        ("weekdays", "Mon-Fri", LIST, 'write "Mon,Tue,Wed,Thu,Fri"'),
        ("weekdays", "Fri-Mon", LIST, 'write "Fri,Sat,Sun,Mon"'),
        ("months", "Jan-Mar", LIST, 'write "Jan,Feb,Mar"'),
        ("months", "1-3", LIST, 'write "Jan,Feb,Mar"'),
        ("minutes", "*/20", LIST, 'write "0,20,40"'),
        ("hours", "8-18/5", LIST, 'write "8,13,18"'),
        ("hours", "20/2", LIST, 'write "20,22"'),
        ("weekdays", "*", LIST, "leave it out to match every one"),
        ("hours", 24, VALUE, "write numbers from 0 to 23"),
        ("hours", "1" * 5000, VALUE, "write numbers from 0 to 23"),
        ("days", 0, VALUE, "write numbers from 1 to 31"),
        ("weekdays", 7, VALUE, "write 0 for Sunday"),
        ("weekdays", "Monday", VALUE, "write Mon"),
        ("weekdays", "Mo", VALUE, 'did you mean "Mon"?'),
        ("weekdays", "x-y", VALUE, 'write it like "Mon,Tue", or 0 to 6'),
        ("months", "Jan,", VALUE, "remove the comma too many, or leave the field out"),
        ("days", [], VALUE, "leave it out, or list at least one value"),
        ("hours", "*/0", VALUE, "write numbers from 0 to 23"),
        ("hours", "\N{SUPERSCRIPT TWO}", VALUE, "write numbers from 0 to 23"),
        *(("hours", value, TYPE, None) for value in (True, 1.5, {"a": 1}, [None])),
    ],
)
def test_what_is_no_list_of_such_values_is_answered_with_what_to_write(
    name: str, value: Any, code: str, hint: str | None
) -> None:
    _, (bad,) = read_field(name, value)
    assert bad.code.name == code
    assert hint in {None, bad.hint}


def test_everything_that_is_wrong_is_told_in_one_go() -> None:
    """What the schema refuses hides nothing of the calendar, and the first bad word of a field none of the others."""
    text = HEAD + (
        "    timezone: Europe/Berln\n"
        "    defaultReplicas: 1\n"
        "    behaviors:\n"
        "      - {replicas: -3, start: {weekdays: 'Mo,Dí,Mo,Fri'}, end: {minutes: 60}}\n"
        "      - {replicas: '3', start: {weekdays: Monday}, end: {weekdays: 7}}\n"
        "      - {replicas: 1, start: 9, end: {hours: [24, -1, 9]}}\n"
    )
    place = "spec.schedule.behaviors"
    assert sorted((finding.path, finding.message) for finding in findings(text)) == [
        (f"{place}[0].end.minutes", "minutes go from 0 to 59, not 60"),
        (f"{place}[0].replicas", f"{place}[0].replicas must be at least 0, not -3"),
        (f"{place}[0].start.weekdays", "'Dí' is not one of the weekdays"),
        (f"{place}[0].start.weekdays", "'Mo' is not one of the weekdays"),
        (f"{place}[1].end.weekdays", "weekdays go from 0 to 6, not 7"),
        (f"{place}[1].replicas", f'{place}[1].replicas must be a whole number, not the text "3"'),
        (f"{place}[1].start.weekdays", "'Monday' is not one of the weekdays"),
        (f"{place}[2].end.hours", "'-1' is not one of the hours"),
        (f"{place}[2].end.hours", "hours go from 0 to 23, not 24"),
        (f"{place}[2].start", f"{place}[2].start must be a mapping, not the number 9"),
        ("spec.schedule.timezone", "'Europe/Berln' is not a time zone"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "spec: 3", "spec: {schedule: [1]}", "spec: {schedule: {defaultReplicas: 1, timezone: 5}}",
        "spec: {schedule: {defaultReplicas: 1, timezone: ''}}", "spec: {schedule: {defaultReplicas: 1, behaviors: 7}}",
        "spec: {schedule: {defaultReplicas: 1, behaviors: [4, [], {start: x, end: [1]}]}}",
        "metadata: []\nspec: {schedule: {defaultReplicas: 1, behaviors: {start: 1}}}",
    ],
)  # fmt: skip
def test_whatever_its_form_it_is_only_findings(body: str) -> None:
    head = "" if body.startswith("metadata") else "metadata: {name: hours, namespace: shop}\n"
    text = f"apiVersion: autoscaling.karpenter.sh/v1alpha1\nkind: MetricsProducer\n{head}{body}\n"
    assert findings(text)
    assert declared(text).schedules == ()


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Europe/Berln", 'did you mean "Europe/Berlin"?'),
        ("berlin", 'did you mean "Europe/Berlin"?'),
        ("New York", 'did you mean "America/New_York"?'),
        ("Louisville", 'did you mean "America/Louisville"?'),
        ("../../etc/passwd", "write an IANA name such as Europe/Berlin"),
        ("UTC+1", "write an IANA name such as Europe/Berlin"),
        ("Mars/Olympus", "write an IANA name such as Europe/Berlin"),
    ],
)
def test_time_zones(zone: str, hint: str) -> None:
    finding = only(HEAD + f"    defaultReplicas: 1\n    timezone: {zone}\n")
    assert (finding.code, finding.path) == ("unknown-time-zone", "spec.schedule.timezone")
    data = f"time zone data is {zone_data()}"
    assert finding.hint == (f"{hint} The {data}" if hint.endswith("?") else f"{hint}; the {data}")


@pytest.mark.parametrize(
    ("start", "field", "hint"),
    [
        ("{day: 27, months: Nov}", "day", 'did you mean "days"?'),
        ("{year: 2026, months: Nov}", "year", "known here: minutes, hours, days, months, weekdays"),
        ("{hour: {at: 9}}", "hour", 'did you mean "hours"?'),
    ],
)
def test_a_misspelt_field_is_an_error_since_without_it_the_pattern_matches_more(
    start: str, field: str, hint: str
) -> None:
    body = f"    defaultReplicas: 1\n    behaviors: [{{replicas: 5, start: {start}, end: {{hours: 17}}}}]\n"
    finding = only(HEAD + body)
    path = f"spec.schedule.behaviors[0].start.{field}"
    assert (finding.code, finding.severity, finding.path) == ("invalid-value", "error", path)
    assert (finding.message, finding.hint) == (f"{path} is not a field of this kind", hint)


def test_a_behavior_needs_its_start_and_end() -> None:
    text = HEAD + "    defaultReplicas: 1\n    behaviors: [{replicas: 1}]\n"
    assert [finding.path for finding in findings(text)] == [
        "spec.schedule.behaviors[0].end",
        "spec.schedule.behaviors[0].start",
    ]
