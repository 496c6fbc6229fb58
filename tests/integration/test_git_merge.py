"""What a merge makes of two branches, by Git itself, on a repository that is left as it was."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.model.errors import Failure, Invalid, Stalled
from reconciler.model.source import SourceTree
from reconciler.source.merging import Revisions, Sides, sides_of
from tests.integration.git_repository import GitRepository

START = {"a.yaml": "a: 1\n", "b.yaml": "b: 1\n"}


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """`main` gained a file and a change since `change` began; `change` edits another file."""
    repository = GitRepository(tmp_path)
    repository.commit(START)
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit({"a.yaml": "a: 2\n"})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"b.yaml": "b: 2\n", "late.yaml": "late: 10\n"})
    repository.git("push", "--quiet", str(repository.remote), "main", "change")
    return repository


@pytest.fixture(params=["folder", "url"])
def sides(request: pytest.FixtureRequest, repository: GitRepository) -> Callable[[str], Sides]:
    where = str(repository.work) if request.param == "folder" else repository.url
    return lambda words: sides_of(where, Revisions.parse(words))


def contents(tree: SourceTree) -> dict[str, str]:
    return {path: content.decode() for path, content in tree.files.items()}


def test_what_only_the_base_has_gained_is_kept_by_the_merge(sides: Callable[[str], Sides]) -> None:
    found = sides("main..change")
    assert contents(found.base) == {"a.yaml": "a: 1\n", "b.yaml": "b: 2\n", "late.yaml": "late: 10\n"}
    assert contents(found.head) == {"a.yaml": "a: 2\n", "b.yaml": "b: 2\n", "late.yaml": "late: 10\n"}
    assert found.conflicts == ()


def test_three_dots_compare_with_the_merge_base(sides: Callable[[str], Sides]) -> None:
    found = sides("main...change")
    assert contents(found.base) == START
    assert contents(found.head) == {**START, "a.yaml": "a: 2\n"}


def test_a_merge_is_named_after_its_two_revisions(repository: GitRepository, sides: Callable[[str], Sides]) -> None:
    found = sides("main..change")
    assert found.base.revision == f"main@sha1:{repository.git('rev-parse', 'main')}"
    assert found.head.revision == f"change@sha1:{repository.git('rev-parse', 'change')}"


def test_the_working_tree_is_merged_too(repository: GitRepository) -> None:
    repository.git("checkout", "--quiet", "change")
    repository.write({"new.yaml": "new: 1\n"})
    before = repository.git("status", "--porcelain")
    objects = sorted(path.name for path in (repository.work / ".git" / "objects").rglob("*"))
    found = sides_of(str(repository.work), Revisions.parse("main.."))
    assert contents(found.head) == {
        "a.yaml": "a: 2\n",
        "b.yaml": "b: 2\n",
        "late.yaml": "late: 10\n",
        "new.yaml": "new: 1\n",
    }
    assert found.head.revision is None
    assert repository.git("status", "--porcelain") == before
    assert sorted(path.name for path in (repository.work / ".git" / "objects").rglob("*")) == objects


def test_the_working_tree_on_top_of_the_base_is_taken_as_it_stands(repository: GitRepository) -> None:
    (repository.work / "late.yaml").unlink()
    found = sides_of(str(repository.work), Revisions.parse("main.."))
    assert contents(found.head) == {"a.yaml": "a: 1\n", "b.yaml": "b: 2\n"}


def test_a_folder_inside_the_repository_is_merged_alone(repository: GitRepository) -> None:
    repository.commit({"clusters/a/own.yaml": "own"})
    repository.git("checkout", "--quiet", "change")
    repository.commit({"clusters/a/more.yaml": "more"})
    found = sides_of(str(repository.work / "clusters" / "a"), Revisions.parse("main.."))
    assert contents(found.head) == {"own.yaml": "own", "more.yaml": "more"}


def test_a_shallow_clone_without_the_common_ancestor_is_told_what_to_fetch(
    repository: GitRepository, tmp_path: Path
) -> None:
    shallow = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=1", "--no-single-branch", repository.url, str(shallow))
    with pytest.raises(Stalled) as told:
        sides_of(str(shallow), Revisions.parse("origin/main..origin/change"))
    assert "fetch-depth: 0" in told.value.hint


def test_an_unknown_revision_says_which(sides: Callable[[str], Sides]) -> None:
    with pytest.raises(Failure, match="nowhere"):
        sides("main..nowhere")


@pytest.mark.parametrize("words", ["main", "..x", "a....b"])
def test_what_is_not_two_revisions_is_refused(words: str) -> None:
    with pytest.raises(Invalid):
        Revisions.parse(words)


def test_nothing_stays_behind(repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    sides_of(str(repository.work), Revisions.parse("main..change"))
    sides_of(repository.url, Revisions.parse("main..change"))
    assert list(scratch.iterdir()) == []
    assert subprocess.run(["git", "-C", repository.work, "fsck"], capture_output=True, check=True).returncode == 0
