"""Posting on a forge that fails at each request in turn: what is told is what was done, and the command fails where it must."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import product

import pytest

from reconciler.cli.posting import tell
from reconciler.forge.gitea import Gitea
from reconciler.forge.github import GitHub
from reconciler.forge.gitlab import GitLab
from reconciler.forge.pull_requests import Mode, Publication, Published, Report, publish
from reconciler.model.findings import Severity
from reconciler.ports import Annotation, CommitState, CommitStatus, Forge
from reconciler.settings.settings import Settings
from reconciler.wiring.posting import PullRequestReport
from tests.fakes.forge_server import Fault, ForgeServer
from tests.fakes.github_api import GitHubState
from tests.fakes.gitlab_api import GitLabState

COMMIT = f"{7:040x}"
STATUS = CommitStatus("headroom/plan", CommitState.SUCCESS, "+1 nodes")
REMARKS = (Annotation("pools.yaml", 1, Severity.ERROR, "code", "It is wrong."),)
READ_ONLY = Fault(403, body={"message": "Resource not accessible by integration"})
FAULTS = (
    [READ_ONLY],
    [READ_ONLY] * 20,
    [READ_ONLY, Fault(500)],
    [Fault(422, body={"message": "path is not part of the commit"})],
    [Fault(500)],
    [Fault(500)] * 20,
    [Fault(0)],
    [Fault(0, done=True)],
)
"""Of as many requests, one after the other."""


def nothing(_seconds: float) -> None:
    """No wait."""


FORGES: dict[str, tuple[type[GitHubState | GitLabState], str, str, Callable[..., Forge]]] = {
    "github": (GitHubState, "/api/v3", "Bearer secret", partial(GitHub, "example/capacity")),
    "gitlab": (GitLabState, "/api/v4", "Bearer secret", partial(GitLab, "platform/capacity")),
    # Gitea answers what is asked here as GitHub does.
    "gitea": (GitHubState, "/api/v1", "token secret", partial(Gitea, "example/capacity")),
}


def publication(words: str) -> Publication:
    return Publication(Report("", datetime(2026, 11, 26, tzinfo=UTC), COMMIT, words), STATUS, "One error.", REMARKS)


class Posted:
    """One publication on a fresh forge, on which an earlier run has commented or not. asked: the requests of this one."""

    def __init__(self, kind: str, mode: Mode, *, again: bool, faults: list[Fault | None]) -> None:
        made, root, authorization, client = FORGES[kind]
        self.state = made()
        with ForgeServer(root, authorization, self.state.endpoints()) as server:
            self.forge = client("secret", api=server.url, wait=nothing)
            if again:
                assert publish(self.forge, 7, publication("Before.\n"), wait=nothing).failure is None
            self.before = self.changes
            server.asked.clear()
            server.faults = list(faults)
            self.published: Published = publish(self.forge, 7, publication("After.\n"), mode, wait=nothing)
            self.asked = server.asked
            self.forge.close()
        assert server.mistakes == []

    @property
    def changes(self) -> tuple[int, tuple[str, ...], int]:
        """Statuses, comments, and what was remarked beside lines."""
        runs = len(self.state.runs) if isinstance(self.state, GitHubState) else 0
        return len(self.state.statuses), tuple(each["body"] for each in self.state.comments), runs


@pytest.mark.parametrize("kind", FORGES)
@pytest.mark.parametrize(("mode", "again"), [(Mode.UPDATE, False), (Mode.UPDATE, True), (Mode.HIDE_AND_NEW, True)])
def test_what_is_told_is_what_was_done_whatever_request_fails(
    kind: str, mode: Mode, capsys: pytest.CaptureFixture[str], *, again: bool
) -> None:
    count = len(Posted(kind, mode, again=again, faults=[]).asked)
    assert count >= 5
    for faults, place in product(FAULTS, range(count)):
        posted = Posted(kind, mode, again=again, faults=[*[None] * place, *faults])
        code = tell(PullRequestReport(posted.forge, 7, Settings()), posted.published)
        told = capsys.readouterr().err
        (statuses_before, comments_before, runs_before), (statuses, there, runs) = posted.before, posted.changes
        about = (faults, posted.asked, told)
        has_status, has_comment = statuses > statuses_before, there != comments_before
        if "perhaps nothing was posted" in told:
            assert code is not None, about
        elif "nothing was posted" in told:
            assert posted.changes == posted.before, about
            met = faults[: len(posted.asked) - place]
            assert code is not None or all(fault is READ_ONLY for fault in met), about
        elif code is None:
            assert has_status, about
            assert any("After." in body for body in there), about
        else:
            assert has_status or "the status was set" not in told, about
            assert has_comment or "comment was" not in told, about
            if not any(fault.done for fault in faults):
                named = ("the status was set" in told, "comment was" in told, "lines were annotated" in told)
                assert named == (has_status, has_comment, runs > runs_before), about
