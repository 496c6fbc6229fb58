"""Options that several commands share: instants."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click
import pytest

from reconciler.cli.options import Moment


def read(words: str) -> datetime:
    return Moment().convert(words, None, None)


@pytest.mark.parametrize(
    "words", ["2026-03-01", "20260301", "2026-03-01T09:30", "2026-03-01 09:30:15", "2026-03-01T09"]
)
def test_what_is_said_to_write_instead_is_accepted(words: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        read(words)
    told = re.fullmatch(r"'.*' has no offset: write (\S+) for UTC, or (\S+)\.", refused.value.message)
    assert told is not None, refused.value.message
    meant = datetime.fromisoformat(words).replace(tzinfo=UTC)
    assert read(told[1]) == meant
    assert read(told[2]) == meant - timedelta(hours=1)


def test_instants_are_read_in_utc() -> None:
    assert read("2026-03-01T09:30:00+01:00") == datetime(2026, 3, 1, 8, 30, tzinfo=UTC)
