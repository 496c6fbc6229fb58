"""The page on which a schedule is checked while it is written computes in the browser: it must say what headroom does."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.manifests.metrics_producer import read_field, time_zone_hint
from reconciler.manifests.repository.declared import read
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Behavior, Schedule, TimePattern
from reconciler.report.schedules.page import schedule_document, time_zones
from reconciler.timetable.capacity_schedule import state_at, timeline
from tests.case_files import Case, cases_in, for_each
from tests.programs import program

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [str(ROOT / "templates" / name) for name in ("schedule_engine.js.j2", "schedule_document.js.j2")]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
REF = ObjectRef("autoscaling.karpenter.sh", "MetricsProducer", "shop", "hours")
ZONES = (
    "UTC", "America/Los_Angeles", "America/Havana", "America/Asuncion", "Europe/Berlin", "Africa/Casablanca",
    "Africa/Cairo", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Chatham",
)  # fmt: skip


class Page:
    """The scripts of the page in one process."""

    def __init__(self) -> None:
        node = program("node", "nodejs", install="Node.js")
        command = [node, str(Path(__file__).with_name("schedule_page.cjs")), " ".join(time_zones()), *SCRIPTS]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, document: str, now: datetime = NOW, days: int = 1) -> dict[str, Any]:
        """What the page says of a document, from now on for so many days."""
        start, end = milliseconds(now), milliseconds(now + timedelta(days=days))
        return self._answer({"document": document, "now": start, "from": start, "to": end})

    def scalar(self, text: str) -> Any:
        return self._answer({"scalar": text})["value"]

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    opened = Page()
    yield opened
    opened.close()


def milliseconds(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def document_of(spec: object) -> str:
    metadata = {"name": "hours", "namespace": "shop"}
    head = {"apiVersion": "autoscaling.karpenter.sh/v1alpha1", "kind": "MetricsProducer", "metadata": metadata}
    return json.dumps(head | {"spec": {"schedule": spec}})


@for_each(cases_in("schedules.yaml"))
def test_it_agrees_with_the_cases(page: Page, case: Case) -> None:
    now = instant(str(case["now"]))
    answer = page.ask(document_of(case["spec"]), now)
    assert answer["findings"] == []
    expected = dict(case["expect"])
    if expected["nextValueTime"] is not None:
        expected["nextValueTime"] = milliseconds(instant(str(expected["nextValueTime"])))
    assert answer["state"] == expected


def some(low: int, high: int, most: int = 3) -> st.SearchStrategy[tuple[int, ...] | None]:
    listed = st.lists(st.integers(low, high), min_size=1, max_size=most, unique=True)
    return st.none() | listed.map(lambda values: tuple(sorted(values)))


PATTERNS = st.builds(
    TimePattern,
    minutes=some(0, 59),
    hours=some(0, 23),
    days=some(1, 31, 12),
    months=some(1, 12, 6),
    weekdays=some(0, 6, 5),
)
SCHEDULES = st.builds(
    Schedule,
    ref=st.just(REF),
    default_replicas=st.integers(0, 3),
    behaviors=st.lists(
        st.builds(Behavior, replicas=st.integers(0, 4), start=PATTERNS, end=PATTERNS, priority=st.integers(-1, 1)),
        max_size=4,
    ).map(tuple),
    timezone=st.sampled_from(ZONES),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schedule=SCHEDULES, hour=st.integers(0, 3 * 8784), days=st.integers(1, 60))
def test_it_agrees_with_the_engine_on_any_schedule(page: Page, schedule: Schedule, hour: int, days: int) -> None:
    # In the past, since of what is to come the newer of the two zone databases knows more.
    start = datetime(2022, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
    expected = timeline(schedule, start, start + timedelta(days=days), start)
    answer = page.ask(schedule_document(schedule), start, days)
    assert answer["findings"] == []
    assert answer["spans"] == [
        {
            "start": milliseconds(span.start),
            "end": milliseconds(span.end),
            "value": span.value,
            "behavior": span.behavior,
        }
        for span in expected.spans
    ]
    outcome = state_at(schedule, start)
    assert answer["state"] == {
        "currentValue": outcome.current_value,
        "nextValue": outcome.next_value,
        "nextValueTime": None if outcome.next_value_time is None else milliseconds(outcome.next_value_time),
    }

    def pairs(found: list[dict[str, Any]]) -> list[tuple[int, ...]]:
        return sorted((item["winner"], item["loser"], item["start"], item["end"]) for item in found)

    assert pairs(answer["collisions"]) == sorted(
        (item.winner, item.loser, milliseconds(item.start), milliseconds(item.end)) for item in expected.collisions
    )


@settings(max_examples=100, deadline=None)
@given(schedule=SCHEDULES)
def test_what_the_page_is_given_is_what_headroom_read(schedule: Schedule) -> None:
    (again,) = read({"schedule.yaml": schedule_document(schedule).encode()}).schedules
    assert [(item.replicas, item.start, item.end, item.priority) for item in again.behaviors] == [
        (item.replicas, item.start, item.end, item.priority) for item in schedule.behaviors
    ]
    assert (again.ref, again.timezone, again.default_replicas) == (
        schedule.ref,
        schedule.timezone,
        schedule.default_replicas,
    )


BAD_FIELDS = [
    ("weekdays", "Mon-Fri"), ("weekdays", "Fri-Mon"), ("weekdays", "Monday"), ("weekdays", "7"), ("weekdays", "*"),
    ("months", "Jan-Mar"), ("months", "Foo"), ("months", "1-3"), ("hours", "9-17"), ("hours", "*/6"), ("hours", "24"),
    ("hours", "*"), ("minutes", "0-30/15"), ("minutes", "-5"), ("minutes", ""), ("days", "1,,2"), ("days", "0"),
    ("days", "L"), ("days", "1-31/10"), ("hours", "5/0"), ("days", []), ("hours", True), ("hours", 9.5),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), BAD_FIELDS)
def test_what_cannot_be_read_gets_the_same_advice(page: Page, field: str, value: object) -> None:
    _, (refused,) = read_field(field, value)
    behavior = {"replicas": 1, "start": {field: value}, "end": {"hours": 17}}
    answer = page.ask(document_of({"defaultReplicas": 0, "behaviors": [behavior]}))
    (finding,) = answer["findings"]
    assert answer["schedule"] is None
    assert finding["path"] == f"spec.schedule.behaviors[0].start.{field}"
    if isinstance(value, str):
        assert finding["hint"] == refused.hint
        assert finding["message"].replace('"', "'") == refused.message


WRITTEN = """\
# What a person types
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: 'hours', "namespace": shop}   # in one line
spec:
  schedule:
    timezone: "Europe/Berlin"
    defaultReplicas: 1
    behaviors:
    - replicas: 3
      start:
        weekdays: [Mon, "Tue", 3]
        hours: 9
      end: { hours: '17,18' }
