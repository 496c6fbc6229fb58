"""A branch that headroom writes: on top of another one or of none, pushed only where it differs, and nobody else's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.model.errors import Stalled
from reconciler.source.branches import Folder, WrittenBranch
from reconciler.source.credentials import GitOptions
from tests.git_repository import GitRepository

BRANCH = "headroom/production"
FILES = {"pool.yaml": "kind: NodePool\n", "web.yaml": "kind: CapacityBuffer\n"}


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path)
    made.push({"README.md": "Words.\n", "rendered/old.yaml": "old\n", "rendered/kept.yaml": "kept\n"})
    return made


def write(
    repository: GitRepository, files: dict[str, str] = FILES, message: str = "Rendered from main@1"
) -> bool | None:
    folder = Folder("rendered", files, keep=lambda name: name == "kept.yaml")
    branch = WrittenBranch(repository.url, BRANCH, GitOptions())
    return branch.write(folder, base="main", message=message, withdraw=lambda: None)


def at(repository: GitRepository, *words: str) -> str:
    return repository.git(*words, at=repository.remote)


def test_it_is_one_commit_on_the_base_with_the_folder_as_it_should_be(repository: GitRepository) -> None:
    assert write(repository) is True
    assert at(repository, "rev-parse", f"{BRANCH}~1") == at(repository, "rev-parse", "main")
    names = at(repository, "ls-tree", "-r", "--name-only", BRANCH).split()
    assert names == ["README.md", "rendered/kept.yaml", "rendered/pool.yaml", "rendered/web.yaml"]
    assert at(repository, "show", f"{BRANCH}:rendered/web.yaml") == FILES["web.yaml"].strip()
    assert (
        at(repository, "log", "-1", "--format=%an <%ae> %B", BRANCH)
        == "headroom <headroom@localhost> Rendered from main@1"
    )


def test_nothing_is_pushed_where_it_is_so_already(repository: GitRepository) -> None:
    write(repository)
    before = at(repository, "rev-parse", BRANCH)
    assert write(repository) is False
    assert at(repository, "rev-parse", BRANCH) == before
    assert write(repository, message="Rendered from main@2") is True
    assert write(repository, {**FILES, "web.yaml": "kind: Other\n"}, "Rendered from main@2") is True
    assert at(repository, "rev-list", "--count", f"main..{BRANCH}") == "1"
    repository.push({"other.yaml": "new on the base\n"})
    assert write(repository, {**FILES, "web.yaml": "kind: Other\n"}, "Rendered from main@2") is True
    assert at(repository, "rev-parse", f"{BRANCH}~1") == at(repository, "rev-parse", "main")


def test_it_goes_where_nothing_differs_from_the_base(repository: GitRepository) -> None:
    same = {"old.yaml": "old\n", "kept.yaml": "kept\n"}
    assert write(repository, same) is None
    write(repository)
    assert write(repository, same) is None
    assert at(repository, "branch", "--format=%(refname:short)") == "main"


def test_its_pull_request_is_withdrawn_before_it_goes(repository: GitRepository) -> None:
    """Forges close a pull request whose branch goes, and one that is closed as it was counts as declined by a person."""
    write(repository)
    there: list[str] = []
    folder = Folder("rendered", {}, keep=lambda _: True)
    branch = WrittenBranch(repository.url, BRANCH, GitOptions())
    branch.write(folder, base="main", message="m", withdraw=lambda: there.append(at(repository, "rev-parse", BRANCH)))
    assert len(there) == 1


def test_what_the_host_says_of_a_push_that_it_refuses_is_told(repository: GitRepository) -> None:
    """It was "failed to push some refs", with the hint to check the network."""
    hook = repository.remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho >&2\necho 'GitLab: You are not allowed to push here.' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(Stalled, match="GitLab: You are not allowed to push here") as told:
        write(repository)
    assert "let the token push to this branch" in told.value.hint
    hook.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(Stalled, match="pre-receive hook declined"):
        write(repository)


def test_a_base_that_is_not_there_is_told(repository: GitRepository) -> None:
    branch = WrittenBranch(repository.url, BRANCH, GitOptions())
    with pytest.raises(Stalled, match="has no branch or tag 'refs/heads/release'"):
        branch.write(
            Folder("rendered", FILES, keep=lambda _: False), base="release", message="m", withdraw=lambda: None
        )


def replace(
    repository: GitRepository, files: dict[str, bytes], is_current: Callable[[str], bool] = lambda _: True
) -> bool:
    return WrittenBranch(repository.url, "state", GitOptions()).replace(files, message="State", is_current=is_current)


def test_one_without_a_base_has_no_history_and_these_files_alone(repository: GitRepository) -> None:
    assert replace(repository, {"b": b"\xff\x00\r\n", "a": b""}) is True
    assert at(repository, "ls-tree", "-r", "--name-only", "state").split() == ["a", "b"]
    assert at(repository, "cat-file", "-s", "state:b") == "4"
    assert replace(repository, {"b": b"\xff\x00\r\n", "a": b""}) is False
    assert replace(repository, {"b": b"\xff\x00\r\n", "a": b""}, lambda _: False) is True
    assert replace(repository, {"a": b"new"}) is True
    assert at(repository, "rev-list", "--count", "state") == "1"


def test_whose_it_is_is_asked_before_anything_is_pushed(repository: GitRepository) -> None:
    repository.git("push", "--quiet", str(repository.remote), "HEAD:state")
    before = at(repository, "rev-parse", "state")
    asked: list[str] = []

    def refuse(message: str) -> bool:
        asked.append(message.strip())
        raise Stalled("it is somebody else's", reason="GitOperationFailed")

    with pytest.raises(Stalled, match="somebody else's"):
        replace(repository, {"a": b"new"}, refuse)
    assert asked == ["Change 1"]
    assert at(repository, "rev-parse", "state") == before


def test_a_branch_that_moves_meanwhile_is_not_overwritten(repository: GitRepository) -> None:
    replace(repository, {"a": b"1"})

    def moves(_message: str) -> bool:
        repository.git("push", "--quiet", "--force", str(repository.remote), "HEAD:state")
        return True

    with pytest.raises(Stalled, match="cannot push to"):
        replace(repository, {"a": b"2"}, moves)
    assert at(repository, "rev-parse", "state") == at(repository, "rev-parse", "main")
