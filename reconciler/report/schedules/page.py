"""Capacity schedules as JSON, as rows for `schedule.html.j2`, and as the manifest itself. Called by `headroom schedule`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from reconciler.model.changes import ScheduleOutcome
from reconciler.model.findings import Finding
from reconciler.model.refs import DEFAULT_NAMESPACE
from reconciler.model.schedules import NO_PLACES, Schedule, TimePattern
from reconciler.model.timelines import ScheduleTimeline
from reconciler.report.escaping import timestamp
from reconciler.report.findings import finding_row, finding_words
from reconciler.report.schedules.chart import schedule_chart
from reconciler.report.words import moment
from reconciler.zone_data import zone_names

SCHEDULES_SCHEMA = "headroom.dev/schedules/v1"
MOST_DRAWN = 20
"""The most schedules in the picture. The editor has all of them."""
EXAMPLE = """apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata:
  name: office-hours
spec:
  schedule:
    timezone: UTC
    defaultReplicas: 0
    behaviors:
      - replicas: 3
        start: {weekdays: "Mon,Tue,Wed,Thu,Fri", hours: 9}
        end: {weekdays: "Mon,Tue,Wed,Thu,Fri", hours: 17}
"""
"""The editor's initial text if there is no schedule."""
_WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def schedules_document(
    timelines: Iterable[ScheduleTimeline], *, now: datetime, start: datetime, end: datetime, findings: Iterable[Finding]
) -> dict[str, Any]:
    """Every schedule's value now and next, and its timeline in [start, end)."""
    return {
        "schemaVersion": SCHEDULES_SCHEMA,
        "now": timestamp(now),
        "from": timestamp(start),
        "to": timestamp(end),
        "schedules": [_schedule(timeline) for timeline in timelines],
        "findings": [finding_row(finding) for finding in findings],
    }


def _schedule(timeline: ScheduleTimeline) -> dict[str, Any]:
    schedule = timeline.schedule
    position = schedule.position
    return {
        **schedule_row(timeline.outcome),
        "timezone": schedule.timezone,
        "source": None if position is None else {"file": position.file, "line": position.line},
        "timeline": [
            {"from": timestamp(span.start), "to": timestamp(span.end), "value": span.value, "behavior": span.behavior}
            for span in timeline.spans
        ],
        "collisions": [
            {"from": timestamp(item.start), "to": timestamp(item.end), "winner": item.winner, "loser": item.loser}
            for item in timeline.collisions
        ],
    }


def schedule_row(row: ScheduleOutcome) -> dict[str, Any]:
    return {
        "namespace": row.namespace,
        "name": row.name,
        "currentValue": row.current_value,
        "nextValue": row.next_value,
        "nextValueTime": None if row.next_value_time is None else timestamp(row.next_value_time),
    }


@dataclass(frozen=True, slots=True)
class BrokenDocument:
    """A document with errors, as in its file, for the editor to begin with.

    name: `NAMESPACE/NAME`, or its position if the name cannot be read. lines: the first and the last, from 1.
    """

    name: str
    file: str
    lines: tuple[int, int]
    text: str

    def has(self, finding: Finding) -> bool:
        place = finding.position
        return place is not None and place.file == self.file and self.lines[0] <= place.line <= self.lines[1]


def time_zones() -> list[str]:
    """The time zone names that a schedule may have. Browsers accept others, but the page does not."""
    return sorted(zone_names() - NO_PLACES)


def schedule_page(
    timelines: Sequence[ScheduleTimeline],
    *,
    now: datetime,
    findings: Sequence[Finding] = (),
    broken: Sequence[BrokenDocument] = (),
    zone: tzinfo | None = None,
) -> dict[str, Any]:
    """The page computes everything from the documents, broken ones first; the picture is for readers without scripts."""
    schedules = [{"name": item.name, "document": item.text} for item in broken] + [
        {
            "name": f"{timeline.schedule.ref.namespace}/{timeline.schedule.ref.name}",
            "document": schedule_document(timeline.schedule),
        }
        for timeline in timelines
    ]
    return {
        "title": "Capacity schedules",
        "when": moment(now, zone),
        "now": f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "zones": time_zones(),
        "schedules": schedules or [{"name": "an example", "document": EXAMPLE}],
        "chart": schedule_chart(timelines[:MOST_DRAWN], now=now, findings=findings),
        "is_example": not schedules,
        "findings": [{**finding_words(finding), "schedule": _about(finding, broken)} for finding in findings],
    }


def _about(finding: Finding, broken: Sequence[BrokenDocument]) -> str:
    """The name in the editor's list of what the finding is about."""
    broken_name = next((item.name for item in broken if item.has(finding)), None)
    if broken_name is not None:
        return broken_name
    return "" if finding.ref is None else f"{finding.ref.namespace}/{finding.ref.name}"


def schedule_document(schedule: Schedule) -> str:
    lines = [
        "apiVersion: autoscaling.karpenter.sh/v1alpha1",
        "kind: MetricsProducer",
        "metadata:",
        f"  name: {_text(schedule.ref.name)}",
    ]
    if schedule.ref.namespace != DEFAULT_NAMESPACE:
        lines.append(f"  namespace: {_text(schedule.ref.namespace)}")
    lines += [
        "spec:",
        "  schedule:",
        f"    timezone: {schedule.timezone}",
        f"    defaultReplicas: {schedule.default_replicas}",
    ]
    if not schedule.behaviors:
        lines.append("    behaviors: []")
    else:
        lines.append("    behaviors:")
    for behavior in schedule.behaviors:
        lines.append(f"      - replicas: {behavior.replicas}")
        if behavior.priority:
            lines.append(f"        priority: {behavior.priority}")
        lines += _pattern("start", behavior.start)
        lines += _pattern("end", behavior.end)
    return "\n".join(lines) + "\n"


def _text(name: str) -> str:
    """Quotes a name that YAML would read as a number or a keyword."""
    plain = name.replace("-", "").replace(".", "")
    return name if plain.isalpha() and plain.lower() not in {"true", "false", "null"} else json.dumps(name)


def _pattern(name: str, pattern: TimePattern) -> Iterator[str]:
    fields = {
        "weekdays": pattern.weekdays
        and [_WEEKDAYS[number] for number in sorted(pattern.weekdays, key=lambda number: (number - 1) % 7)],
        "days": pattern.days,
        "months": pattern.months and [_MONTHS[number - 1] for number in pattern.months],
        "hours": pattern.hours,
        "minutes": pattern.minutes,
    }
    written = {field: values for field, values in fields.items() if values}
    if not written:
        yield f"        {name}: {{}}"
        return
    yield f"        {name}:"
    for field, values in written.items():
        words = ",".join(str(value) for value in values)
        # Some parsers would read 1,2 as one number.
        yield f"          {field}: {words if len(values) == 1 or field in {'weekdays', 'months'} else json.dumps(words)}"
