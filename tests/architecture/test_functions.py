"""Functions stay short and take few parameters; those that do not are listed here, and the list only shrinks."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.architecture.source_tree import ROOT, modules

MOST_LINES = 59
MOST_PARAMETERS = 8

# Lines and parameters of what is larger, by file and function, in whatever folder. Lower a number when it falls, and take out
# what is within the limits.
LARGER = {
    "growth_loops.py cheapest": (71, 18),
    "growth_loops.py serve": (84, 22),
    "loops.py choose": (65, 15),
    "loops.py put": (18, 11),
    "loops.py put_found": (18, 12),
    "loops.py put_one": (26, 10),
    "loops.py take_back": (16, 11),
}


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Lines and parameters of each function by its module and name; `self` is none."""
    return {
        f"{path} {name}": (_lines(function), _parameters(function))
        for path, tree in modules(folder)
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


def _without_folder(name: str) -> str:
    return name.rpartition("/")[2]


@cache
def too_large(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        name: (lines, parameters)
        for name, (lines, parameters) in sizes(folder).items()
        if lines > MOST_LINES or parameters > MOST_PARAMETERS
    }


def test_functions_are_short_and_take_few_parameters() -> None:
    grown = {
        name: size
        for name, size in too_large(ROOT).items()
        if any(now > then for now, then in zip(size, LARGER.get(_without_folder(name), (0, 0)), strict=True))
    }
    assert grown == {}


def test_the_list_of_larger_functions_shrinks_with_them() -> None:
    assert set(LARGER) - set(map(_without_folder, too_large(ROOT))) == set()


def test_larger_functions_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "reconciler").mkdir()
    (tmp_path / "reconciler" / "planted.py").write_text(
        "def long():\n" + "    x = 1\n" * MOST_LINES + "class Planted:\n"
        "    def many(self, a, b, /, c, d, *e, f, g, h, **i): ...\n"
        "    def few(self, a, b, c, d, e, f, g, *, h): ...\n"
    )
    assert too_large(tmp_path) == {"planted.py long": (60, 0), "planted.py Planted.many": (1, 9)}