"""


def test_it_reads_the_yaml_that_people_write(page: Page) -> None:
    answer = page.ask(WRITTEN)
    assert answer["findings"] == []
    (behavior,) = answer["schedule"]["behaviors"]
    assert behavior["start"] == {"weekdays": [1, 2, 3], "hours": [9]}
    assert behavior["end"] == {"hours": [17, 18]}
    (read_schedule,) = read({"schedule.yaml": WRITTEN.encode()}).schedules
    assert read_schedule.behaviors[0].start == TimePattern(weekdays=(1, 2, 3), hours=(9,))


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("# What", "// What", 1, "// begins no comment"),
        ("kind: MetricsProducer", "kind: HorizontalAutoscaler", 3, "kind is"),
        ("Europe/Berlin", "Europe/Atlantis", 7, "not a time zone"),
        ("defaultReplicas: 1", "defaultReplicas: -1", 8, "defaultReplicas"),
        ("defaultReplicas: 1", "defaultreplicas: 1", 8, "defaultreplicas is not a field"),
        ("'hours'", "Bad Name", 4, "metadata.name"),
        ('"namespace": shop', "namespace: Shop", 4, "metadata.namespace"),
        ("Europe/Berlin", "europe/berlin", 7, "not a time zone"),
        ("      end: { hours: '17,18' }\n", "", 10, "end is missing"),
        ("hours: 9", "hours: &nine 9", 13, "anchors"),
        ("hours: 9", "hours 9", 13, "field: value"),
        ("replicas: 3", "replicas: many", 10, "replicas"),
        ("        hours: 9", "        weekdays: Mon", 13, "there twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(page: Page, before: str, after: str, line: int, words: str) -> None:
    assert before in WRITTEN
    answer = page.ask(WRITTEN.replace(before, after))
    assert answer["schedule"] is None
    assert (line, True) in [(item["line"], words in item["message"]) for item in answer["findings"]]


@pytest.mark.parametrize(
    "case",
    [case for case in cases_in("yaml_scalars.yaml") if not case["written"].startswith("!")],
    ids=lambda case: str(case["written"]),
)
def test_its_scalars_are_kubectls(page: Page, case: Case) -> None:
    assert page.scalar(case["written"]) == case["json"]


MANY = "      - {replicas: 1, start: {hours: 1}, end: {hours: 2}}\n"
PLAIN = """\
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: hours, namespace: shop}
spec:
  schedule:
    timezone: Europe/Berlin
    defaultReplicas: 1
    behaviors:
      - replicas: 3
        start: {hours: 9}
        end: {hours: 17}
