"""The project's files as the tests of its rules see them, and a copy of them that a test may spoil."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.programs import ended

ROOT = Path(__file__).resolve().parents[2]
_BIN = Path(sys.executable).parent


def modules(folder: Path = ROOT) -> Iterator[tuple[str, ast.Module]]:
    """Each module of the product: its path inside the package, and what it parses to."""
    for path in sorted((folder / "reconciler").rglob("*.py")):
        yield path.relative_to(folder / "reconciler").as_posix(), ast.parse(path.read_text())


def copy_of_the_product(folder: Path) -> Path:
    shutil.copytree(ROOT / "reconciler", folder / "reconciler", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests").mkdir()
    return folder


def run(program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """One of the development tools, in a folder."""
    return ended(str(_BIN / program), *arguments, folder=folder, env={"PATH": str(_BIN), "PYTHONPATH": str(folder)})
