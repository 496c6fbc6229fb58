"""The week as text blocks for a pull request: what a block of four hours shows of what lies in it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta

from reconciler.model.timelines import CapacityTimeline, DemandSpan
from reconciler.report.timeline.chart import changed_rows
from reconciler.report.timeline.rows import week_rows
from tests.timelines import END, NOW, budget_span, capacity


def test_a_peak_of_an_hour_is_not_hidden_in_its_four_hours() -> None:
    (row, *_) = week_rows(capacity(), UTC)["lines"]
    assert row["name"] == "CapacityBuffer/shop/web"
    ((_, blocks),) = row["blocks"]
    assert blocks.count("█") == 1
    assert blocks.split("|")[4] == "···█··"


def test_a_closed_door_of_an_hour_is_not_hidden() -> None:
    closed = NOW + timedelta(days=2)
    spans = (
        budget_span(NOW, closed, 4, "Empty"),
        budget_span(closed, closed + timedelta(minutes=30), 0, "Empty"),
        budget_span(closed + timedelta(minutes=30), END, 4, "Empty"),
    )
    (row,) = week_rows(CapacityTimeline(NOW, END, budgets=spans), UTC)["lines"]
    assert (row["blocks"][0][1].count("◦"), row["blocks"][0][1].count("·")) == (1, 0)


def test_an_open_door_of_an_hour_is_not_hidden_either() -> None:
    """The least of the block is 0 all the same; its mark says that it is not all of it."""
    opens = NOW + timedelta(days=2)
    spans = (
        budget_span(NOW, opens, 0, "Empty"),
        budget_span(opens, opens + timedelta(minutes=30), 4, "Empty"),
        budget_span(opens + timedelta(minutes=30), END, 0, "Empty"),
    )
    week = week_rows(CapacityTimeline(NOW, END, budgets=spans), UTC)
    assert week["lines"][0]["blocks"][0][1].count("◦") == 1
    assert "for budgets it is the lowest" in week["legend"]
    assert "◦ is 0 for part of the block" in week["legend"]


# Two revisions' lanes side by side: what is a difference of capacity, and what is only another moment of looking.


def later(timeline: CapacityTimeline, by: timedelta) -> CapacityTimeline:
    """The same as it is foreseen from another instant on: what has passed is left out, a little more is seen at the end."""

    def moved(span: DemandSpan) -> DemandSpan:
        start, end = span.start, span.end
        return replace(
            span, start=start + by if start == timeline.start else start, end=end + by if end == timeline.end else end
        )

    return CapacityTimeline(
        timeline.start + by, timeline.end + by, demands=tuple(moved(span) for span in timeline.demands)
    )


def test_a_later_beginning_alone_is_no_difference() -> None:
    base = CapacityTimeline(NOW, END, demands=capacity().demands)
    assert changed_rows(base, later(base, timedelta(seconds=1))) == []
    head = CapacityTimeline(NOW, END, demands=capacity(peak=4).demands)
    changes = changed_rows(base, later(head, timedelta(seconds=1)))
    assert [row.name for row in changes] == ["CapacityBuffer/shop/web"]
