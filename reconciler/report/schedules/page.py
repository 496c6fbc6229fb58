"""Schedules as plain rows for `schedule.html.j2`, the page on which people check a schedule while they write it. Called by `headroom schedule`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from reconciler.model.findings import Finding
from reconciler.model.schedules import NO_PLACES
from reconciler.model.timelines import ScheduleTimeline
from reconciler.report.findings.page import finding_row
from reconciler.report.schedules.chart import schedule_chart
from reconciler.report.schedules.manifest import schedule_document
from reconciler.report.words import moment
from reconciler.zone_data import zone_names

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
        "findings": [{**finding_row(finding), "schedule": _about(finding, broken)} for finding in findings],
    }


def _about(finding: Finding, broken: Sequence[BrokenDocument]) -> str:
    """The name in the editor's list of what the finding is about."""
    found = next((item.name for item in broken if item.has(finding)), None)
    if found is not None:
        return found
    return "" if finding.ref is None else f"{finding.ref.namespace}/{finding.ref.name}"
