"""No regular expression takes time that grows with a power of its text: none has a repeat within a repeat.

Such a pattern tries every way to share a text between the two. A few letters that a user wrote can then stop the daemon for hours.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from reconciler.source.signatures import _ARMORED_KEYS
from tests.architecture.source_tree import modules

MANY = 20
"""A repeat of at most so many is none."""
ONE_WAY_ONLY: dict[str | bytes, str] = {
    "(?:[0-9]+[smh])+": "each turn ends with a letter, which no other part of a turn takes",
    _ARMORED_KEYS.pattern: "a turn is a line; its first part ends at the first colon, the second at the end of the line",
}


def repeats(parsed: Any, *, within: bool = False) -> Iterator[bool]:
    """For each long repeat, whether it stands within another one that can give back what it took."""
    for kind, value in parsed:
        match kind:
            case kinds.MAX_REPEAT | kinds.MIN_REPEAT:
                is_long = value[1] > MANY
                if is_long:
                    yield within
                yield from repeats(value[2], within=within or is_long)
            case kinds.SUBPATTERN:
                yield from repeats(value[3], within=within)
            case kinds.BRANCH:
                for branch in value[1]:
                    yield from repeats(branch, within=within)
            case kinds.ASSERT | kinds.ASSERT_NOT:
                yield from repeats(value[1], within=within)


def is_nested(pattern: str | bytes) -> bool:
    return any(repeats(parser.parse(pattern)))


def written() -> Iterator[str | bytes]:
    """What is handed to a function of `re` as it stands, and what modules keep compiled, however it was put together."""
    for path, tree in modules():
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant(value=str() | bytes() as text), *_]
                ):
                    yield text
        module = import_module(f"reconciler.{path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}")
        yield from (kept.pattern for kept in vars(module).values() if isinstance(kept, re.Pattern))


def test_no_pattern_repeats_what_repeats() -> None:
    found = set(written())
    assert len(found) > 50
    assert {text for text in found if is_nested(text)} == set(ONE_WAY_ONLY)


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(?:a*b?)*c", "(x|(?:y{1,90}z?)*)", "(?=(a+)+)", b"(?:[^\\n]*:[^\\n]*\\n)*"]
)
def test_one_that_does_is_noticed(pattern: str | bytes) -> None:
    assert is_nested(pattern)


@pytest.mark.parametrize("pattern", ["a+b+", "(?:ab?)+", "(?:a{1,3})*", "(?>a+)+"])
def test_one_that_does_not_is_left_alone(pattern: str) -> None:
    assert not is_nested(pattern)
