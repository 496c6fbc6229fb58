"""All capacity over the coming week as plain rows for `timeline.html.j2`, the daemon's page."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from reconciler.model.timelines import CapacityTimeline
from reconciler.report.drawing.time_axis import local_zone
from reconciler.report.drawing.value_lanes import number_of
from reconciler.report.timeline.chart import timeline_chart
from reconciler.report.timeline.lanes import Lane, lanes
from reconciler.report.words import moment

MOST_ROWS = 500
"""The most rows of the table. Nobody would read more."""


def timeline_page(timeline: CapacityTimeline, *, cluster: str, zone: tzinfo | None = None) -> dict[str, Any]:
    """The picture shows what changes in the week; the table everything, with its value now and next."""
    place = zone or local_zone(timeline.start)
    every = lanes(timeline)
    return {
        "title": f"Capacity of {cluster}",
        "when": moment(timeline.start, place),
        "chart": timeline_chart(timeline, zone=place),
        "rows": [_row(lane, place) for lane in every[:MOST_ROWS]],
        "left": max(0, len(every) - MOST_ROWS),
    }


def _row(lane: Lane, zone: tzinfo) -> dict[str, str]:
    following = lane.spans[1] if len(lane.spans) > 1 else None
    return {
        "group": lane.group,
        "name": lane.name,
        "now": number_of(lane.now),
        "next": "" if following is None else f"{number_of(following.value)} from {moment(following.start, zone)}",
        "why": lane.spans[0].why,
    }
