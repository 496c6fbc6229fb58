"""The daemon on a real forge: it clones with a token, takes signed webhooks, reports on pull requests by itself, and proposes its plans."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from tests.controlplane import eventually
from tests.controlplane.gitea import ADMIN, Gitea
from tests.controlplane.ports import free_port
from tests.integration.gitea_repository import NODE_POOL, GiteaRepository, buffer
from tests.running_daemon import RunningDaemon

pytestmark = pytest.mark.e2e
SECRET = "shared-with-the-forge"
BRANCH = "headroom/production"
SCOPES = "write:issue,write:repository,read:user"
"""What docs/pull-requests.md says that the token must be allowed."""


class GiteaDaemon(RunningDaemon):
    """On the embedded cluster. It polls once an hour: what happens sooner was announced by signed webhooks."""

    def __init__(self, repository: GiteaRepository, work: Path, **settings: str) -> None:
        gitea = repository.gitea
        self.port = free_port()
        self._token = gitea.add_token(ADMIN, SCOPES)
        usual = {
            "git_interval": "1h",
            "git_token": self._token,
            "git_state": str(work / "state"),
            "forge_kind": "gitea",
            "forge_repository": repository.name,
            "forge_api": f"{gitea.url}/api/v1",
            "forge_token": self._token,
            "forge_interval": "1h",
            "passes_quiet": "200ms",
            "webhooks_listen": f"127.0.0.1:{self.port}",
            "webhook_secret": SECRET,
        }
        url = gitea.git_url(repository.name)
        super().__init__(work, f"--repo={url}", "--cluster=embedded", environment={}, **{**usual, **settings})

    def __enter__(self) -> Self:
        super().__enter__()
        self.wait_until_ready()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        super().__exit__(kind)
        assert self._token not in self.log()

    def metric(self, line: str) -> bool:
        return line in self.fetch("/metrics").splitlines()

    def passes(self) -> float:
        lines = self.fetch("/metrics").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("headroom_reconcile_total{"))


@pytest.fixture
def repository(gitea: Gitea, tmp_path: Path) -> GiteaRepository:
    return GiteaRepository(gitea, tmp_path)


def add_webhook(repository: GiteaRepository, daemon: GiteaDaemon) -> None:
    config = {"url": f"http://127.0.0.1:{daemon.port}/webhook", "content_type": "json", "secret": SECRET}
    events = ["push", "pull_request", "pull_request_sync"]
    path = f"/repos/{repository.name}/hooks"
    repository.gitea.api("POST", path, {"type": "gitea", "config": config, "events": events, "active": True})


def refused(port: int, **headers: str) -> int:
    """The status that an unsigned webhook is answered with."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/webhook", data=b'{"ref": "refs/heads/main"}', headers=headers, method="POST"
    )
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(request, timeout=10)
    answer.value.close()
    return answer.value.code


def test_a_signed_webhook_starts_a_poll_at_once_and_an_unsigned_one_is_refused(
    repository: GiteaRepository, tmp_path: Path
) -> None:
    with GiteaDaemon(repository, tmp_path) as daemon:
        assert refused(daemon.port, **{"X-Gitea-Event": "push"}) == 401
        assert refused(daemon.port, **{"X-Gitea-Event": "push", "X-Gitea-Signature": "0" * 64}) == 401
        add_webhook(repository, daemon)
        commit = repository.publish("main", {"web.yaml": buffer("web", 4)})

        def took_over() -> bool:
            return str(daemon.status()["revision"]).endswith(commit)

        eventually(took_over, within=30, what="the daemon reads what was pushed, an hour before its next poll")
        assert daemon.metric('headroom_webhooks_total{result="unsigned"} 2.0')
        assert daemon.metric('headroom_webhooks_total{result="taken"} 1.0')
        assert SECRET not in daemon.log()


