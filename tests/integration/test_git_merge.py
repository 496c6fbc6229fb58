"""What a merge makes of two branches, by Git itself, on a repository that is left as it was."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.model.declared import SourceTree
from reconciler.model.errors import Failure, Invalid, Stalled
from reconciler.ports import PullRequest
from reconciler.source.credentials import GitOptions
from reconciler.source.git import GitSource
from reconciler.source.merging import PullRequestTrees, Revisions, Sides, sides_of
from reconciler.source.revision import LocalRevision
from reconciler.source.selection import Scope
from tests.fakes.clock import ManualClock
from tests.git_repository import GitRepository

START = {"a.yaml": "a: 1\n", "b.yaml": "b: 1\n"}


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """`main` gained a file and a change since `change` began; `change` edits another file. The folder's name is one that Git must quote."""
    repository = GitRepository(tmp_path / 'a:b "c"')
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


def test_the_copy_that_pull_requests_are_merged_in_stays_small(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.source.remote._MOST_PACKS", 4)
    trees = PullRequestTrees(repository.url, Scope(), GitOptions(state=tmp_path / "state"))
    for number in range(6):
        repository.git("checkout", "--quiet", "-B", "theirs", "main")
        repository.commit({"pool.yaml": f"{number}"})
        ref = f"refs/pull/{number}/head"
        repository.git("push", "--quiet", repository.url, f"theirs:{ref}")
        sides = trees.sides(PullRequest(number, "", "", "theirs", ref, "main"))
        assert sides.head.files["pool.yaml"] == f"{number}".encode()
        assert len(list(tmp_path.glob("state/**/*.pack"))) <= 6


# Git trees made to take all time or memory: each is a stall with a reason, and what is outside the path costs nothing.


def made(repository: GitRepository, kind: str, entries: list[tuple[str, str, str]]) -> str:
    """An object written past git's own checks. entries: (mode, name, object)."""
    body = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(found) for mode, name, found in entries)
    path = repository.work.parent / "object"
    path.write_bytes(body)
    return repository.git("hash-object", "-w", "-t", kind, "--literally", str(path))


@pytest.fixture
def bombed(tmp_path: Path) -> GitRepository:
    """`ok` has one manifest, `bomb` ten thousand million paths to one file."""
    repository = GitRepository(tmp_path)
    repository.write({"x": "a: 1\n"})
    blob = repository.git("hash-object", "-w", "x")
    tree = made(repository, "tree", [("100644", f"f{number}", blob) for number in range(10)])
    for _ in range(9):
        tree = made(repository, "tree", [("40000", f"d{number}", tree) for number in range(10)])
    fine = made(repository, "tree", [("100644", "a.yaml", blob)])
    root = made(repository, "tree", [("40000", "bomb", tree), ("40000", "ok", fine)])
    commit = repository.git("commit-tree", "-m", "Bomb", root)
    repository.git("push", "--quiet", str(repository.remote), f"{commit}:refs/heads/main")
    repository.git("update-ref", "refs/heads/main", commit)
    return repository


def test_a_tree_outside_of_the_path_is_not_looked_at(bombed: GitRepository, tmp_path: Path) -> None:
    tree = GitSource(
        bombed.url, clock=ManualClock(), scope=Scope("ok"), options=GitOptions(state=tmp_path / "state")
    ).read()
    assert tree.files == {"ok/a.yaml": b"a: 1\n"}
    local = LocalRevision(bombed.work, "main", Scope("ok"), clock=ManualClock()).read()
    assert local.files == tree.files


def test_a_tree_without_end_is_a_stall_with_a_reason(bombed: GitRepository, tmp_path: Path) -> None:
    for source in (
        GitSource(bombed.url, clock=ManualClock(), options=GitOptions(state=tmp_path / "state")),
        LocalRevision(bombed.work, "main", Scope("bomb"), clock=ManualClock()),
    ):
        with pytest.raises(Stalled, match="the repository has more than 250,000 files and folders") as caught:
            source.read()
        assert caught.value.reason == "TreeTooLarge"


def test_a_folder_of_too_many_entries_is_a_stall_with_a_reason(tmp_path: Path) -> None:
    repository = GitRepository(tmp_path)
    repository.write({"x": "a: 1\n"})
    blob = repository.git("hash-object", "-w", "x")
    root = made(repository, "tree", [("100644", f"{number:040}.txt", blob) for number in range(300_000)])
    repository.git("update-ref", "refs/heads/main", repository.git("commit-tree", "-m", "Wide", root))
    with pytest.raises(Stalled, match="more than 250,000 files and folders"):
        LocalRevision(repository.work, "main", clock=ManualClock()).read()
