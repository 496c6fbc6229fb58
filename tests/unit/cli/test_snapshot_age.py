"""How old a snapshot is, in words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.cli.plan import age_in_words


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=59), "0 minutes old"),
        (timedelta(seconds=119), "1 minute old"),
        (timedelta(minutes=119), "119 minutes old"),
        (timedelta(minutes=120), "2 hours old"),
        (timedelta(hours=47, minutes=59), "47 hours old"),
        (timedelta(days=2), "2 days old"),
        (timedelta(seconds=-1), "taken after the time that is planned for"),
    ],
)
def test_the_unit_is_the_largest_of_which_there_are_two(age: timedelta, words: str) -> None:
    assert age_in_words(age) == words