def test_the_daemon_reports_on_pull_requests_and_not_with_the_templates_of_a_fork(
    repository: GiteaRepository, tmp_path: Path
) -> None:
    pages = "https://headroom.example.com"
    daemon = GiteaDaemon(repository, tmp_path, forge_reports="true", forge_pages=pages)
    add_webhook(repository, daemon)
    head = repository.publish("more", {"api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    with daemon:

        def says(words: str) -> bool:
            comments = repository.comments(number)
            assert len(comments) <= 1
            return bool(comments) and words in comments[0]["body"]

        eventually(lambda: says("absent → 5"), within=60, what="the daemon reports on the pull request")
        eventually(lambda: "headroom/plan" in repository.statuses(head), within=60, what="the status is set")
        assert says(f"[All of it on one page]({pages}/pulls/{number})")
        assert "CapacityBuffer/default/api" in daemon.fetch(f"/pulls/{number}")
        # Only main has this by now; merging takes none of it back.
        repository.git("checkout", "--quiet", "main")
        repository.publish("main", {"late.yaml": buffer("late", 7)})
        repository.git("checkout", "--quiet", "more")
        repository.publish("more", {"api.yaml": buffer("api", 6)})
        eventually(lambda: says("absent → 6"), within=60, what="the daemon follows the pull request")
        assert not says("→ absent")

        other = re.sub(r"\W", "-", repository.name)
        theirs = repository.gitea.add_user(other)
        path = f"/repos/{repository.name}/collaborators/{other}"
        repository.gitea.api("PUT", path, {"permission": "read"})
        repository.gitea.api("POST", f"/repos/{repository.name}/forks", {"name": "fork"}, token=theirs)
        fork = repository.gitea.git_url(f"{other}/fork").replace("://", f"://{other}:{theirs}@")
        repository.git("checkout", "--quiet", "-b", "evil", "main")
        files = {"templates/nodeclaim.yaml.j2": "{{ 1 / 0 }}\n", "evil.yaml": buffer("evil", 9)}
        commit = repository.publish("evil", files, to=fork)
        number = repository.open_pull_request("evil", head=f"{other}:evil", token=theirs)
        eventually(lambda: says("absent → 9"), within=60, what="the daemon reports on the pull request of a fork")
        assert not says("template-failed")
        eventually(lambda: "headroom/plan" in repository.statuses(commit), within=30, what="the commit has a status")
        assert repository.statuses(commit)["headroom/plan"]["status"] == "warning", "its template was not judged"


# Propose mode: a branch of rendered manifests and one pull request, opened, kept up to date, and closed.


def proposed(repository: GiteaRepository) -> dict[str, Any]:
    """What the branch has in its folder, by file."""
    repository.git("fetch", "--quiet", "--prune", "origin")
    listed = repository.git("ls-tree", "-r", "--name-only", f"origin/{BRANCH}", "--", "rendered/").splitlines()
    return {
        name.removeprefix("rendered/"): yaml.safe_load(repository.git("show", f"origin/{BRANCH}:{name}"))
        for name in listed
    }


def merge_by_hand(repository: GiteaRepository) -> None:
    """What is proposed, as a commit on main."""
    repository.git("fetch", "--quiet", "origin")
    repository.git("checkout", "--quiet", "main")
    repository.git("checkout", "--quiet", f"origin/{BRANCH}", "--", "rendered")
    repository.git("commit", "--quiet", "--message", "Merged by hand")
    repository.git("push", "--quiet", "origin", "main")


def is_open_for(repository: GiteaRepository, commit: str, *, beside: int = 0) -> bool:
    """Whether a pull request for the commit is open, beside so many that are closed."""
    pulls = repository.pull_requests()
    titles = [pull["title"] for pull in pulls if pull["state"] == "open"]
    return len(pulls) == 1 + beside and [title.endswith(f"main@{commit[:12]}") for title in titles] == [True]


def test_a_proposal_is_opened_updated_and_closed_and_nothing_is_written_to_the_cluster(
    repository: GiteaRepository, tmp_path: Path
) -> None:
    moved = {"west/pools.yaml": NODE_POOL, "west/web.yaml": buffer("web", 3), "pools.yaml": None, "web.yaml": None}
    first = repository.publish("main", moved)
    often = {"forge_interval": "1s", "passes_interval": "3s"}
    daemon = GiteaDaemon(repository, tmp_path, path="west", proposal_branch=BRANCH, **often)
    add_webhook(repository, daemon)
    with daemon:
        eventually(lambda: is_open_for(repository, first), within=60, what="a pull request is opened")
        documents = proposed(repository)
        assert {"capacitybuffer.default.web.yaml", "nodepool.general.yaml"} <= set(documents)
        claims = [document for name, document in documents.items() if name.startswith("nodeclaim.")]
        assert not claims  # their NodePool is not in the cluster yet: its uid and hash are not known
        (body,) = (pull["body"] for pull in repository.pull_requests())
        assert re.search(
            r"NodeClaim/\S+ is planned and has no document yet: it waits until NodePool general is applied", body
        )
        assert f"Headroom-Source: {first}" in repository.git("log", "-1", "--format=%B", f"origin/{BRANCH}")

        second = repository.publish("main", {"west/web.yaml": buffer("web", 9)})
        eventually(lambda: is_open_for(repository, second), within=60, what="the pull request is updated")
        assert proposed(repository)["capacitybuffer.default.web.yaml"]["spec"]["replicas"] == 9
        assert repository.git("rev-parse", f"origin/{BRANCH}~1") == second
        assert daemon.metric('headroom_writes_total{action="apply",kind="NodePool",outcome="applied"} 1.0') is False

        number = repository.pull_requests()[0]["number"]
        path = f"/repos/{repository.name}/pulls/{number}"
        repository.gitea.api("PATCH", path, {"state": "closed"})
        repository.git("push", "--quiet", "origin", f":{BRANCH}")
        passes = daemon.passes()
        eventually(lambda: daemon.passes() > passes + 1, within=30, what="further passes are made")
        assert [pull["state"] for pull in repository.pull_requests()] == ["closed"]
        assert not repository.git("ls-remote", "origin", f"refs/heads/{BRANCH}"), "nor is its branch made again"

        third = repository.publish("main", {"west/web.yaml": buffer("web", 4)})
        anew = "a later commit is proposed all the same"
        eventually(lambda: is_open_for(repository, third, beside=1), within=60, what=anew)
        rendered = {f"rendered/{name}": yaml.safe_dump(document) for name, document in proposed(repository).items()}
        assert rendered
        merge_by_hand(repository)

        def all_closed() -> bool:
            return {pull["state"] for pull in repository.pull_requests()} == {"closed"}

        eventually(all_closed, within=60, what="there is nothing left to propose")
        assert repository.pull_requests()[0]["title"].endswith("(withdrawn, since nothing is left to propose)")
        eventually(
            lambda: not repository.git("ls-remote", "origin", f"refs/heads/{BRANCH}"), within=30, what="its branch goes"
        )
