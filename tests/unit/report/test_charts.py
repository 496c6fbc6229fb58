"""Charts and pages of time, held to golden files (HEADROOM_GOLDEN=write renews them; look at them in a browser before)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, timedelta
from math import inf
from pathlib import Path
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.findings import Finding, Severity
from reconciler.model.schedules import Behavior, TimePattern
from reconciler.model.timelines import CapacityTimeline
from reconciler.packaged import packaged_texts
from reconciler.render.environment import Templates
from reconciler.report.budget_chart import budget_chart
from reconciler.report.budget_page import budget_page
from reconciler.report.difference import difference
from reconciler.report.drawing import STEPS, fitting, on_step, step_of, width_of
from reconciler.report.lanes import ValueSpan, merged, visible
from reconciler.report.page import difference_page, plan_page
from reconciler.report.schedule_chart import schedule_chart
from reconciler.report.schedule_page import schedule_page
from reconciler.report.time_axis import TimeAxis
from reconciler.report.timeline_chart import difference_chart, timeline_chart
from reconciler.report.timeline_lanes import lane_changes, shared_out
from reconciler.report.timeline_page import timeline_page
from reconciler.report.timeline_rows import change_rows, week_rows
from tests.builders import buffer_ref
from tests.plans import full_plan
from tests.timelines import (
    END,
    NOW,
    WORKDAYS,
    budget_span,
    budgets,
    capacity,
    proposal,
    schedule_ref,
    schedule_timeline,
)

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
BERLIN = ZoneInfo("Europe/Berlin")
ROUNDING = timedelta(milliseconds=1)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def templates() -> Templates:
    return Templates(packaged_texts("templates", suffix=".j2"))


def check(name: str, text: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("HEADROOM_GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()


def without_code(page: str) -> str:
    """A page's own words: its scripts and styles have tests of their own."""
    return re.sub(r"<(script|style)>.*?</\1>", r"<\1>…</\1>", page, flags=re.DOTALL)


def charts() -> dict[str, str]:
    return {
        "schedule.svg": schedule_chart([schedule_timeline(proposal(), days=30)], now=NOW),
        "budgets.svg": budget_chart(budgets(), zone=BERLIN, now=NOW),
        "week.svg": timeline_chart(capacity(), zone=BERLIN),
        "week-difference.svg": difference_chart(capacity(), capacity(peak=4, weekend=0), zone=BERLIN),
    }


@pytest.mark.parametrize("name", ["schedule.svg", "budgets.svg", "week.svg", "week-difference.svg"])
def test_a_chart(name: str) -> None:
    check(name, charts()[name])


def test_pages(templates: Templates) -> None:
    finding = Finding("overlapping-behaviors", Severity.WARNING, "two <overlap>", ref=proposal().ref)
    page = schedule_page([schedule_timeline(proposal())], now=NOW, findings=[finding], zone=BERLIN)
    check("schedule.html", without_code(templates.render("schedule.html.j2", page)))
    outcomes = [span.outcome for span in budgets() if span.start == NOW]
    page = budget_page(outcomes, budgets(), heading="Disruption budgets on shop", now=NOW, zone=BERLIN)
    check("budgets.html", without_code(templates.render("budgets.html.j2", page)))
    page = timeline_page(capacity(), cluster="shop", zone=BERLIN)
    check("timeline.html", without_code(templates.render("timeline.html.j2", page)))


def test_the_week_in_a_pull_request(templates: Templates) -> None:
    page = plan_page(full_plan(), cluster="production", timeline=capacity(), zone=BERLIN)
    check("plan-week.md", templates.render("report.md.j2", page))
    change = difference(full_plan(), full_plan())
    pair = (capacity(), capacity(peak=4, weekend=0))
    page = difference_page(change, cluster="production", timelines=pair, zone=BERLIN)
    check("diff-week.md", templates.render("report.md.j2", page))


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


@pytest.mark.parametrize("name", ["schedule.svg", "budgets.svg", "week.svg", "week-difference.svg"])
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


def test_the_proposals_week_has_its_three_colours_and_numbers() -> None:
    chart = schedule_chart([schedule_timeline(proposal())], now=NOW)
    looks = set(re.findall(r'class="(v\d)"', chart))
    assert looks == {f"v{step_of(value, [1, 2, 3])}" for value in (1, 2, 3)}
    assert len(looks) == 3
    shown = words_of(chart).splitlines()
    assert {"1", "2", "3"} <= set(shown)
    assert "3 behaviors[1]" in shown


