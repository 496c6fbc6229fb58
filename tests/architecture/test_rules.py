"""The house rules hold, and the checks that hold them can fail: each is shown a planted violation."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 400
NAMELESS = {"util", "utils", "helper", "helpers", "common", "misc", "manager"}
BIN = Path(sys.executable).parent


def too_long(folder: Path) -> list[str]:
    files = [path for part in ("reconciler", "tests") for path in (folder / part).rglob("*.py")]
    return [str(path.relative_to(folder)) for path in files if len(path.read_text().splitlines()) > MOST_LINES]


def without_a_purpose(folder: Path) -> list[str]:
    """Modules of the product that do not open with what they do."""
    return [
        str(path.relative_to(folder))
        for path in (folder / "reconciler").rglob("*.py")
        if not re.match(r'"""\S', path.read_text())
    ]


def nameless(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in (folder / "reconciler").rglob("*.py") if path.stem in NAMELESS]


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A copy of the product that a test may spoil."""
    shutil.copytree(ROOT / "reconciler", tmp_path / "reconciler", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "tests").mkdir()
    return tmp_path


def run(program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / program), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(BIN), "PYTHONPATH": str(folder)},
    )


def test_no_file_is_longer_than_400_lines() -> None:
    assert too_long(ROOT) == []


def test_a_file_of_401_lines_is_noticed(planted: Path) -> None:
    (planted / "reconciler" / "endless.py").write_text("x = 1\n" * 401)
    assert too_long(planted) == ["reconciler/endless.py"]


def test_every_module_says_what_it_does() -> None:
    assert without_a_purpose(ROOT) == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert nameless(ROOT) == []


def test_imports_point_down() -> None:
    done = run("lint-imports", folder=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("model/quantity.py", "import reconciler.cycle", "Imports point down"),
        ("report/words.py", "import reconciler.render.environment", "Imports point down"),
        ("plan/names.py", "import random", "The core does no input or output"),
        ("cluster/view.py", "import git", "Only source imports git"),
        ("stray.py", "", "Imports point down"),
    ],
)
def test_a_planted_import_is_noticed(planted: Path, module: str, line: str, contract: str) -> None:
    with (planted / "reconciler" / module).open("a") as file:
        file.write(f"\n{line}\n")
    done = run("lint-imports", "--no-cache", folder=planted)
    assert done.returncode != 0
    # exhaustive: a module that no layer names breaks the contract as well, under its own heading
    assert f"{contract}" in done.stdout.replace("\n", " ")


def test_mypy_is_strict(planted: Path) -> None:
    (planted / "reconciler" / "model" / "loose.py").write_text("def loose(value):\n    return value\n")
    done = run("mypy", "--config-file", "pyproject.toml", "reconciler/model/loose.py", folder=planted)
    assert "no-untyped-def" in done.stdout


def test_ruff_selects_nearly_everything(planted: Path) -> None:
    (planted / "reconciler" / "model" / "loose.py").write_text('"""Loose."""\n\nprint(eval("1"))\n')
    done = run("ruff", "check", "reconciler/model/loose.py", folder=planted)
    assert "S307" in done.stdout
    assert "T201" in done.stdout
