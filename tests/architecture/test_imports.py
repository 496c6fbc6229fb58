"""Imports obey the contracts of pyproject.toml, and each contract catches a violation where no list looks for one."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import grimp
import pytest

from tests.architecture.source_tree import ROOT, copy_of_the_product, modules, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS: dict[str, dict[str, Any]] = {each["id"]: each for each in PROJECT["tool"]["importlinter"]["contracts"]}
PROTECTED = {each["protected_modules"][0]: each for each in CONTRACTS.values() if each["type"] == "protected"}

# Where, what, the contract that must notice it, and the words in which it does. Most stands in modules that the test itself adds.
PLANTED = [
    ("model/planted.py", "import reconciler.cycle", "layers", "reconciler.model.planted -> reconciler.cycle"),
    ("report/planted.py", "import reconciler.render.environment", "layers", "report.planted -> reconciler.render"),
    ("stray.py", "", "layers", "reconciler.stray"),
    (
        "placement/offers/planted.py",
        "import reconciler.placement.engine.state",
        "placement-layers",
        "offers.planted -> ",
    ),
    ("placement/engine/fill.py", "import reconciler.placement.engine.pack", "engine-layers", "engine.fill -> "),
    ("placement/checker/planted.py", "import reconciler.placement.place", "independent-checker", "checker.planted -> "),
    ("model/planted.py", "import reconciler.model.planted_too", "no-cycles", ".planted"),
    ("model/planted_too.py", "def late():\n    import reconciler.model.planted", "no-cycles", ".planted_too"),
    *(
        (module, f"import {name}", "pure-core", f"reconciler.{module.removesuffix('.py').replace('/', '.')} -> {name}")
        for name in CONTRACTS["pure-core"]["forbidden_modules"]
        for module in ("stray.py", "plan/planted.py")
    ),
    *(
        ("stray.py", f"import {library}", contract["id"], f"reconciler.stray -> {library}")
        for library, contract in PROTECTED.items()
    ),
    ("summary/planted.py", "import git", "owner-of-git", "reconciler.summary.planted -> git"),
    ("outlook.py", "import numba", "owner-of-numba", "reconciler.outlook -> numba"),
    ("outlook.py", "def late():\n    import highspy", "owner-of-highspy", "reconciler.outlook -> highspy"),
]


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the import linter says of a copy with every violation planted, by the name of the contract."""
    folder = copy_of_the_product(tmp_path_factory.mktemp("planted"))
    for module, line, _, _ in PLANTED:
        with (folder / "reconciler" / module).open("a") as file:
            file.write(f"\n{line}\n")
    done = run("lint-imports", "--no-cache", folder=folder)
    assert done.returncode != 0
    _, _, broken = done.stdout.partition("Broken contracts")
    sections = re.split(r"^(\S.*)\n-+\n", broken, flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))


@pytest.mark.parametrize(("module", "line", "contract", "words"), PLANTED)
def test_a_planted_import_is_noticed(
    complaints: dict[str, str], module: str, line: str, contract: str, words: str
) -> None:
    assert words in complaints[CONTRACTS[contract]["name"]], (module, line)


def test_a_violation_of_every_contract_is_planted() -> None:
    assert {contract for _, _, contract, _ in PLANTED} == set(CONTRACTS)


def cycles(graph: grimp.ImportGraph) -> set[tuple[str, ...]]:
    """The modules of each cycle, sorted; an import inside a function counts as any other."""
    above = {module: graph.find_upstream_modules(module) for module in graph.modules}
    rings = {each: {other for other in above[each] if each in above[other]} for each in graph.modules}
    return {tuple(sorted({each, *others})) for each, others in rings.items() if others}


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert cycles(grimp.build_graph("reconciler", cache_dir=None)) == set()


def test_a_cycle_is_noticed_however_long_and_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "rings"
    package.mkdir()
    for name, imports in {"__init__": "", "a": "b", "b": "c", "c": "a", "d": "a", "e": "f", "f": "e"}.items():
        (package / f"{name}.py").write_text(f"def late():\n    import rings.{imports}\n" if imports else "")
    monkeypatch.syspath_prepend(tmp_path)
    found = cycles(grimp.build_graph("rings", cache_dir=None))
    assert found == {("rings.a", "rings.b", "rings.c"), ("rings.e", "rings.f")}


def spelled_alike(distribution: str) -> str:
    return re.split(r"[^\w.-]", distribution)[0].replace("_", "-").lower()


def test_every_library_has_an_owner() -> None:
    distributions = packages_distributions()
    owned = {spelled_alike(each) for library in PROTECTED for each in distributions[library]}
    # zoneinfo reads tzdata, nobody imports it
    assert owned == {spelled_alike(each) for each in PROJECT["project"]["dependencies"]} - {"tzdata"}


def imported_names(tree: ast.Module) -> set[str]:
    """The top-level names that a module imports, wherever in it."""
    nodes = list(ast.walk(tree))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name.partition(".")[0] for name in plain} | {
        node.module.partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and node.module
    }


def without_an_owner(folder: Path) -> set[tuple[str, str]]:
    """Modules, and what each imports that is neither ours nor Python's nor under a contract: a dependency of a dependency."""
    known = {"reconciler", *PROTECTED, *sys.stdlib_module_names}
    return {(path, name) for path, tree in modules(folder) for name in imported_names(tree) - known}


def test_only_libraries_with_an_owner_are_imported() -> None:
    assert without_an_owner(ROOT) == set()


def test_a_library_that_came_with_another_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "reconciler").mkdir()
    (tmp_path / "reconciler" / "planted.py").write_text(
        "import git, json\n\ndef late():\n    import requests.sessions\n"
    )
    assert without_an_owner(tmp_path) == {("planted.py", "requests")}


def test_every_owner_uses_what_it_owns() -> None:
    uses = [(f"reconciler/{path}", imported_names(tree)) for path, tree in modules()]
    idle = [
        (owner, library)
        for library, contract in PROTECTED.items()
        for owner in contract["allowed_importers"]
        if not any(
            path.startswith((f"{where}/", f"{where}.py")) and library in names
            for where in [owner.replace(".", "/")]
            for path, names in uses
        )
    ]
    assert idle == []