def test_a_collision_is_numbered_in_the_grid_and_told_with_its_first_time() -> None:
    shown = " ".join(words_of(schedule_chart([schedule_timeline(proposal())], now=NOW)).split())
    assert "1 Collision, first Fri 6 Mar 17:00 to Mon 9 Mar 09:00: behaviors[0] (1) wins over behaviors[2] (2)" in shown


def test_a_behavior_that_counts_at_no_time_is_named() -> None:
    hidden = Behavior(7, TimePattern(weekdays=(1,), hours=(10,)), TimePattern(weekdays=(1,), hours=(11,)))
    schedule = replace(proposal(), behaviors=(*proposal().behaviors, hidden))
    assert "behaviors[3] (7) counts at no time in this span" in words_of(
        schedule_chart([schedule_timeline(schedule)], now=NOW)
    )


def test_zero_and_unbounded_are_told_without_colour() -> None:
    chart = budget_chart(budgets(), zone=UTC, now=NOW)
    assert 'class="cross"' in chart
    assert 'class="free"' in chart
    assert {"0", "∞", "4", "12"} <= set(words_of(chart).splitlines())


def test_a_longer_span_of_budgets_has_a_row_a_week() -> None:
    longer = [budget_span(NOW, NOW + timedelta(days=15), 4, "Empty")]
    assert words_of(budget_chart(longer, zone=UTC, now=NOW)).splitlines().count("Empty") == 3


def test_of_nothing_there_is_a_picture_that_says_so() -> None:
    assert "There is no NodePool." in budget_chart([], zone=UTC, now=NOW)
    assert "There is no schedule." in schedule_chart([], now=NOW)
    nothing = CapacityTimeline(NOW, END)
    assert timeline_chart(nothing, zone=UTC) == ""
    assert week_rows(nothing, UTC)["count"] == 0
    assert difference_chart(capacity(), capacity(), zone=UTC) == ""


def test_a_name_cannot_change_the_picture() -> None:
    evil = replace(proposal(), ref=replace(proposal().ref, name='<script>"&'))
    chart = schedule_chart([schedule_timeline(evil)], now=NOW)
    assert ET.fromstring(chart).get("aria-label") == 'Schedule default/<script>"&'
    assert "<script>" not in chart


def named(chart: str) -> list[str]:
    """What stands at the left of the lanes."""
    return [text.text or "" for text in texts(chart) if text.get("x") == "12" and "small" in (text.get("class") or "")]


def test_names_of_one_group_look_alike() -> None:
    short = capacity()
    assert named(timeline_chart(short, zone=UTC)) == [
        "CapacityBuffer/shop/web",
        "default/scheduling",
        "NodePool/general Underutilized",
    ]
    longer = schedule_timeline(replace(proposal(), ref=schedule_ref("scheduling-of-the-whole-shop")))
    web = [replace(span, ref=buffer_ref("web-in-the-north-and-south")) for span in short.demands[1:]]
    chart = timeline_chart(
        replace(short, demands=(*short.demands, *web), schedules=(*short.schedules, longer)), zone=UTC
    )
    assert named(chart)[:3] == ["shop/web", "shop/web-in-the-north-and-south", "default/scheduling"]
    assert not any("/" in name and name.startswith("MetricsProducer") for name in named(chart))


def test_only_what_differs_is_before_and_after() -> None:
    changes = lane_changes(capacity(), capacity(peak=4))
    assert [item.either.name for item in changes] == ["CapacityBuffer/shop/web"]
    without = replace(capacity(), demands=())
    (cart, web) = lane_changes(capacity(), without)
    assert (cart.after, web.after) == (None, None)
    assert [row["words"] for row in change_rows(capacity(), without, UTC)["lines"]] == ["5 → absent", "0 to 9 → absent"]


def test_where_there_are_too_many_every_group_is_shown() -> None:
    groups = ["asked"] * 20 + ["worth"] * 2 + ["allowed"] * 9
    shown = [groups[index] for index in shared_out(groups, 10)]
    assert shown == ["asked"] * 4 + ["worth"] * 2 + ["allowed"] * 4
    assert shared_out(groups, 100) == list(range(31))


def in_turn(lengths: Sequence[int], values: Sequence[int | None]) -> list[ValueSpan]:
    """Spans of so many minutes, one after the other from NOW on."""
    spans = []
    at = NOW
    for minutes, value in zip(lengths, values, strict=False):
        spans.append(ValueSpan(at, at + timedelta(minutes=minutes), value))
        at += timedelta(minutes=minutes)
    return spans


