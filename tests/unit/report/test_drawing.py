"""Colours of the scale, texts that fit their room, where instants and days lie, and lanes of values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report.drawing import (
    STEPS,
    Drawing,
    TimeAxis,
    ValueSpan,
    fitting,
    merged,
    midnight,
    on_step,
    span_words,
    step_of,
    strokes,
)
from tests.timelines import NOW


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
    style = Drawing(100, "", "").svg(10).partition("@media")[2 if dark else 0]
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


@given(values=st.lists(st.integers(0, 10**6), min_size=2, max_size=30))
def test_something_never_looks_like_nothing(values: list[int]) -> None:
    shown = [0, *values]
    assert all(step_of(value, shown) > step_of(0, shown) for value in values if value)


# Where instants and days lie on a chart, and how a span is told.

ZONES = ("UTC", "America/Havana", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Los_Angeles")


@pytest.mark.parametrize("hours", range(1, 24))
def test_the_day_after_a_first_day_in_part_keeps_its_name(hours: int) -> None:
    drawing = Drawing(900, "", "")
    axis = TimeAxis(datetime(2026, 3, 6, 24 - hours, tzinfo=UTC), datetime(2026, 3, 13, tzinfo=UTC), UTC, 100, 780)
    axis.draw(drawing, 20, 40)
    names = re.findall(r">(\w{3} \d+ Mar)<", drawing.svg(60))
    assert names[-6:] == ["Sat 7 Mar", "Sun 8 Mar", "Mon 9 Mar", "Tue 10 Mar", "Wed 11 Mar", "Thu 12 Mar"]


def test_a_span_within_a_minute_is_told_to_the_second() -> None:
    begins = datetime(2026, 3, 6, 9, tzinfo=UTC)
    assert span_words(begins, begins + timedelta(seconds=42), UTC) == "Fri 6 Mar 09:00 to 09:00:42"


def test_a_midnight_that_is_skipped_is_the_first_instant_after_it() -> None:
    havana = ZoneInfo("America/Havana")
    assert midnight(datetime(2026, 3, 8).date(), havana) == datetime(2026, 3, 8, 5, tzinfo=UTC)  # noqa: DTZ001 - a date


# Values over time in columns of pixels: what is drawn where several lie in one.

ROUNDING = timedelta(milliseconds=1)


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
    drawn = strokes(spans, TimeAxis(NOW, spans[-1].end, UTC, 20, width), lowest=lowest)
    assert [stroke.left for stroke in drawn] == [20, *(stroke.right for stroke in drawn[:-1])]
    assert drawn[-1].right == 20 + width
    assert all(stroke.span in merged(spans) for stroke in drawn), "what is told of it is true"
    whole = spans[-1].end - NOW
    for pixel in range(width):
        begins, ends = NOW + whole * pixel / width, NOW + whole * (pixel + 1) / width
        inside = [
            inf if span.value is None else span.value
            for span in spans
            if (ends - span.start) > ROUNDING and (span.end - begins) > ROUNDING
        ]
        (shown,) = (stroke.span for stroke in drawn if stroke.left <= 20 + pixel < stroke.right)
        assert (inf if shown.value is None else shown.value) == (min if lowest else max)(inside)


@pytest.mark.parametrize(
    ("usual", "rare", "lowest"), [(0, 2, False), (5, 0, True)], ids=["half an hour of 2", "half an hour closed"]
)
def test_half_an_hour_a_day_is_no_day(usual: int, rare: int, lowest: bool) -> None:  # noqa: FBT001 - a parameter of a test
    spans = in_turn([135, *[30, 1410] * 30, 30, 1275], [usual, *[rare, usual] * 31])
    drawn = strokes(spans, TimeAxis(NOW, spans[-1].end, UTC, 88, 660), lowest=lowest)
    rarely = [stroke for stroke in drawn if stroke.span.value == rare]
    assert len(rarely) == 31
    assert sum(stroke.right - stroke.left for stroke in rarely) <= 2 * 31
    assert all(stroke.span.end - stroke.span.start == timedelta(minutes=30) for stroke in rarely)
