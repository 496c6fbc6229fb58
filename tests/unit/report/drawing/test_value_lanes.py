"""Values over time in columns of pixels: what is drawn where several lie in one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report.drawing.svg import TimeAxis
from reconciler.report.drawing.value_lanes import ValueSpan, merged, visible
from tests.timelines import (
    NOW,
)

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
