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
