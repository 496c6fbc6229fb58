"""Timelines of schedules as JSON (`headroom.dev/schedules/v1`). Called by `headroom schedule`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from reconciler.model.changes import ScheduleOutcome
from reconciler.model.findings import Finding
from reconciler.model.timelines import ScheduleTimeline
from reconciler.report.findings.document import finding_row
from reconciler.report.json_text import timestamp

SCHEDULES_SCHEMA = "headroom.dev/schedules/v1"


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
