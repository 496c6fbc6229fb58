"""Sentences of the documentation are short; how many are not is written down here, and becomes fewer."""

from __future__ import annotations

from collections import Counter

from tests.architecture.long_sentences import MOST_WORDS
from tests.architecture.source_tree import ROOT
from tests.docs.long_sentences import PAGES, sentences

# By folder: `python -m tests.docs.long_sentences` shows them. Lower a number when it falls.
LONG = {"docs/adr": 67}


def test_no_more_sentences_are_long() -> None:
    found = Counter(
        str(page.relative_to(ROOT).parent)
        for page in PAGES
        for words, _, _ in sentences(page.read_text())
        if words > MOST_WORDS
    )
    assert {folder: number for folder, number in found.items() if number > LONG.get(folder, 0)} == {}


def test_prose_and_list_items_count_and_code_and_tables_do_not() -> None:
    page = (
        "# Heading of four words\n\nOne two\nthree. Four `a b c` [six seven](x y.md).\n\n"
        "| a | table |\n\n- Item one.\n  Item two.\n1. Three\n\n```\nno prose at all\n```\n\n    nor this\n"
    )
    assert list(sentences(page)) == [
        (3, 3, "One two three."),
        (4, 3, "Four `…` [six seven]."),
        (2, 8, "Item one."),
        (2, 8, "Item two."),
        (1, 10, "Three"),
    ]
