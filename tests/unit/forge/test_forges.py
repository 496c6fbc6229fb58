"""Which forge is meant: tokens, CI jobs, addresses of pages, and webhooks."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.forge.forges import (
    UnsignedError,
    forge_token,
    is_of_a_fork,
    kind_of,
    links_to,
    name_of,
    open_forge,
    read_webhook,
)
from reconciler.forge.kind import CiJob, WebhookEvent
from reconciler.model.errors import Invalid, Stalled
from tests.architecture.source_tree import copy_of_the_product
from tests.programs import ended


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


REVISION = "main@sha1:" + "4f1c8a90" * 5
COMMIT = "4f1c8a90" * 5


@pytest.mark.parametrize(
    ("remote", "forge"),
    [
        ("git@github.com:example/capacity.git", "github"),
        ("https://token@github.example.com/example/capacity", "github"),
        ("ssh://git@gitlab.example.com:2222/platform/capacity.git", "gitlab"),
        ("https://GitLab.com/platform/capacity.git", "gitlab"),
        ("gitea.example.com:platform/capacity.git", "gitea"),
        ("https://codeberg.org/example/capacity.git", "gitea"),
        ("https://git.example.com/github/capacity.git", ""),
        ("git@git.example.com:gitlab/capacity.git", ""),
        ("/srv/git/github.git", ""),
        ("", ""),
    ],
)
def test_the_hosts_name_tells_the_forge(remote: str, forge: str) -> None:
    assert name_of(remote) == forge


@pytest.mark.parametrize(
    ("repository", "kind", "page", "commit", "file"),
    [
        ("https://github.com/shop/capacity.git", "", "https://github.com/shop/capacity", "commit", "blob"),
        ("https://bot:s3cret@github.com/shop/capacity", "", "https://github.com/shop/capacity", "commit", "blob"),
        ("git@gitlab.com:shop/teams/capacity.git", "", "https://gitlab.com/shop/teams/capacity", "-/commit", "-/blob"),
        ("ssh://git@codeberg.org:2222/shop/capacity.git", "", "https://codeberg.org/shop/capacity", "commit", "src/commit"),
        ("http://git.example.com:3000/shop/capacity", "gitea", "http://git.example.com:3000/shop/capacity", "commit", "src/commit"),
    ],
)  # fmt: skip
def test_each_forge_has_its_own_addresses(repository: str, kind: str, page: str, commit: str, file: str) -> None:
    links = links_to(repository, kind)
    assert links.commit(REVISION) == f"{page}/{commit}/{COMMIT}"
    assert links.line(REVISION, "teams/a b.yaml", 7) == f"{page}/{file}/{COMMIT}/teams/a%20b.yaml#L7"


@pytest.mark.parametrize(
    "repository",
    [
        "",
        ".",
        "/srv/git/capacity.git",
        "file:///srv/capacity.git",
        "https://git.example.com/shop/capacity",
        "https://[",
        "https://github.com/",
    ],
)
def test_without_a_forge_there_are_no_links(repository: str) -> None:
    links = links_to(repository)
    assert links.commit(REVISION) is None
    assert links.line(REVISION, "a.yaml", 7) is None


def test_files_that_were_not_committed_have_no_links() -> None:
    links = links_to("https://github.com/shop/capacity")
    assert links.commit(None) is None
    assert links.line("main@sha1:", "a.yaml", 7) is None
    assert links.line(REVISION, None, None) is None


SECRET = "between-us"
PUSH = json.dumps({"ref": "refs/heads/main", "after": "c" * 40}).encode()


def digest(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def github(event: str, body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"x-github-event": event, "x-hub-signature-256": f"sha256={digest(body, secret)}"}


def gitea(event: str, body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {**github(event, body, secret), "x-gitea-event": event, "x-gitea-signature": digest(body, secret)}


def gitlab(event: str, _body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"x-gitlab-event": event, "x-gitlab-token": secret}


@pytest.mark.parametrize(
    ("headers", "event"), [(github, "push"), (gitea, "push"), (gitlab, "Push Hook")], ids=["github", "gitea", "gitlab"]
)
def test_a_push_is_of_a_branch(headers: Callable[..., dict[str, str]], event: str) -> None:
    assert read_webhook(headers(event, PUSH), PUSH, SECRET) == WebhookEvent("main")
    with pytest.raises(UnsignedError):
        read_webhook(headers(event, PUSH, "another"), PUSH, SECRET)
    with pytest.raises(UnsignedError):
        read_webhook(headers(event, PUSH, ""), PUSH, "")


@pytest.mark.parametrize(
    ("document", "headers", "event"),
    [
        ({"ref": "refs/tags/v1"}, github("push", b""), WebhookEvent("")),
        ({"number": 7, "action": "opened"}, github("pull_request", b""), WebhookEvent()),
        ({"pull_request": {"number": 7}}, gitea("pull_request_sync", b""), WebhookEvent()),
        ({"object_attributes": {"iid": 7}}, gitlab("Merge Request Hook", b""), WebhookEvent()),
        ({"zen": "Keep it logically awesome."}, github("ping", b""), None),
        ({"object_kind": "note"}, gitlab("Note Hook", b""), None),
    ],
)
def test_what_is_announced(document: dict[str, object], headers: dict[str, str], event: WebhookEvent | None) -> None:
    body = json.dumps(document).encode()
    signed = {name: value.replace(digest(b""), digest(body)) for name, value in headers.items()}
    assert read_webhook(signed, body, SECRET) == event


@pytest.mark.parametrize("change", [b"x", b" "])
def test_one_byte_more_is_not_what_was_signed(change: bytes) -> None:
    with pytest.raises(UnsignedError):
        read_webhook(github("push", PUSH), PUSH + change, SECRET)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-github-event": "push"},
        {"x-github-event": "push", "x-hub-signature-256": digest(PUSH)},  # without its prefix
        {"x-github-event": "push", "x-hub-signature": "sha1=" + "0" * 40},
        {**github("push", PUSH), "x-gitea-event": "push"},  # claims to be Gitea's, but is not signed as such
        {"x-gitlab-event": "Push Hook", "x-gitlab-token": "bétween-us"},
    ],
)
def test_anything_less_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(UnsignedError):
        read_webhook(headers, PUSH, SECRET)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"ref": ', b"[" * 100_000, b"\xff", b'"push"'])
def test_a_signed_body_that_is_none_is_invalid(body: bytes) -> None:
    with pytest.raises(Invalid) as told:
        read_webhook(github("push", body), body, SECRET)
    assert not isinstance(told.value, UnsignedError)


# A forge is one file and one line: a copy of the product gets another one, and every way to a forge knows it.

# What a newcomer would write: a copy of Gitea's file with another name, other hosts and other headers.
PROGRAM = """
import hashlib, hmac
from reconciler.forge.forges import forge_token, links_to, name_of, open_forge, read_webhook
from reconciler.settings.load import load_settings

