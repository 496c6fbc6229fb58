"""`make quick` runs the tests that a change is most likely to break."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quick import commands, selection


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("architecture", "development", "properties", "unit/plan/holding", "unit/render", "unit/report"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
    for file in (
        "properties/test_plans.py",
        "unit/plan/holding/test_hold.py",
        "unit/test_daemon.py",
        "unit/test_daemon_stops.py",
    ):
        (tmp_path / "tests" / file).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        (["reconciler/plan/holding/hold.py"], ["tests/architecture", "tests/unit/plan/holding"]),
        (
            ["reconciler/plan/holding/hold.py", "reconciler/plan/objects/prune.py"],
            ["tests/architecture", "tests/unit/plan"],
        ),
        (
            ["reconciler/daemon.py"],
            ["tests/architecture", "tests/unit/test_daemon.py", "tests/unit/test_daemon_stops.py"],
        ),
        (["reconciler/untested/new.py"], ["tests/architecture"]),
        (["templates/page.html.j2"], ["tests/unit/render", "tests/unit/report"]),
        (["tests/unit/plan/holding/test_hold.py"], ["tests/unit/plan/holding/test_hold.py"]),
        (["tests/unit/plan/worlds.py", "tests/unit/plan/holding/test_hold.py"], ["tests/unit/plan"]),
        (["tests/properties/test_plans.py"], ["tests/properties/test_plans.py"]),
        (["tests/quick.py"], ["tests/development"]),
        (["README.md", "tests/fakes/cluster.py"], []),
    ],
)
def test_a_change_is_followed_to_its_tests(checkout: Path, changed: list[str], tests: list[str]) -> None:
    assert selection(changed, checkout) == tests


def test_lint_looks_at_the_code_that_changed_and_mypy_at_all(checkout: Path) -> None:
    assert list(commands(["README.md"], checkout)) == []
    ruff, *others = commands(["README.md", "reconciler/plan/holding/hold.py"], checkout)
    assert ruff == ["ruff", "check", "reconciler/plan/holding/hold.py"]
    assert [command[0] for command in others] == ["ruff", "lint-imports", "mypy", "pytest"]
    assert ["mypy"] in others
