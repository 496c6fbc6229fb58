"""Propose mode on a real forge: a branch of rendered manifests and one pull request, opened, kept up to date, and closed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import eventually
from tests.controlplane.gitea import Gitea
from tests.controlplane.ports import free_port
from tests.integration.gitea_daemon import GiteaDaemon
from tests.integration.gitea_repository import NODE_POOL, GiteaRepository, buffer
from tests.integration.test_gitea_daemon import SECRET, add_webhook

pytestmark = pytest.mark.e2e
BRANCH = "headroom/production"


@pytest.fixture
def repository(gitea: Gitea, tmp_path: Path) -> GiteaRepository:
    return GiteaRepository(gitea, tmp_path)


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
    port = free_port()
    add_webhook(repository, port, SECRET)
    settings = {
        "PATH": "west",
        "PROPOSAL_BRANCH": BRANCH,
        "WEBHOOKS_LISTEN": f"127.0.0.1:{port}",
        "WEBHOOK_SECRET": SECRET,
        "FORGE_INTERVAL": "1s",
        "PASSES_INTERVAL": "3s",
    }
    with GiteaDaemon(repository, tmp_path, **settings) as daemon:
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
        passes = daemon.passes()
        eventually(lambda: daemon.passes() > passes + 1, within=30, what="further passes are made")
        assert [pull["state"] for pull in repository.pull_requests()] == ["closed"]

        third = repository.publish("main", {"west/web.yaml": buffer("web", 4)})
        anew = "a later commit is proposed all the same"
        eventually(lambda: is_open_for(repository, third, beside=1), within=60, what=anew)
        rendered = {f"rendered/{name}": yaml.safe_dump(document) for name, document in proposed(repository).items()}
        assert rendered
        merge_by_hand(repository)

        def all_closed() -> bool:
            return {pull["state"] for pull in repository.pull_requests()} == {"closed"}

        eventually(all_closed, within=60, what="there is nothing left to propose")
        repository.git("fetch", "--quiet", "--prune", "origin")
        assert f"origin/{BRANCH}" not in repository.git("branch", "--remotes")
