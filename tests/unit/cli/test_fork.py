"""Templates of a fork are never rendered without being asked for, so a job must know that it runs for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.diff import is_of_a_fork


def repository(name: str) -> dict[str, Any]:
    return {"repo": {"full_name": name}}


@pytest.mark.parametrize(
    ("event", "fork"),
    [
        ({"pull_request": {"head": repository("us/capacity"), "base": repository("us/capacity")}}, False),
        ({"pull_request": {"head": repository("them/capacity"), "base": repository("us/capacity")}}, True),
        ({"pull_request": {"head": {"repo": None}, "base": repository("us/capacity")}}, True),
        ({"ref": "refs/heads/main"}, False),
        ([], True),
    ],
)
def test_github_and_gitea_tell_it_in_the_event(tmp_path: Path, event: Any, fork: bool) -> None:  # noqa: FBT001
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))
    assert is_of_a_fork({"GITHUB_EVENT_PATH": str(path)}) == fork


def test_an_event_that_cannot_be_read_counts_as_one_of_a_fork(tmp_path: Path) -> None:
    assert is_of_a_fork({"GITHUB_EVENT_PATH": str(tmp_path / "nowhere")})


@pytest.mark.parametrize(("source", "fork"), [("7", False), ("8", True)])
def test_gitlab_tells_it_by_two_projects(source: str, fork: bool) -> None:  # noqa: FBT001
    names = {"CI_MERGE_REQUEST_PROJECT_ID": "7", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": source}
    assert is_of_a_fork(names) == fork


def test_without_a_job_there_is_no_fork() -> None:
    assert not is_of_a_fork({})