@given(
    lengths=st.lists(st.sampled_from([1, 10, 30, 45, 600, 1410, 4000]), min_size=1, max_size=60),
    values=st.lists(st.none() | st.integers(0, 4), min_size=60, max_size=60),
    width=st.integers(1, 40),
    lowest=st.booleans(),
)
def test_each_pixel_shows_the_extreme_of_what_lies_in_it_and_each_stroke_is_a_span(
    lengths: list[int],
    values: list[int | None],
    width: int,
    lowest: bool,  # noqa: FBT001 - a parameter of a test
) -> None:
    spans = in_turn(lengths, values)
    strokes = visible(spans, TimeAxis(NOW, spans[-1].end, UTC, 20, width), lowest=lowest)
    assert [stroke.left for stroke in strokes] == [20, *(stroke.right for stroke in strokes[:-1])]
    assert strokes[-1].right == 20 + width
    assert all(stroke.span in merged(spans) for stroke in strokes), "what is told of it is true"
    whole = spans[-1].end - NOW
    for pixel in range(width):
        begins, ends = NOW + whole * pixel / width, NOW + whole * (pixel + 1) / width
        inside = [
            inf if span.value is None else span.value
            for span in spans
            if (ends - span.start) > ROUNDING and (span.end - begins) > ROUNDING
        ]
        (shown,) = (stroke.span for stroke in strokes if stroke.left <= 20 + pixel < stroke.right)
        assert (inf if shown.value is None else shown.value) == (min if lowest else max)(inside)


@pytest.mark.parametrize(
    ("usual", "rare", "lowest"), [(0, 2, False), (5, 0, True)], ids=["half an hour of 2", "half an hour closed"]
)
def test_half_an_hour_a_day_is_no_day(usual: int, rare: int, lowest: bool) -> None:  # noqa: FBT001 - a parameter of a test
    spans = in_turn([135, *[30, 1410] * 30, 30, 1275], [usual, *[rare, usual] * 31])
    strokes = visible(spans, TimeAxis(NOW, spans[-1].end, UTC, 88, 660), lowest=lowest)
    rarely = [stroke for stroke in strokes if stroke.span.value == rare]
    assert len(rarely) == 31
    assert sum(stroke.right - stroke.left for stroke in rarely) <= 2 * 31
    assert all(stroke.span.end - stroke.span.start == timedelta(minutes=30) for stroke in rarely)


def test_a_month_of_short_windows_is_told_as_it_is() -> None:
    window = Behavior(2, TimePattern(hours=(2,), minutes=(15,)), TimePattern(hours=(2,), minutes=(45,)))
    schedule = replace(proposal(), behaviors=(window,), default_replicas=0)
    chart = schedule_chart([schedule_timeline(schedule, days=31)], now=NOW)
    told = {title.text or "" for title in ET.fromstring(chart).iter(f"{SVG}title")}
    assert "2: Sun 22 Mar 02:15 to 02:45" in told
    assert not any(words.startswith("2: ") and " to " in words and words[-5:] != "02:45" for words in told)


def contrast(one: str, two: str) -> float:
    """As WCAG 2.2 has it, 1 to 21."""

    def luminance(colour: str) -> float:
        parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(two)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read_on_what_is_behind_it(dark: bool) -> None:  # noqa: FBT001 - a parameter of a test
    style = charts()["budgets.svg"].partition("@media")[2 if dark else 0]
    colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", style))
    pairs = [("ink", "page"), ("soft", "page"), ("bad", "page"), ("ink", "faint")]
    pairs += [("onlow" if on_step(step) == "onlow" else "onhigh", f"v{step}") for step in range(STEPS)]
    for text, behind in pairs:
        assert contrast(colour[text], colour[behind]) >= 4.5, (text, behind)


@given(values=st.lists(st.integers(0, 10**6), min_size=2, max_size=20))
def test_colours_rise_with_values(values: list[int]) -> None:
    steps = [step_of(value, values) for value in sorted(values)]
    assert steps == sorted(steps)
    assert all(0 <= step < STEPS for step in steps)
    if len(set(values)) > 1:
        assert (steps[0], steps[-1]) == (0, STEPS - 1)


@given(text=st.text("abcdefgh-/0123456789", max_size=80), width=st.integers(0, 400))
def test_a_text_that_is_cut_fits_and_keeps_its_ends(text: str, width: int) -> None:
    cut = fitting(text, width)
    if cut != text:
        assert "…" in cut
        head, _, tail = cut.partition("…")
        assert text.startswith(head)
        assert text.endswith(tail)
