"""The clients of GitHub and GitLab against servers that check every request against what those forges publish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.forge.connection import ATTEMPTS, GoneError
from reconciler.forge.github import GitHub
from reconciler.forge.gitlab import GitLab
from reconciler.model.errors import Failure, Invalid, Stalled, Transient
from reconciler.model.findings import Severity
from reconciler.ports import Annotation, Comment, CommitState, CommitStatus, Forge
from tests.fakes.forge_server import Fault, ForgeServer
from tests.fakes.github_api import GitHubState
from tests.fakes.gitlab_api import GitLabState

TOKEN = "glpat-or-ghp-or-whatever-1234567890"
COMMIT = f"{7:040x}"
STATUS = CommitStatus("headroom/plan", CommitState.FAILURE, "+3 nodes, " + "x" * 300, "https://ci.example/1")


class Running:
    """A client, the server that it talks to, what is behind that, and the seconds that it waited."""

    def __init__(self, state: GitHubState | GitLabState) -> None:
        self.state = state
        self.waits: list[float] = []
        self.forge: Forge
        if isinstance(state, GitHubState):
            self.server = ForgeServer("/api/v3", f"Bearer {TOKEN}", state.endpoints())
            self.forge = GitHub("example/capacity", TOKEN, api=self.server.url, wait=self.waits.append)
        else:
            self.server = ForgeServer("/api/v4", f"Bearer {TOKEN}", state.endpoints())
            self.forge = GitLab("platform/capacity", TOKEN, api=self.server.url, wait=self.waits.append)


@pytest.fixture(params=[GitHubState, GitLabState], ids=["github", "gitlab"])
def running(request: pytest.FixtureRequest) -> Iterator[Running]:
    made = Running(request.param())
    with made.server:
        yield made
        made.forge.close()
    assert made.server.mistakes == []


ON_GITHUB = pytest.mark.parametrize("running", [GitHubState], indirect=True)
ON_GITLAB = pytest.mark.parametrize("running", [GitLabState], indirect=True)

HUB, LAB = "/repos/example/capacity", "/projects/platform%2Fcapacity"


@pytest.mark.parametrize(
    ("state", "method", "path", "body", "words"),
    [
        (GitHubState, "POST", f"{HUB}/issues/7/comments", {"text": "Hello"}, "body"),
        (GitHubState, "POST", f"{HUB}/issues/7/comments", {"body": "Hello", "internal": True}, "internal"),
        (GitHubState, "PATCH", f"{HUB}/issues/comments/1", {"body": 7}, "string"),
        (GitHubState, "POST", f"{HUB}/pulls", {"head": "more", "base": "main"}, "title"),
        (GitHubState, "POST", f"{HUB}/pulls", {"title": "T", "head": "m", "base": "b", "state": "open"}, "state"),
        (GitHubState, "PATCH", f"{HUB}/pulls/7", {"state": "close"}, "close"),
        (GitHubState, "POST", f"{HUB}/statuses/{COMMIT}", {"state": "failed"}, "failed"),
        (GitHubState, "POST", f"{HUB}/statuses/{COMMIT}", {"state": "error", "target_url": "ftp://x"}, "match"),
        (GitHubState, "POST", f"{HUB}/check-runs", {"name": "n", "head_sha": COMMIT, "status": "completed"}, "conclusion"),
        (GitHubState, "POST", f"{HUB}/check-runs", {"name": "n", "head_sha": COMMIT, "output": {"summary": ""}}, "title"),
        (GitHubState, "PUT", f"{HUB}/pulls/7", {}, "no such endpoint"),
        (GitLabState, "POST", f"{LAB}/merge_requests/7/notes", {"body": ""}, "shorter"),
        (GitLabState, "PUT", f"{LAB}/merge_requests/7/notes/1", {"body": "b", "internal": True}, "internal"),
        (GitLabState, "POST", f"{LAB}/merge_requests", {"title": "T", "source_branch": "more"}, "target_branch"),
        (GitLabState, "PUT", f"{LAB}/merge_requests/7", {"source_branch": "other"}, "source_branch"),
        (GitLabState, "PUT", f"{LAB}/merge_requests/7", {"state": "closed"}, "state"),
        (GitLabState, "PUT", f"{LAB}/merge_requests/7", {}, "less than 1 property"),
        (GitLabState, "POST", f"{LAB}/statuses/{COMMIT}", {"state": "failure"}, "failure"),
        (GitLabState, "POST", f"{LAB}/statuses/{COMMIT}", {"name": "headroom/plan"}, "state"),
    ],
)  # fmt: skip
def test_the_servers_refuse_what_the_forges_do_not_take(
    state: type[GitHubState | GitLabState], method: str, path: str, body: dict[str, object], words: str
) -> None:
    running = Running(state())
    with running.server as server:
        status, _ = server.answer(method, path, {}, body)
        running.forge.close()
    assert status in {404, 422}
    (mistake,) = server.mistakes
    assert words in mistake


def test_comments_are_made_changed_and_deleted_over_several_pages(running: Running) -> None:
    forge = running.forge
    for number in range(1, 6):
        forge.add_comment(7, f"Number {number}")
    assert [comment.body for comment in forge.comments(7)] == [f"Number {number}" for number in range(1, 6)]
    assert sum("GET" in asked and ("comments" in asked or "notes" in asked) for asked in running.server.asked) == 3
    forge.edit_comment(7, forge.comments(7)[4], "Another")
    forge.delete_comment(7, forge.comments(7)[0])
    forge.delete_comment(7, Comment("1", ""))
    assert [comment.body for comment in forge.comments(7)] == ["Number 2", "Number 3", "Number 4", "Another"]
    with pytest.raises(GoneError):
        forge.edit_comment(7, Comment("1", ""), "Too late")


def test_pull_requests_are_read_opened_changed_and_closed(running: Running) -> None:
    forge = running.forge
    pull = forge.pull_request(7)
    assert (pull.head_commit, pull.head_branch, pull.base_branch) == (COMMIT, "more", "main")
    assert [each.from_fork for each in forge.open_pull_requests()] == [False, True]
    assert pull.head_ref == ("refs/pull/7/head" if forge.name == "GitHub" else "refs/merge-requests/7/head")
    made = forge.open_pull_request(title="Proposed", body="By headroom.", head="headroom/production", base="main")
    assert (made.number, made.is_open) == (9, True)
    forge.edit_pull_request(9, title="Proposed again", body="Later.")
    forge.close_pull_request(9, title="Withdrawn")
    closed = forge.pull_request(9)
    assert (closed.title, closed.is_open) == ("Withdrawn", False)
    assert "Later." in str(running.state.pulls)
    assert 9 in [each.number for each in forge.pull_requests_of("headroom/production")]
    with pytest.raises(GoneError, match="or the token may not see it"):
        forge.pull_request(12)


def test_a_status_is_within_what_the_forge_takes(running: Running) -> None:
    running.forge.set_status(COMMIT, STATUS)
    (sent,) = running.state.statuses
    assert sent["state"] == ("failure" if running.forge.name == "GitHub" else "failed")
    assert sent["target_url"] == "https://ci.example/1"


def test_what_was_not_judged_in_full_is_no_success(running: Running) -> None:
    running.forge.set_status(COMMIT, replace(STATUS, state=CommitState.NEUTRAL))
    assert running.state.statuses[0]["state"] == ("pending" if running.forge.name == "GitHub" else "skipped")


def test_remarks_beside_lines_come_in_pieces_where_there_are_such(running: Running) -> None:
    remarks = [Annotation("pools.yaml", line, Severity.ERROR, "code", "It is wrong.") for line in range(1, 121)]
    there = running.forge.annotate(COMMIT, STATUS, "Three errors.", remarks)
    if isinstance(running.state, GitLabState):
        assert not there
        return
    assert there
    assert [len(run) for run in running.state.runs] == [50, 50, 20]
    assert {row["annotation_level"] for run in running.state.runs for row in run} == {"failure"}
    running.state.checks = False
    assert not running.forge.annotate(COMMIT, STATUS, "Three errors.", remarks)


def test_hidden_comments_are_outdated_on_github_and_folded_up_elsewhere(running: Running) -> None:
    running.forge.add_comment(7, "Old")
    (comment,) = running.forge.comments(7)
    running.forge.hide_comment(7, comment)
    if isinstance(running.state, GitHubState):
        assert running.state.minimized == ["IC_1"]
        assert running.server.asked[-1] == "POST /api/graphql"
    else:
        assert "<details><summary>An earlier report, outdated</summary>\n\nOld" in running.forge.comments(7)[0].body


@ON_GITHUB
def test_a_workflows_token_which_may_not_ask_its_name_knows_its_comments_all_the_same(running: Running) -> None:
    running.state.login = ""  # type: ignore[union-attr]
    running.forge.add_comment(7, "Ours")
    running.state.comments.append({"id": 2, "body": "A person's", "user": {"login": "eve", "type": "User"}})
    assert [comment.body for comment in running.forge.comments(7)] == ["Ours"]


@ON_GITLAB
def test_a_status_that_is_already_so_is_no_failure_on_gitlab(running: Running) -> None:
    running.state.unchanged = True  # type: ignore[union-attr]
    running.forge.set_status(COMMIT, STATUS)


@ON_GITLAB
def test_a_status_is_written_again_while_gitlab_writes_another_one_of_the_commit(running: Running) -> None:
    """GitLab answers 409 then, and has written nothing; the command failed of it."""
    running.server.faults = [Fault(409)]
    running.forge.set_status(COMMIT, STATUS)
    assert len(running.state.statuses) == 1
    running.server.faults = [Fault(409)]
    with pytest.raises(Invalid, match="409"):
        running.forge.add_comment(7, "Only statuses")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, {"Retry-After": "7"}),
        Fault(403, {"X-RateLimit-Remaining": "0", "Retry-After": "7"}, {"message": "rate limit exceeded"}),
        Fault(403, {"Retry-After": "7"}, {"message": "You have exceeded a secondary rate limit"}),
    ],
    ids=["429", "primary", "secondary"],
)
def test_a_rate_limit_is_waited_for_and_nothing_is_done_twice(running: Running, fault: Fault) -> None:
    running.server.faults = [fault]
    running.forge.add_comment(7, "Once")
    assert running.waits == [7.0]
    assert [comment.body for comment in running.forge.comments(7)] == ["Once"]


SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
HOUR = {"X-RateLimit-Remaining": "4321", "X-RateLimit-Reset": "99999999999"}
"""Of the hourly limit, which has not run out."""


@pytest.mark.parametrize("status", [403, 429])
def test_a_secondary_limit_without_a_time_is_waited_for_as_github_asks(running: Running, status: int) -> None:
    """With 403 it was told as a token without the right, which fails no job; with 429 it was given up for the end of the hour."""
    running.server.faults = [Fault(status, HOUR, SECONDARY)]
    running.forge.add_comment(7, "Once")
    assert running.waits == [60.0]
    assert len(running.forge.comments(7)) == 1


def test_a_rate_limit_of_an_hour_is_not_waited_for(running: Running) -> None:
    running.server.faults = [Fault(429, {"Retry-After": "3600"})]
    with pytest.raises(Transient, match="limits the rate of requests"):
        running.forge.pull_request(7)
    assert running.waits == []


@pytest.mark.parametrize("fault", [Fault(502), Fault(0)], ids=["502", "cut"])
def test_reading_is_tried_again_and_making_is_not(running: Running, fault: Fault) -> None:
    running.server.faults = [fault, fault]
    assert running.forge.pull_request(7).number == 7
    assert running.waits == [1.0, 2.0]
    running.server.faults = [fault]
    with pytest.raises(Transient):
        running.forge.add_comment(7, "Perhaps made before it failed")


def test_a_server_that_stays_down_is_given_up(running: Running) -> None:
    running.server.faults = [Fault(500)] * ATTEMPTS
    with pytest.raises(Transient, match="500"):
        running.forge.pull_request(7)
    assert running.server.faults == []


@pytest.mark.parametrize(
    ("headers", "body", "hint"),
    [
        ({"X-Accepted-GitHub-Permissions": "pull_requests=write"}, {}, "the permission pull_requests=write"),
        ({"X-Accepted-OAuth-Scopes": "repo"}, {}, "the scope repo"),
        ({}, {"error": "insufficient_scope", "error_description": "It needs more.", "scope": "api"}, "the scope api"),
        ({"X-Accepted-GitHub-Permissions": ""}, {"message": "No."}, "check that the token is valid"),
    ],
)
def test_the_right_that_a_token_lacks_is_named(
    running: Running, headers: dict[str, str], body: dict[str, str], hint: str
) -> None:
    running.server.faults = [Fault(403, headers, body)]
    with pytest.raises(Stalled, match=body.get("error_description", "403")) as told:
        running.forge.add_comment(7, "Not by this token")
    assert hint in told.value.hint


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault(401, body={"message": f"Bad credentials {TOKEN}"}), Stalled, r"401: Bad credentials \*\*\*"),
        (Fault(422, body={"message": "Validation Failed\n", "errors": [{"field": "body"}]}), Invalid, "Validation"),
        (Fault(301, {"Location": "https://elsewhere.example/"}), Invalid, "sends GET .* to https://elsewhere.example/"),
        (Fault(200, body="words"), Transient, "did not answer with a list"),
    ],
    ids=["401", "422", "301", "no list"],
)
def test_what_the_forge_says_is_told_without_the_token(
    running: Running, fault: Fault, kind: type[Failure], words: str
) -> None:
    running.server.faults = [fault]
    with pytest.raises(kind, match=words) as told:
        running.forge.open_pull_requests()
    assert TOKEN not in f"{told.value.message} {told.value.hint} {told.value!r}"
    assert "\n" not in told.value.message
