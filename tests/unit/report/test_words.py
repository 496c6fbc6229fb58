"""Phrases, names and numbers that every report shares, and how they are broken into lines and written as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report.escaping import LEAST, to_json, wrapped
from reconciler.report.explanation import matching, near_words
from reconciler.report.words import amounts_words, an_hour, change_words, percent_words


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


@pytest.mark.parametrize(
    ("price", "words"),
    [
        (0.0, "$0.00"),
        (0.00001, "$0.0001"),
        (0.0042, "$0.0042"),
        (0.0999, "$0.0999"),
        (0.1, "$0.10"),
        (12.345, "$12.35"),
    ],
)
def test_a_small_price_an_hour_is_not_told_as_nothing(price: float, words: str) -> None:
    assert an_hour(price) == words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (100.0, 135.5, "+$35.50 (+36%)"),
        (271.74, 270.69, "-$1.05"),
        (271.74, 271.76, "+$0.02"),
        (1.0, 51.0, "+$50.00 (+5,000%)"),
        (0.0, 1.0, "+$1.00"),
    ],
)
def test_a_percentage_that_would_be_zero_is_left_out(before: float, after: float, words: str) -> None:
    assert percent_words(before, after) == words


# Long lines on narrow terminals: nothing is lost, nothing is cut, and what is too wide is one long word.

WORDS = st.lists(st.text("abcdefghij:/[]", min_size=1, max_size=30), min_size=1, max_size=30)


@given(words=WORDS, indent=st.integers(0, 8), width=st.integers(1, 90), painted=st.integers(0, 29))
def test_every_piece_fits_or_is_one_word_and_no_word_is_lost(
    words: list[str], indent: int, width: int, painted: int
) -> None:
    plain = " " * indent + " ".join(words)
    coloured = [click.style(word, fg="red") if index == painted else word for index, word in enumerate(words)]
    pieces = list(wrapped(" " * indent + " ".join(coloured), width))
    bare = [re.sub(r"\x1b\[[0-9;]*m", "", piece) for piece in pieces]
    assert " ".join(bare).split() == words
    assert all(len(piece) <= max(width, LEAST) or " " not in piece.strip() for piece in bare)
    assert len({len(piece) - len(piece.lstrip()) for piece in bare[1:]}) <= 1
    if len(plain) <= width:
        assert bare == [plain]


def test_without_a_width_a_line_is_whole() -> None:
    assert list(wrapped("a " * 500, None)) == ["a " * 500]


# Names that are given in part.

NAMES = (
    "CapacityBuffer/shop/web",
    "CapacityBuffer/shop/web-canary",
    "CapacityBuffer/shop/checkout",
    "ProvisioningRequest/ml/ci-runners",
    "NodePool/general",
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("CapacityBuffer/shop/web", ["CapacityBuffer/shop/web"]),
        ("web", ["CapacityBuffer/shop/web"]),
        ("shop/web", ["CapacityBuffer/shop/web"]),
        ("web/shop", []),
        ("eb", []),
        ("", []),
        ("shop/", []),
    ],
)
def test_the_best_fit_counts(wanted: str, found: list[str]) -> None:
    assert matching(wanted, NAMES) == found


def test_near_names_are_hinted_at() -> None:
    assert near_words("chekout", NAMES) == "did you mean CapacityBuffer/shop/checkout?"
    assert near_words("CapacityBuffer/shop/che", NAMES) == "did you mean CapacityBuffer/shop/checkout?"
    assert near_words("zzz", NAMES) == ""
    assert near_words("ci", NAMES) == "did you mean ProvisioningRequest/ml/ci-runners?"
    assert near_words("eb", NAMES) == "did you mean CapacityBuffer/shop/web or CapacityBuffer/shop/web-canary?"
    many = [f"CapacityBuffer/shop/web-{number}" for number in range(12)]
    assert near_words("web-", many).endswith("web-4? (or one of 7 more)")


# What commands print as JSON.

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
# Text has halves of surrogate pairs too, as names of files have that are not UTF-8.
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters())
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=30
)


@given(DOCUMENTS)
def test_it_is_the_document(document: Any) -> None:
    assert json.loads(to_json({"document": document})) == {"document": document}


def test_it_is_indented_and_in_order() -> None:
    rows: dict[str, Any] = {"rows": [{"from": "Köln, \n 2026", "to": None}], "none": [], "empty": {}, "pair": (1, 2)}
    assert to_json(rows) == json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
