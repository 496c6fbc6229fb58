"""The house rules hold, and the checks that hold them can fail: each is shown a planted violation."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT, copy_of_the_product, run

MOST_LINES = 400
NAMELESS = {"util", "utils", "helper", "helpers", "common", "misc", "manager"}


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
    return copy_of_the_product(tmp_path)


def test_no_file_is_longer_than_400_lines() -> None:
    assert too_long(ROOT) == []


def test_a_file_of_401_lines_is_noticed(planted: Path) -> None:
    (planted / "reconciler" / "endless.py").write_text("x = 1\n" * 401)
    assert "reconciler/endless.py" in too_long(planted)


def test_every_module_says_what_it_does() -> None:
    assert without_a_purpose(ROOT) == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert nameless(ROOT) == []


def test_mypy_is_strict(planted: Path) -> None:
    (planted / "reconciler" / "model" / "loose.py").write_text("def loose(value):\n    return value\n")
    done = run("mypy", "--config-file", "pyproject.toml", "reconciler/model/loose.py", folder=planted)
    assert "no-untyped-def" in done.stdout


def test_ruff_selects_nearly_everything(planted: Path) -> None:
    (planted / "reconciler" / "model" / "loose.py").write_text('"""Loose."""\n\nprint(eval("1"))\n')
    done = run("ruff", "check", "reconciler/model/loose.py", folder=planted)
    assert "S307" in done.stdout
    assert "T201" in done.stdout


@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        ("model/loose.py", {"D101", "D102", "D103"}),
        ("plan/plan.py", {"D101", "D103"}),
        ("plan/launching/creations.py", set()),
    ],
)
def test_glossary_and_entries_say_what_everything_public_is(planted: Path, module: str, wanted: set[str]) -> None:
    (planted / "reconciler" / module).write_text(
        '"""Loose."""\n\n\nclass Loose:\n    def method(self) -> None: ...\n\n\ndef loose() -> None: ...\n'
    )
    done = run("ruff", "check", "--output-format", "concise", f"reconciler/{module}", folder=planted)
    assert set(re.findall(r"\bD\d+", done.stdout)) == wanted


def test_each_entry_that_ruff_is_told_of_is_there() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["per-file-ignores"]
    named = [re.fullmatch(r"!reconciler/\{(.*)\}\.py", pattern) for pattern in patterns if pattern.startswith("!")]
    entries = {entry for pattern in named if pattern for entry in pattern[1].split(",")}
    assert len(entries) > 10
    assert {entry for entry in entries if not list((ROOT / "reconciler").glob(f"{entry}.py"))} == set()
