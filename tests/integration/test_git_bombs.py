"""Git trees made to take all time or memory: each is a stall with a reason, and what is outside the path costs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.errors import Stalled
from reconciler.source.commands import GitOptions
from reconciler.source.git import GitSource
from reconciler.source.revision import LocalRevision
from reconciler.source.selection import Scope
from tests.fakes.clock import ManualClock
from tests.integration.git_repository import GitRepository


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


@pytest.mark.parametrize("subdirectory", ["", "bomb"])
def test_a_tree_without_end_is_a_stall_with_a_reason(subdirectory: str, bombed: GitRepository, tmp_path: Path) -> None:
    for source in (
        GitSource(
            bombed.url, clock=ManualClock(), scope=Scope(subdirectory), options=GitOptions(state=tmp_path / "state")
        ),
        LocalRevision(bombed.work, "main", Scope(subdirectory), clock=ManualClock()),
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
