"""What CI tells of its pull request, and which forge and token are meant."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.forge.forges import forge_token, kind_of, open_forge
from reconciler.forge.kind import CiJob
from reconciler.model.errors import Invalid, Stalled


def test_github_actions_tells_the_head_and_not_the_merge_that_it_checked_out(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": "c" * 40}}}))
    environment = {
        "GITHUB_API_URL": "https://git.example.com/api/v3",
        "GITHUB_REPOSITORY": "example/capacity",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_SHA": "d" * 40,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_SERVER_URL": "https://git.example.com",
        "GITHUB_RUN_ID": "12",
        "GITHUB_RUN_NUMBER": "3",
    }
    expected = CiJob(
        "https://git.example.com/api/v3",
        "example/capacity",
        7,
        "c" * 40,
        "https://git.example.com/example/capacity/actions/runs/12",
    )
    assert kind_of("github").job(environment) == expected
    on_gitea = replace(expected, url="https://git.example.com/example/capacity/actions/runs/3")
    assert kind_of("gitea").job(environment) == on_gitea


@pytest.mark.parametrize("event", ["", "[]", "{", '{"pull_request": null}'])
def test_a_github_event_that_cannot_be_read_leaves_the_number_of_the_reference(tmp_path: Path, event: str) -> None:
    path = tmp_path / "event.json"
    path.write_text(event)
    found = kind_of("github").job({"GITHUB_REF": "refs/pull/7/merge", "GITHUB_EVENT_PATH": str(path)})
    assert (found.number, found.head_commit) == (7, "")
    assert kind_of("github").job({"GITHUB_REF": "refs/heads/main"}).number is None


def test_gitlab_ci_tells_the_project_that_is_merged_into() -> None:
    environment = {
        "CI_API_V4_URL": "https://gitlab.example.com/api/v4",
        "CI_PROJECT_ID": "99",
        "CI_MERGE_REQUEST_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_COMMIT_SHA": "d" * 40,
        "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "c" * 40,
        "CI_JOB_URL": "https://gitlab.example.com/-/jobs/1",
    }
    assert kind_of("gitlab").job(environment) == CiJob(
        "https://gitlab.example.com/api/v4", "1", 7, "c" * 40, "https://gitlab.example.com/-/jobs/1"
    )
    plain = {name: value for name, value in environment.items() if "SOURCE" not in name}
    assert kind_of("gitlab").job(plain).head_commit == "d" * 40
    assert kind_of("gitlab").job({}) == CiJob()


def test_a_token_is_of_headroom_first_then_of_the_forge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HEADROOM_FORGE_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GITEA_TOKEN", "GITLAB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Stalled, match="there is no token for github"):
        forge_token("github")
    monkeypatch.setenv("GITHUB_TOKEN", "of-the-workflow\n")
    assert forge_token("github") == "of-the-workflow"
    assert forge_token("gitea") == "of-the-workflow"
    with pytest.raises(Stalled):
        forge_token("gitlab")
    monkeypatch.setenv("HEADROOM_FORGE_TOKEN", "ours")
    assert forge_token("gitlab") == "ours"
    (tmp_path / "token").write_text("rotated\n")
    assert forge_token("gitlab", str(tmp_path / "token")) == "rotated"
    with pytest.raises(Stalled, match="cannot be read"):
        forge_token("gitlab", str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("kind", "repository", "api", "words"),
    [
        ("bitbucket", "a/b", "", "is not a forge"),
        ("github", "", "", "which repository on github is meant: forge.repository is empty"),
        ("github", "a/b/c", "", "is not a repository"),
        ("gitlab", "", "", "which repository on gitlab is meant"),
        ("gitea", "a/b", "", "where Gitea is: forge.api is empty"),
        ("gitea", "a/b", "ftp://git.example.com", "not the address of an API"),
        ("gitea", "a/b", "https://user:secret@git.example.com", "not the address of an API"),
        ("gitea", "a/b", "http://git.example.com/api/v1", "not sent over plain http"),
    ],
)
def test_a_forge_that_cannot_be_meant_is_told(kind: str, repository: str, api: str, words: str) -> None:
    with pytest.raises(Invalid, match=words) as told:
        open_forge(kind, repository=repository, token="t", api=api)
    assert "secret" not in told.value.message


def test_plain_http_is_for_this_machine_or_for_who_asks_for_it() -> None:
    for kind, repository, api, plain in (
        ("github", "a/b", "", False),
        ("gitlab", "group/sub/project", "", False),
        ("gitea", "a/b", "http://127.0.0.1:3000/api/v1", False),
        ("gitea", "a/b", "http://git.example.com/api/v1", True),
    ):
        open_forge(kind, repository=repository, token="t", api=api, plain_http=plain).close()
