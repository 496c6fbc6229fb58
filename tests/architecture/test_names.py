"""A public class has a name of its own: whoever reads it needs no import to know which one is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.architecture.source_tree import ROOT, modules

A_PORT_AND_WHAT_FILLS_IT = {"PassResult"}


def shared(folder: Path) -> dict[str, list[str]]:
    """The names that classes of several modules have, each with these modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules(folder):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def test_no_two_modules_have_a_class_of_the_same_name() -> None:
    assert set(shared(ROOT)) == A_PORT_AND_WHAT_FILLS_IT


def test_a_name_that_is_taken_is_noticed(tmp_path: Path) -> None:
    for module, name in (("plan", "Outcome"), ("forge", "Outcome"), ("model", "_Outcome"), ("render", "Other")):
        path = tmp_path / "reconciler" / f"{module}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"class {name}:\n    pass\n")
    assert {name: sorted(paths) for name, paths in shared(tmp_path).items()} == {"Outcome": ["forge.py", "plan.py"]}
