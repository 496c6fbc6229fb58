"""No sentence of the documentation is long."""

from __future__ import annotations

from tests.architecture.long_sentences import MOST_WORDS
from tests.architecture.source_tree import ROOT
from tests.docs.long_sentences import PAGES, sentences


def test_no_sentence_is_long() -> None:
    """`python -m tests.docs.long_sentences` shows them all."""
    found = [
        f"{page.relative_to(ROOT)}:{line}: {sentence}"
        for page in PAGES
        for words, line, sentence in sentences(page.read_text())
        if words > MOST_WORDS
    ]
    assert found == []


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
