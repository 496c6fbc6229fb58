"""`headroom diff --post` on a real forge: one comment with the right numbers, kept up to date, and the commit's status."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.controlplane.gitea import Gitea
from tests.integration.gitea_repository import GiteaRepository, buffer

pytestmark = pytest.mark.e2e
DIFF = ("diff", "origin/main..HEAD", "--cluster", "embedded", "--post", "gitea")


@pytest.fixture
def repository(gitea: Gitea, tmp_path: Path) -> GiteaRepository:
    return GiteaRepository(gitea, re.sub(r"\W+", "-", tmp_path.name), tmp_path / "clone")


def post(repository: GiteaRepository, number: int, *words: str, codes: tuple[int, ...] = (0, 1)) -> str:
    """What the run says on stderr."""
    done = repository.headroom(*DIFF, "--pull-request", str(number), *words)
    _, errors = done.communicate(timeout=120)
    assert done.returncode in codes, errors
    assert repository.gitea.token not in errors
    return errors


def test_a_pull_request_has_one_comment_that_follows_it(repository: GiteaRepository) -> None:
    first = repository.push("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    assert "a comment was made on Gitea pull request 1" in post(repository, number)
    (comment,) = repository.comments(number)
    assert "CapacityBuffer/default/api" in comment["body"]
    assert re.search(r"absent → 5\b", comment["body"])
    assert repository.statuses(first)["headroom/plan"]["status"] == "success"
    assert "node" in repository.statuses(first)["headroom/plan"]["description"]

    repository.push("more", {"api.yaml": buffer("api", 40)})
    assert "the comment was updated on" in post(repository, number)
    (updated,) = repository.comments(number)
    assert updated["id"] == comment["id"]
    assert re.search(r"absent → 40\b", updated["body"])

    reverted = repository.push("more", {"api.yaml": None})
    post(repository, number)
    (last,) = repository.comments(number)
    assert last["id"] == comment["id"]
    assert "No change" in last["body"]
    assert "No change" in repository.statuses(reverted)["headroom/plan"]["description"]


def test_two_runs_that_race_leave_one_comment_with_the_newer_content(repository: GiteaRepository) -> None:
    repository.push("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    words = (*DIFF, "--pull-request", str(number))
    times = ("2026-11-21T08:00:00Z", "2026-11-21T09:00:00Z", "2026-11-21T08:30:00Z")
    runs = [repository.headroom(*words, "--now", now) for now in times]
    for run in runs:
        _, errors = run.communicate(timeout=120)
        assert run.returncode == 1, errors
    (comment,) = repository.comments(number)
    assert "at=2026-11-21T09:00:00Z" in comment["body"]

    assert "nothing was posted" in post(repository, number, "--now", "2026-11-21T08:45:00Z")
    assert repository.comments(number) == [comment]


def test_a_run_for_a_commit_that_is_no_longer_the_head_says_nothing(repository: GiteaRepository) -> None:
    repository.push("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    repository.push("more", {"api.yaml": buffer("api", 6)})
    repository.git("checkout", "--quiet", "HEAD~1")
    assert "nothing was posted" in post(repository, number)
    assert repository.comments(number) == []


@pytest.mark.parametrize(
    ("mode", "count"), [("new", 2), ("hide-and-new", 2), ("delete-and-new", 1)], ids=["new", "hide", "delete"]
)
def test_an_earlier_comment_stays_is_hidden_or_is_deleted(repository: GiteaRepository, mode: str, count: int) -> None:
    repository.push("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    post(repository, number, "--post-mode", mode)
    repository.push("more", {"api.yaml": buffer("api", 6)})
    post(repository, number, "--post-mode", mode)
    comments = repository.comments(number)
    assert len(comments) == count
    assert "absent → 6" in comments[-1]["body"]
    assert ("An earlier report, outdated" in comments[0]["body"]) == (mode == "hide-and-new")


def test_nobody_else_can_pretend_to_be_newer(repository: GiteaRepository) -> None:
    """A comment that looks like ours, but was written by somebody else, counts for nothing."""
    name = repository.name.replace("/", "-")
    other = repository.gitea.add_user(name)
    repository.gitea.api("PUT", f"/repos/{repository.name}/collaborators/{name}", {"permission": "read"})
    repository.push("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    forged = "<!-- headroom:report key=- at=2100-01-01T00:00:00Z commit=x -->\nAll is well."
    path = f"/repos/{repository.name}/issues/{number}/comments"
    repository.gitea.api("POST", path, {"body": forged}, token=other)
    assert "a comment was made" in post(repository, number)
    assert len(repository.comments(number)) == 2


def test_where_nothing_changes_no_comment_need_be_made(repository: GiteaRepository) -> None:
    commit = repository.push("words", {"README.md": "Words.\n"}, start="main")
    number = repository.open_pull_request("words")
    assert "no comment was made" in post(repository, number)
    assert repository.comments(number) == []
    assert repository.statuses(commit)["headroom/plan"]["status"] == "success"


def test_five_hundred_changed_buffers_fit_into_a_comment_whose_summary_is_complete(repository: GiteaRepository) -> None:
    """With long names, each of another size, so that no two share a row."""
    names = [f"team-{number:03}-{'x' * 150}" for number in range(500)]
    many = "---\n".join(buffer(name, number + 1) for number, name in enumerate(names))
    commit = repository.push("many", {"many.yaml": many}, start="main")
    number = repository.open_pull_request("many")
    assert "a comment was made" in post(repository, number)
    (comment,) = repository.comments(number)
    body = comment["body"]
    assert len(body.encode()) < 65_536
    lacking, changed = re.findall(r"([\d,]+) (?:new chunks find no place|objects added)", body)
    asked, room = sum(range(501)), 40  # chunks and CPUs: the NodePool has a limit
    assert asked - room <= int(lacking.replace(",", "")) < asked
    assert changed == "1,000"
    summary = body.partition("<details>")[0]
    rows = len(re.findall(r"^\| CapacityBuffer/default/", summary, re.MULTILINE))
    left_out = re.search(r"^… and (\d+) more\.$", summary, re.MULTILINE)
    assert left_out is not None
    assert rows
    assert rows + int(left_out[1]) == 501  # with the one of main, whose chunks lose their place to these
    assert body.count("<details>") == body.count("</details>")
    status = repository.statuses(commit)["headroom/plan"]
    assert status["description"].split(":")[0] in body


def test_a_token_that_is_not_valid_is_told_with_the_report_printed_all_the_same(repository: GiteaRepository) -> None:
    repository.push("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    done = repository.headroom(*DIFF, "--pull-request", str(number), GITEA_TOKEN="f" * 40)
    printed, errors = done.communicate(timeout=120)
    assert done.returncode == 2
    assert "absent → 5" in printed
    assert "check that the token is valid and may do this" in errors
    assert "f" * 40 not in errors


def test_an_error_is_said_before_the_job_fails_of_it(repository: GiteaRepository) -> None:
    """Its job ended at the check of the manifests, and the comment kept praising the commit before."""
    repository.push("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    post(repository, number, "--no-new-errors")
    wrong = repository.push("more", {"api.yaml": buffer("api", 5).replace("replicas: 5", "replicas: five")})
    assert "new error: " in post(repository, number, "--no-new-errors", codes=(3,))
    (comment,) = repository.comments(number)
    assert "1 new error" in comment["body"]
    assert "spec.replicas must be a whole number" in comment["body"]
    assert repository.statuses(wrong)["headroom/plan"]["status"] == "failure"


def test_two_sides_in_conflict_are_said_not_to_be_merged(repository: GiteaRepository) -> None:
    """What main had changed itself was shown as taken back by the branch."""
    repository.push("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    repository.git("checkout", "--quiet", "main")
    repository.push("main", {"api.yaml": buffer("api", 50)})
    repository.git("checkout", "--quiet", "more")
    post(repository, number)
    (comment,) = repository.comments(number)
    assert "Not merged, since api.yaml is in conflict: what the branch itself changes is shown" in comment["body"]
    assert "default/api new (5 chunks)" in comment["body"]
    assert "Do not merge as it is" in comment["body"]
