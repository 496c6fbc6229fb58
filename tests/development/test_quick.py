"""What developers run: make quick, tests side by side, and the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.quick import commands, selection
from tests.side_by_side import group_of


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


# What is made once for a file or a session is not made twice because tests run side by side.

OWN = '@pytest.fixture(scope="module")\ndef plane(): ...'
KEPT = "@cache\ndef placed(): ..."
BARE = "def test_it(empty_api_server): ..."
QUEUES = "def test_it(control_plane_with_kueue): ..."
PAGES = "from tests.browser import Browser"
RULES = "from tests.architecture.source_tree import ROOT"
WHOLE = "def test_it(shop, empty_control_plane): plane.stop_api_server()"


@pytest.mark.parametrize(
    ("text", "group"),
    [
        (OWN, "{file}"),
        (KEPT, "{file}"),
        (BARE, "api-server"),
        (OWN + BARE, "api-server"),
        (QUEUES, "kueue"),
        (PAGES, "browser"),
        (RULES, "architecture"),
        (WHOLE, "test_it.py::test_it[1]"),
    ],
)
def test_a_file_with_something_of_its_own_stays_together(tmp_path: Path, text: str, group: str) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(text)
    assert group_of(tmp_path, "test_it.py::test_it[1]") == group.format(file=file)


def test_the_makefiles_option_keeps_a_file_in_one_process(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["tests.side_by_side"]')
    text = """
        import os, pathlib, pytest

        @pytest.fixture(scope="SCOPE")
        def where():
            with pathlib.Path(__file__).with_suffix(".pids").open("a") as file:
                print(os.getpid(), file=file)

        @pytest.mark.parametrize("number", range(6))
        def test_it(number, where): ...
        """
    pytester.makepyfile(
        test_first=text.replace("SCOPE", "module"),
        test_second=text.replace("SCOPE", "module"),
        test_third=text.replace("SCOPE", "function"),
    )
    done = pytester.runpytest_subprocess("-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=18)
    pids = {file.stem: file.read_text().split() for file in pytester.path.glob("*.pids")}
    assert [len(pids[name]) for name in ("test_first", "test_second", "test_third")] == [1, 1, 6]
    assert pids["test_first"] != pids["test_second"]


# What is installed is whole: the wheel has the templates, schemas, settings and examples that the code reads.

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_has_every_data_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, f"--wheel-dir={tmp_path}", str(ROOT)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {
        *(f"reconciler/_data/{path.relative_to(ROOT)}" for path in (ROOT / "templates").glob("*.j2")),
        *(f"reconciler/_data/{path.relative_to(ROOT)}" for path in (ROOT / "config").rglob("*.yaml")),
        *(str(path.relative_to(ROOT)) for path in (ROOT / "reconciler").rglob("*.yaml")),
        *(str(path.relative_to(ROOT)) for path in (ROOT / "reconciler").rglob("*.json")),
        "reconciler/_data/examples-repo/README.md",
        "reconciler/_data/examples-repo/.sourceignore",
        "reconciler/_data/config/scaffold/every/.sourceignore",
        "reconciler/py.typed",
    }
    assert len(wanted) > 30
    assert wanted - names == set()
    assert not any(name.startswith("tests/") for name in names)
