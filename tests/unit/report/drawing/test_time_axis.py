"""Where instants and days lie on a chart, and how a span is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.report.drawing.svg import Drawing
from reconciler.report.drawing.time_axis import Pass, TimeAxis, day_pieces, midnight, span_words

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


@settings(deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    begin=st.integers(0, 2 * 365 * 24 * 4),
    length=st.integers(1, 200),
)
def test_a_span_is_cut_into_days_without_a_gap(zone: str, begin: int, length: int) -> None:
    place = ZoneInfo(zone)
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=15 * begin)
    end = start + timedelta(minutes=15 * length)
    pieces = list(day_pieces(start, end, place))
    drawn = sum(piece.last_hour - piece.first_hour for piece in pieces)
    before, after = (instant.astimezone(place).utcoffset() for instant in (start, end))
    assert before is not None
    assert after is not None
    # A span that has both of an hour that comes twice is drawn once there.
    once = max(0.0, (before - after) / timedelta(hours=1)) if all(piece.which is Pass.ONLY for piece in pieces) else 0.0
    assert length / 4 - drawn == pytest.approx(once) or (once and drawn == pytest.approx(length / 4))
    assert all(0 <= piece.first_hour < piece.last_hour <= 24 for piece in pieces)
    assert pieces[0].day == start.astimezone(place).date()
    assert [piece.day for piece in pieces] == sorted(piece.day for piece in pieces)


def test_a_midnight_that_is_skipped_is_the_first_instant_after_it() -> None:
    havana = ZoneInfo("America/Havana")
    assert midnight(datetime(2026, 3, 8).date(), havana) == datetime(2026, 3, 8, 5, tzinfo=UTC)  # noqa: DTZ001 - a date


def test_a_window_in_the_first_of_two_equal_hours_is_not_drawn_over_by_the_second() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    begins = datetime(2026, 10, 25, 0, 15, tzinfo=UTC)
    window = list(day_pieces(begins, begins + timedelta(minutes=30), berlin))
    assert [(piece.first_hour, piece.last_hour, piece.which) for piece in window] == [(2.25, 2.75, Pass.FIRST)]
    later = list(day_pieces(begins + timedelta(minutes=30), begins + timedelta(hours=3), berlin))
    assert [(piece.first_hour, piece.last_hour, piece.which) for piece in later] == [
        (2.75, 3, Pass.FIRST),
        (2, 3, Pass.AGAIN),
        (3, 4.25, Pass.ONLY),
    ]
    (whole,) = day_pieces(begins - timedelta(hours=1), begins + timedelta(hours=3), berlin)
    assert (whole.first_hour, whole.last_hour, whole.which) == (1.25, 4.25, Pass.ONLY)
