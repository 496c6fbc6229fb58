"""All capacity over the coming week as plain rows for `timeline.html.j2`, the daemon's page, beside what is there now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from reconciler.model.fill import FillPoint
from reconciler.model.timelines import CapacityTimeline
from reconciler.report.drawing.time_axis import instant_words, local_zone
from reconciler.report.drawing.value_lanes import number_of
from reconciler.report.json_text import timestamp
from reconciler.report.timeline.chart import DESK, PHONE, Present, timeline_chart
from reconciler.report.timeline.lanes import ASKED, Lane, lanes
from reconciler.report.words import moment
from reconciler.zone_data import time_zone

MOST_ROWS = 500
"""The most rows of the table. Nobody would read more."""


def timeline_page(
    timeline: CapacityTimeline, now: datetime, *, there: Mapping[str, Sequence[FillPoint]], zone: tzinfo | None = None
) -> dict[str, Any]:
    """The picture shows what changes in the week; the table everything, with its value now and next.

    there: by buffer and static NodePool (`CapacityBuffer/shop/web`), how many chunks or nodes there were, the oldest point first. zone: for
    the picture; None is that of the schedules if they share one, and otherwise the machine's.
    """
    names = {item.schedule.timezone for item in timeline.schedules}
    place = zone or (time_zone(names.pop()) if len(names) == 1 else local_zone(now))
    zones = {str(item.schedule.ref): item.schedule.timezone for item in timeline.schedules}
    every = lanes(timeline)
    return {
        "when": moment(now, place),
        "charts": [
            {"look": look, "svg": timeline_chart(timeline, zone=place, layout=layout, present=Present(now, there))}
            for look, layout in (("wide", DESK), ("slim", PHONE))
            if any(not lane.is_constant for lane in every)
        ],
        "rows": [_row(lane, now, there.get(lane.name, ()), zones.get(lane.name, "")) for lane in every[:MOST_ROWS]],
        "left": max(0, len(every) - MOST_ROWS),
    }


def _row(lane: Lane, now: datetime, there: Sequence[FillPoint], zone: str) -> dict[str, Any]:
    """zone: a schedule's own, in which its next time is told too."""
    following = next((span for span in lane.spans if span.start > now), None)
    present = next(span for span in reversed(lane.spans) if span.start <= now)
    lacks = lane.group == ASKED and bool(there) and there[-1].ready < (present.value or 0)
    return {
        "group": lane.group,
        "name": lane.name,
        "now": number_of(present.value),
        "there": f"{there[-1].ready:,}" if there else "",
        "tone": "bad" if lacks else "",
        "next": "" if following is None else number_of(following.value),
        "at": None if following is None else timestamp(following.start),
        "local": "" if following is None or not zone else f"{instant_words(following.start, time_zone(zone))} {zone}",
        "why": present.why,
    }
