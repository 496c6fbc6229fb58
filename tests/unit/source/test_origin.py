"""The remote `origin` of a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

from reconciler.source.opening import origin_of

URL = "git@github.com:example/capacity.git"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_it_is_that_of_the_repository_whose_top_the_folder_is(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert origin_of(tmp_path) is None
    git(tmp_path, "remote", "add", "origin", URL)
    assert origin_of(tmp_path) == URL
    (tmp_path / "inside").mkdir()
    assert origin_of(tmp_path / "inside") is None


def test_a_folder_that_is_no_repository_or_not_there_has_none(tmp_path: Path) -> None:
    assert origin_of(tmp_path) is None
    assert origin_of(tmp_path / "nowhere") is None


def test_a_broken_repository_has_none(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert origin_of(tmp_path) is None