"""


OTHERWISE = {
    "Europe/Berlin": ["europe/berlin", "EUROPE/BERLIN", "asia/calcutta", "Asia/Calcutta", "+05:00", "Berlin",
        "posix/Europe/Berlin", "right/UTC", "localtime", "posixrules", "Factory"],
    "defaultReplicas: 1": ["defaultReplicas: 010", "defaultReplicas: 08", "defaultReplicas: 0x10",
        "defaultReplicas: 1.0", "defaultReplicas: 1.5", "defaultReplicas: 1e3", "defaultReplicas: 1_000",
        "defaultReplicas: yes", 'defaultReplicas: "1"', "defaultReplicas: 2147483647", "defaultReplicas: 2147483648",
        "defaultReplicas: 1\n    priority: 2", "defaultReplicas: 1\n    owner: shop",
        "defaultReplicas: 1\n    shop.example/owner: us"],
    "{hours: 17}": ["{hours: 0x11}", "{hours: 17.0}", "{hours: 021}", '{hours: "021"}', '{hours: "0x11"}',
        "{hours: on}", "{hours: 17, minute: 5}"],
    "behaviors:": ["behaviours:"],
    "replicas: 3": ["replicas: 3\n        prority: 5"],
    "      - replicas: 3": ["      - replicas: 3\n        timezone: UTC", "      - replicas: 3\n        hours: 9"],
    "name: hours": ["name: Bad Name", "name: hours.of.shop", "name: -hours", "name: " + "h" * 253,
        "name: " + "h" * 254],
    "namespace: shop": ["namespace: shop.eu"],
    "behaviors:\n": ["behaviors:\n" + MANY * 199, "behaviors:\n" + MANY * 200],
}  # fmt: skip
"""Parts of the document, and what stands in their place."""


@pytest.mark.parametrize(
    ("before", "after"),
    [(before, after) for before, others in OTHERWISE.items() for after in others],
    ids=lambda text: text[:40],
)
def test_it_takes_and_refuses_what_the_command_does(page: Page, before: str, after: str) -> None:
    assert before in PLAIN
    document = PLAIN.replace(before, after, 1)
    declared = read({"schedule.yaml": document.encode()})
    answer = page.ask(document)
    errors = {
        item.line if (item := finding.position) else 0 for finding in declared.findings if finding.severity == "error"
    }
    assert {item["line"] for item in answer["findings"] if item["severity"] == "error"} == errors
    if not declared.schedules:
        assert answer["schedule"] is None
        return
    (schedule,) = declared.schedules
    told = {key: answer["schedule"][key] for key in ("name", "namespace", "timezone", "defaultReplicas")}
    assert told == {
        "name": schedule.ref.name,
        "namespace": schedule.ref.namespace,
        "timezone": schedule.timezone,
        "defaultReplicas": schedule.default_replicas,
    }
    assert [item["end"].get("hours") for item in answer["schedule"]["behaviors"]] == [
        None if behavior.end.hours is None else list(behavior.end.hours) for behavior in schedule.behaviors
    ]


@pytest.mark.parametrize(
    ("behaviors", "words"),
    [
        ([Behavior(1, TimePattern(days=(30,), months=(2,)), TimePattern(hours=(5,)))], "never begins"),
        ([Behavior(1, TimePattern(hours=(5,)), TimePattern(days=(30,), months=(2,)))], "never ends"),
        ([Behavior(1, TimePattern(hours=(5, 6)), TimePattern(hours=(6,)))], "never ends"),
        (
            [
                Behavior(2, TimePattern(hours=(8,)), TimePattern(hours=(18,))),
                Behavior(1, TimePattern(hours=(9,)), TimePattern(hours=(17,))),
            ],
            "is never in effect",
        ),
    ],
)
def test_behaviors_that_do_nothing_are_named(page: Page, behaviors: list[Behavior], words: str) -> None:
    document = schedule_document(Schedule(REF, 0, tuple(behaviors)))
    (doubt,) = page.ask(document)["doubts"]
    assert doubt["behavior"] == len(behaviors) - 1
    assert words in doubt["message"]


def test_the_scripts_are_plain_text_to_the_template_engine() -> None:
    for path in (*SCRIPTS, str(ROOT / "templates" / "schedule_page.js.j2")):
        text = Path(path).read_text()
        assert not any(mark in text for mark in ("{{", "{%", "{#", "</script", "<!--"))


@pytest.mark.parametrize(
    "zone",
    [
        "Europe/Belin", "europe/berlin", "Factory", "Amercia/New_York", "PST8", "Mars/Olympus", "Asia/Calcuta", "UCT+1", "-0430", "Vancouver", "sao paulo",
    ],
)  # fmt: skip
def test_a_misspelt_zone_gets_the_same_advice(page: Page, zone: str) -> None:
    answer = page.ask(PLAIN.replace("Europe/Berlin", zone))
    (finding,) = answer["findings"]
    assert finding["hint"] == re.split(r"; the |(?<=\?) The ", time_zone_hint(zone))[0]
