"""Charts and pages of time, held to golden files."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, timedelta
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.findings import Finding, Severity
from reconciler.model.schedules import Behavior, TimePattern
from reconciler.model.timelines import CapacityTimeline, DemandSpan, FillPoint
from reconciler.report.difference.difference import difference
from reconciler.report.difference.page import difference_page
from reconciler.report.drawing import width_of
from reconciler.report.plan.page import plan_page
from reconciler.report.schedules.page import schedule_chart, schedule_page
from reconciler.report.timeline.chart import LaneRow, changed_rows, difference_chart, shared_out, timeline_chart
from reconciler.report.timeline.rows import change_rows, timeline_page, week_rows
from reconciler.wiring.posting import rendered_page
from tests.goldens import GOLDEN, check
from tests.plans import full_plan
from tests.timelines import END, NOW, WORKDAYS, budget_span, capacity, proposal, schedule_timeline

BERLIN = ZoneInfo("Europe/Berlin")
LATER = NOW + timedelta(hours=11)
SVG = "{http://www.w3.org/2000/svg}"


def without_code(page: str) -> str:
    """A page's own words: its scripts and styles have tests of their own."""
    return re.sub(r"<(script|style)>.*?</\1>", r"<\1>…</\1>", page, flags=re.DOTALL)


def charts() -> dict[str, str]:
    return {
        "schedule.svg": schedule_chart([schedule_timeline(proposal(), days=30)], now=NOW),
        "week.svg": timeline_chart(capacity(), zone=BERLIN),
        "week-difference.svg": difference_chart(capacity(), capacity(peak=4, weekend=0), zone=BERLIN),
    }


@pytest.mark.parametrize("name", ["schedule.svg", "week.svg", "week-difference.svg"])
def test_a_chart(name: str) -> None:
    check(GOLDEN / name, charts()[name])


def test_pages() -> None:
    finding = Finding("overlapping-behaviors", Severity.WARNING, "two <overlap>", ref=proposal().ref)
    page = schedule_page([schedule_timeline(proposal())], now=NOW, findings=[finding], zone=BERLIN)
    check(GOLDEN / "schedule.html", without_code(rendered_page("schedule.html.j2", page)))
    there = {"CapacityBuffer/shop/web": (FillPoint(NOW, 8, 2), FillPoint(LATER, 8, 6))}
    page = timeline_page(capacity(), LATER, there=there, zone=BERLIN)
    frame = {"root": "", "cluster": "shop", "version": "1.2.3", "dashboard": "", "above": False}
    check(GOLDEN / "timeline.html", without_code(rendered_page("timeline.html.j2", {**page, **frame})))


def test_the_week_in_a_pull_request() -> None:
    page = plan_page(full_plan(), cluster="production", timeline=capacity(), zone=BERLIN)
    check(GOLDEN / "plan-week.md", rendered_page("report.md.j2", page))
    change = difference(full_plan(), full_plan())
    pair = (capacity(), capacity(peak=4, weekend=0))
    page = difference_page(change, cluster="production", timelines=pair, zone=BERLIN)
    check(GOLDEN / "diff-week.md", rendered_page("report.md.j2", page))


def texts(chart: str) -> list[ET.Element]:
    return list(ET.fromstring(chart).iter(f"{SVG}text"))


def words_of(chart: str) -> str:
    return "\n".join("".join(text.text or "") for text in texts(chart))


def overlapping_texts(chart: str) -> list[tuple[str, str]]:
    """Pairs of texts that would be drawn over one another in a wide font."""
    boxes = []
    for text in texts(chart):
        words = text.text or ""
        look = text.get("class") or ""
        size = 15 if "head" in look else 11 if "small" in look else 12
        width, x, y = width_of(words, size) * 0.94, float(text.get("x") or 0), float(text.get("y") or 0)
        left = x - {"end": width, "middle": width / 2}.get(text.get("text-anchor") or "", 0)
        boxes.append((left, left + width, y - size * 0.7, y, words))
    return [
        (one[4], two[4])
        for index, one in enumerate(boxes)
        for two in boxes[index + 1 :]
        if one[0] < two[1] and two[0] < one[1] and one[2] < two[3] and two[2] < one[3]
    ]


