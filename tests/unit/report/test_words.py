"""Phrases that every report shares."""

from __future__ import annotations

import pytest

from reconciler.report.words import amounts_words, change_words


@pytest.mark.parametrize(
    ("before", "after", "amounts", "words"),
    [
        (129.562, 129.558, "$129.56 → $129.56", "no change"),
        (129.564, 129.556, "$129.56 → $129.55", "-$0.01"),
        (374.004, 410.611, "$374.00 → $410.61", "+$36.61"),
        (374.006, 410.613, "$374.01 → $410.62", "+$36.61"),
        (0.004, 0.0, "$0.00 → $0.00", "no change"),
        (2.0, 1.0, "$2.00 → $1.00", "-$1.00"),
        (0.1, 0.3, "$0.10 → $0.30", "+$0.20"),
    ],
)
def test_a_difference_is_that_of_the_amounts_shown(before: float, after: float, amounts: str, words: str) -> None:
    """It was `$129.56 → $129.56 (-$0.01)`. Then one report had `+$36.60` and `+$36.61` for the same."""
    assert amounts_words(before, after) == amounts
    assert change_words(before, after) == words
