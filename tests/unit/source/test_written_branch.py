"""A branch that headroom writes: without history, pushed only where it differs, and nobody else's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.model.errors import Stalled
from reconciler.source.branches import replace_branch
from reconciler.source.commands import GitOptions
from tests.integration.git_repository import GitRepository


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path)
    made.push({"README.md": "Words.\n"})
    return made


def at(repository: GitRepository, *words: str) -> str:
    return repository.git(*words, at=repository.remote)


def replace(
    repository: GitRepository, files: dict[str, bytes], is_current: Callable[[str], bool] = lambda _: True
) -> bool:
    return replace_branch(repository.url, "state", files, GitOptions(), message="State", is_current=is_current)


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
