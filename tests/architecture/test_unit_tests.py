"""Unit tests stand in the same tree as what they test."""

from __future__ import annotations

from pathlib import Path

from tests.architecture.source_tree import ROOT


def without_a_counterpart(folder: Path) -> set[str]:
    """Folders under tests/unit that are no package or module of the product, and files beside them that no module goes by."""
    unit, product = folder / "tests" / "unit", folder / "reconciler"
    folders = {path.parent.relative_to(unit) for path in unit.rglob("*.py")} - {Path()}
    strange = {
        str(each) for each in folders if not (product / each).is_dir() and not (product / f"{each}.py").is_file()
    }
    modules = [path.stem for path in product.glob("*.py")]
    files = {path.name for path in unit.glob("*.py")}
    return strange | {file for file in files if not file.startswith(tuple(f"test_{module}" for module in modules))}


def test_unit_tests_stand_where_their_subject_stands() -> None:
    assert without_a_counterpart(ROOT) == set()


def test_a_folder_or_file_of_nothing_is_noticed(tmp_path: Path) -> None:
    for path in ("reconciler/plan/hold.py", "reconciler/daemon.py", "tests/unit/plan/hold/test_marks.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    for path in ("plan/test_hold.py", "test_daemon_stops.py", "plan/lost/test_x.py", "test_passes.py", "worlds.py"):
        (tmp_path / "tests/unit" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests/unit" / path).touch()
    assert without_a_counterpart(tmp_path) == {"plan/lost", "test_passes.py", "worlds.py"}
