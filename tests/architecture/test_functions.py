"""Functions stay short and take few parameters: all of them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.architecture.source_tree import ROOT, modules

MOST_LINES = 59
MOST_PARAMETERS = 8


def sizes(folder: Path, package: str = "reconciler") -> dict[str, tuple[int, int]]:
    """Lines and parameters of each function by its module and name; `self` is none."""
    return {
        f"{path} {name}": (_lines(function), _parameters(function))
        for path, tree in modules(folder, package)
        for name, function in _functions(tree, "")
    }


def _functions(node: ast.AST, prefix: str) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    found: list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]] = []
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{prefix}{child.name}."
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append((f"{prefix}{child.name}", child))
        found += _functions(child, inner)
    return found


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = function.args
    named = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return (
        len(named)
        - (named[:1] in (["self"], ["cls"]))
        + sum(x is not None for x in (arguments.vararg, arguments.kwarg))
    )


@cache
def too_large(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        name: (lines, parameters)
        for name, (lines, parameters) in sizes(folder).items()
        if lines > MOST_LINES or parameters > MOST_PARAMETERS
    }


def test_functions_are_short_and_take_few_parameters() -> None:
    assert too_large(ROOT) == {}


def test_functions_of_tests_are_short_too() -> None:
    assert {name: lines for name, (lines, _) in sizes(ROOT, "tests").items() if lines > MOST_LINES} == {}


def test_larger_functions_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "reconciler").mkdir()
    (tmp_path / "reconciler" / "planted.py").write_text(
        "def long():\n" + "    x = 1\n" * MOST_LINES + "class Planted:\n"
        "    def many(self, a, b, /, c, d, *e, f, g, h, **i): ...\n"
        "    def few(self, a, b, c, d, e, f, g, *, h): ...\n"
    )
    assert too_large(tmp_path) == {"planted.py long": (60, 0), "planted.py Planted.many": (1, 9)}
