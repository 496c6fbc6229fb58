"""Where instants and days lie on a chart, and how a span is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reconciler.report.drawing.svg import Drawing, TimeAxis, midnight, span_words

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
