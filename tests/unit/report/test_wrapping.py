"""Long lines on narrow terminals: nothing is lost, nothing is cut, and what is too wide is one long word."""

from __future__ import annotations

import re

import click
from hypothesis import given
from hypothesis import strategies as st

from reconciler.report.escaping import LEAST, wrapped

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
