"""Two revisions' lanes side by side: what is a difference of capacity, and what is only another moment of looking."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.model.timelines import CapacityTimeline, DemandSpan
from reconciler.report.timeline.chart import lane_changes
from tests.timelines import END, NOW, capacity


def later(timeline: CapacityTimeline, by: timedelta) -> CapacityTimeline:
    """The same as it is foreseen from another instant on: what has passed is left out, a little more is seen at the end."""

    def moved(span: DemandSpan) -> DemandSpan:
        start, end = span.start, span.end
        return replace(
            span,
            start=start + by if start == timeline.start else start,
            end=end + by if end == timeline.end else end,
        )

    return CapacityTimeline(
        timeline.start + by, timeline.end + by, demands=tuple(moved(span) for span in timeline.demands)
    )


def test_a_later_beginning_alone_is_no_difference() -> None:
    base = CapacityTimeline(NOW, END, demands=capacity().demands)
    assert lane_changes(base, later(base, timedelta(seconds=1))) == ()
    head = CapacityTimeline(NOW, END, demands=capacity(peak=4).demands)
    changes = lane_changes(base, later(head, timedelta(seconds=1)))
    assert [item.either.name for item in changes] == ["CapacityBuffer/shop/web"]
