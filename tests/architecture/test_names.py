"""A public class has a name of its own: whoever reads it needs no import to know which one is meant. And no module gives a name twice."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
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


def given_twice(folder: Path) -> set[tuple[str, str]]:
    """Modules with the names that they give at their top more than once: the later one would count everywhere."""
    found = set()
    for path, tree in modules(folder):
        targets = [each for node in tree.body if isinstance(node, ast.Assign) for each in node.targets]
        targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
        counts = Counter(node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name))
        counts.update(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
        found |= {(path, name) for name, count in counts.items() if count > 1}
    return found


def test_no_module_gives_a_name_twice() -> None:
    assert given_twice(ROOT) == set()


def test_a_name_that_is_given_twice_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "reconciler").mkdir()
    (tmp_path / "reconciler" / "render.py").write_text("SECONDS = 20.0\nMOST: int = 1\nSECONDS = 2.0\n")
    assert given_twice(tmp_path) == {("render.py", "SECONDS")}
