"""The core reads no clock, opens no file and draws no lots: what no import shows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT, modules

CORE = ("model", "timetable", "requests", "demand", "placement", "optimizer", "plan")
IMPURE = frozenset({"open", "input", "print", "exec", "eval", "compile", "__import__"})
CLOCKS = frozenset({"datetime.now", "datetime.today", "datetime.utcnow", "date.today", "np.random", "numpy.random"})


def impure(folder: Path) -> list[str]:
    """Where in the core, and what."""
    return [
        f"{path}:{node.lineno}: {name}"
        for path, tree in modules(folder)
        if path.partition("/")[0] in CORE
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        and ((name := ast.unparse(node)) in IMPURE or any(name.endswith(clock) for clock in CLOCKS))
    ]


def test_the_core_is_pure() -> None:
    assert impure(ROOT) == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("datetime.now(UTC)", "datetime.now"),
        ("datetime.datetime.now()", "datetime.datetime.now"),
        ("date.today()", "date.today"),
        ("open('x').read()", "open"),
        ("np.random.default_rng()", "np.random"),
        ("list(map(eval, texts))", "eval"),
    ],
)
def test_what_is_impure_is_noticed_in_the_core_alone(tmp_path: Path, line: str, what: str) -> None:
    for package in ("plan", "cli"):
        (tmp_path / "reconciler" / package).mkdir(parents=True)
        (tmp_path / "reconciler" / package / "planted.py").write_text(f"def late():\n    return {line}\n")
    assert impure(tmp_path) == [f"plan/planted.py:2: {what}"]
