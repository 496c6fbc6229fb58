"""Phrases that every report shares."""

from __future__ import annotations

import pytest

from reconciler.report.words import change_words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (129.562, 129.558, "no change"),
        (129.564, 129.556, "no change"),
        (1.004, 1.006, "+$0.01"),
        (2.0, 1.0, "-$1.00"),
        (0.1, 0.3, "+$0.20"),
    ],
)
def test_a_difference_is_that_of_the_amounts_shown(before: float, after: float, words: str) -> None:
    """It was `$129.56 → $129.56 (-$0.01)`."""
    assert change_words(before, after) == words
