"""Schedules as plain rows for `schedule.html.j2`, the page on which a person checks one while writing it. Called by `headroom schedule`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from reconciler.model.findings import Finding
from reconciler.model.schedules import NO_PLACES
from reconciler.model.timelines import ScheduleTimeline
from reconciler.report.page import finding_row
from reconciler.report.schedule_chart import schedule_chart
from reconciler.report.schedule_document import schedule_document
from reconciler.report.words import moment
from reconciler.zone_data import zone_names

MOST_DRAWN = 20
"""Schedules in the picture; the page itself has all of them."""
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
"""What the editor begins with where there is no schedule yet."""


def time_zones() -> list[str]:
    """The names that a schedule may have for its time zone: the page takes no others, though browsers do."""
    return sorted(zone_names() - NO_PLACES)


def schedule_page(
    timelines: Sequence[ScheduleTimeline],
    *,
    now: datetime,
    findings: Sequence[Finding] = (),
    zone: tzinfo | None = None,
) -> dict[str, Any]:
    """The page computes by itself from the documents; the picture is for who reads it without scripts."""
    schedules = [
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
        "findings": [finding_row(finding) for finding in findings],
    }
