"""No comment names a thing that is no more."""

from __future__ import annotations

import pytest

from tests.architecture.named_things import ELSEWHERE, in_backticks, names_of_ours, unresolved, unresolved_in
from tests.architecture.source_tree import ROOT


def test_what_stands_in_backticks_exists() -> None:
    assert unresolved() == []


@pytest.mark.parametrize(
    "name",
    [
        "no_such_function",
        "NoSuchClass",
        "noSuchField",
        "NO_SUCH_CONSTANT",
        "nonesuch",
        "model.nonesuch",
        "model/nonesuch.py",
    ],
)
def test_a_name_of_nothing_is_noticed(name: str) -> None:
    source = f'"""One.\n\nTwo, see `{name}`, and `Quantity`."""\n\nx = 1  # as `{name}` says\n# `{name}`\n'
    assert unresolved_in(source) == [(line, name) for line in (3, 5, 6)]


def test_names_of_other_projects_are_listed_only_while_they_are_needed() -> None:
    quoted = {name for path in (ROOT / "reconciler").rglob("*.py") for _, name in in_backticks(path.read_text())}
    ours = names_of_ours()
    assert {name for name in ELSEWHERE if name in ours or not any(name in each for each in quoted)} == set()
