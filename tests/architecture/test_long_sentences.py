"""Sentences in comments and docstrings are short; how many are not is written down here, and becomes fewer."""

from __future__ import annotations

from collections import Counter

from tests.architecture.long_sentences import MOST_WORDS, sentences
from tests.architecture.source_tree import ROOT

# By package: `python -m tests.architecture.long_sentences` shows them. Lower a number when it falls.
LONG = {
    "optimizer": 2,
}


def test_no_more_sentences_are_long() -> None:
    found = Counter(
        path.relative_to(ROOT / "reconciler").parts[0]
        for path in (ROOT / "reconciler").rglob("*.py")
        for words, _, _ in sentences(path.read_text())
        if words > MOST_WORDS
    )
    assert {package: number for package, number in found.items() if number > LONG.get(package, 0)} == {}


def test_a_sentence_runs_to_its_full_stop_over_lines_and_comments() -> None:
    source = '"""One two.\n\nThree four\nfive: six; seven! Eight\n- nine\n"""\n# ten\n# eleven.\nx = "no prose at all"  # twelve\n'
    assert list(sentences(source)) == [
        (2, 1, "One two."),
        (5, 3, "Three four five: six; seven!"),
        (1, 4, "Eight"),
        (2, 5, "- nine"),
        (2, 7, "ten eleven."),
        (1, 9, "twelve"),
    ]


def test_examples_of_a_command_and_what_is_said_to_ruff_are_no_prose() -> None:
    source = 'def f():\n    """One two.\n\n    \\b\n    headroom plan --path x\n    headroom diff\n\n    Three four five."""\n    import a  # noqa: PLC0415 - heavy\n'
    assert [text for _, _, text in sentences(source)] == ["One two.", "Three four five."]
