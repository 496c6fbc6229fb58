"""What is made once for a file or a session is not made twice because tests run side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.side_by_side import group_of

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