@pytest.mark.parametrize("name", ["schedule.svg", "week.svg", "week-difference.svg"])
def test_no_text_lies_over_another_and_nothing_leaves_the_picture(name: str) -> None:
    chart = charts()[name]
    assert overlapping_texts(chart) == []
    root = ET.fromstring(chart)
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    for shape in root.iter(f"{SVG}rect"):
        x, y, wide, tall = (float(shape.get(key) or 0) for key in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + wide <= width + 1
        assert y + tall <= height


def hours(most: int) -> st.SearchStrategy[TimePattern]:
    listed = st.lists(st.integers(0, 23), min_size=1, max_size=most, unique=True).map(
        lambda values: tuple(sorted(values))
    )
    return st.builds(
        TimePattern, hours=listed, minutes=st.none() | st.just((15, 45)), weekdays=st.none() | st.just(WORKDAYS)
    )


@settings(max_examples=30, deadline=None)
@given(
    behaviors=st.lists(
        st.builds(Behavior, st.integers(0, 20_000), hours(4), hours(4), st.integers(0, 1)), min_size=1, max_size=6
    ),
    zone=st.sampled_from(["UTC", "America/Havana", "Australia/Lord_Howe"]),
    days=st.sampled_from([3, 7, 31]),
)
def test_whatever_the_schedule_its_picture_is_whole_and_its_texts_apart(
    behaviors: list[Behavior], zone: str, days: int
) -> None:
    schedule = replace(proposal(), behaviors=tuple(behaviors), timezone=zone)
    timelines = [schedule_timeline(proposal()), schedule_timeline(schedule, days)]
    assert overlapping_texts(schedule_chart(timelines, now=NOW)) == []


def test_texts_that_overlap_are_noticed() -> None:
    chart = schedule_chart([schedule_timeline(proposal())], now=NOW)
    first = texts(chart)[0].text or ""
    spoilt = chart.replace("</svg>", f'<text x="14" y="26" class="head">{first}</text></svg>')
    assert overlapping_texts(spoilt) != []


def test_a_collision_is_numbered_and_told_with_its_first_time() -> None:
    shown = " ".join(words_of(schedule_chart([schedule_timeline(proposal())], now=NOW)).split())
    assert "1 Collision, first Fri 6 Mar 17:00 to Mon 9 Mar 09:00: behaviors[0] (1) wins over behaviors[2] (2)" in shown


def test_zero_and_unbounded_are_told_without_colour() -> None:
    spans = [
        budget_span(NOW, NOW + timedelta(days=2), None, "Empty"),
        budget_span(NOW + timedelta(days=2), END, 0, "Empty"),
    ]
    chart = timeline_chart(replace(capacity(), budgets=tuple(spans)), zone=UTC)
    assert 'class="cross"' in chart
    assert 'class="free"' in chart
    assert {"0", "∞"} <= set(words_of(chart).splitlines())


def test_of_nothing_there_is_a_picture_that_says_so() -> None:
    assert "There is no schedule." in schedule_chart([], now=NOW)
    nothing = CapacityTimeline(NOW, END)
    assert timeline_chart(nothing, zone=UTC) == ""
    assert week_rows(nothing, UTC)["count"] == 0
    assert difference_chart(capacity(), capacity(), zone=UTC) == ""


def test_a_name_cannot_change_the_picture() -> None:
    evil = replace(proposal(), ref=proposal().ref._replace(name='<script>"&'))
    chart = schedule_chart([schedule_timeline(evil)], now=NOW)
    assert ET.fromstring(chart).get("aria-label") == 'Schedule default/<script>"&'
    assert "<script>" not in chart


def test_only_what_differs_is_before_and_after() -> None:
    assert [row.name for row in changed_rows(capacity(), capacity(peak=4))] == ["CapacityBuffer/shop/web"]
    without = replace(capacity(), demands=())
    assert [row["words"] for row in change_rows(capacity(), without, UTC)["lines"]] == ["5 → absent", "0 to 9 → absent"]


def test_where_there_are_too_many_every_group_is_shown() -> None:
    groups = ["asked"] * 20 + ["worth"] * 2 + ["allowed"] * 9
    rows = [LaneRow(group, str(number), ()) for number, group in enumerate(groups)]
    assert [row.group for row in shared_out(rows, 10)] == ["asked"] * 4 + ["worth"] * 2 + ["allowed"] * 4
    assert shared_out(rows, 100) == rows


def test_of_a_year_the_first_weeks_are_drawn_and_the_rest_is_counted() -> None:
    shown = words_of(schedule_chart([schedule_timeline(proposal(), days=365)], now=NOW))
    assert shown.count(" Mar") >= 7
    assert "… and 44 more weeks: JSON has them all" in shown


# The week as text blocks for a pull request: what a block of four hours shows of what lies in it.


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