settings = load_settings(None, environment={"HEADROOM_FORGE_KIND": "forgery"})
assert settings.forge.kind == "forgery"
token = forge_token("forgery")
assert open_forge("forgery", repository="shop/capacity", token=token, api="https://git.example.com/api/v1").name == "Gitea"
assert name_of("git@forgery.example.com:shop/capacity.git") == "forgery"
page = links_to("git@forgery.example.com:shop/capacity.git").line("main@sha1:" + "a" * 40, "a.yaml", 7)
assert page == "https://forgery.example.com/shop/capacity/src/commit/" + "a" * 40 + "/a.yaml#L7"
body = b'{"ref": "refs/heads/main"}'
proof = hmac.new(b"secret", body, hashlib.sha256).hexdigest()
assert read_webhook({"x-forgery-event": "push", "x-forgery-signature": proof}, body, "secret").pushed == "main"

from reconciler.cli.init import init_command
from reconciler.cli.diff import diff_command
for command in (init_command, diff_command):
    assert any("forgery" in getattr(option.type, "choices", ()) for option in command.params), command.name
"""


def test_a_further_forge_is_one_file_and_one_line(tmp_path: Path) -> None:
    forges = copy_of_the_product(tmp_path) / "reconciler" / "forge"
    text = (forges / "gitea.py").read_text()
    (forges / "forgery.py").write_text(
        re.sub(r"x-gitea", "x-forgery", text).replace('"gitea", "forgejo", "codeberg"', '"forgery"')
    )
    names = forges / "__init__.py"
    names.write_text(names.read_text().replace('"gitea")', '"gitea", "forgery")'))
    done = ended(sys.executable, "-c", PROGRAM, folder=tmp_path, env={"PYTHONPATH": str(tmp_path), "GITEA_TOKEN": "t"})
    assert done.returncode == 0, done.stderr


IN_GITLAB = {"CI_MERGE_REQUEST_PROJECT_ID": "7"}
US, THEM = ({"repo": {"full_name": f"{who}/capacity"}} for who in ("us", "them"))
FORKS: dict[str, tuple[Mapping[str, str], Any, bool]] = {
    "GitHub and Gitea tell it in the event": ({}, {"pull_request": {"head": US, "base": US}}, False),
    "of another repository": ({}, {"pull_request": {"head": THEM, "base": US}}, True),
    "of one that is gone": ({}, {"pull_request": {"head": {"repo": None}, "base": US}}, True),
    "of no pull request": ({}, {"ref": "refs/heads/main"}, False),
    "an event of another form": ({}, [], True),
    "an event that cannot be read": ({"GITHUB_EVENT_PATH": "/nowhere"}, None, True),
    "GitLab tells it by two projects": ({**IN_GITLAB, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7"}, None, False),
    "of another project": ({**IN_GITLAB, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8"}, None, True),
    "no job at all": ({}, None, False),
}
"""Templates of a fork are never rendered without being asked for, so a job must know that it runs for one."""


@pytest.mark.parametrize("case", FORKS)
def test_a_job_knows_that_it_runs_for_a_fork(tmp_path: Path, case: str) -> None:
    environment, event, fork = FORKS[case]
    if event is not None:
        (tmp_path / "event.json").write_text(json.dumps(event))
        environment = {"GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
    assert is_of_a_fork(environment) == fork
