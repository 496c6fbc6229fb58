"""The daemon's snapshot on a real forge: pushed with its token, and planned on by a CI job that knows no cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.controlplane import eventually
from tests.controlplane.gitea import Gitea
from tests.integration.gitea_daemon import GiteaDaemon
from tests.integration.gitea_repository import NODE_POOL, GiteaRepository, buffer

pytestmark = pytest.mark.e2e
BRANCH = "headroom/snapshot"
FOLDER = "clusters/production"


@pytest.fixture
def repository(gitea: Gitea, tmp_path: Path) -> GiteaRepository:
    return GiteaRepository(gitea, re.sub(r"\W+", "-", tmp_path.name), tmp_path / "clone")


def test_a_job_without_a_cluster_plans_and_comments_on_what_the_daemon_has_published(
    repository: GiteaRepository, tmp_path: Path
) -> None:
    manifests = {f"{FOLDER}/pools.yaml": NODE_POOL, f"{FOLDER}/web.yaml": buffer("web", 3)}
    repository.push("main", {**manifests, "pools.yaml": None, "web.yaml": None})
    settings = {"PATH": FOLDER, "SNAPSHOT_PUBLISH": "true", "SNAPSHOT_INTERVAL": "1s"}
    with GiteaDaemon(repository, tmp_path, **settings) as daemon:

        def has_nodes() -> bool:
            repository.git("fetch", "--quiet", "origin")
            names = repository.git("ls-tree", "-r", "--name-only", f"origin/{BRANCH}").splitlines()
            return "nodes.json" in names

        eventually(lambda: BRANCH in repository.git("ls-remote", "--heads", "origin"), within=60, what="it is pushed")
        eventually(has_nodes, within=60, what="a later one has the nodes that the daemon made since")
        eventually(lambda: daemon.metric_above("headroom_snapshots_total", "unchanged"), within=60, what="it rests")
    assert repository.git("rev-list", "--count", f"origin/{BRANCH}") == "1"
    # A job's clone has the branch that it runs for, and no other.
    repository.git("update-ref", "-d", f"refs/remotes/origin/{BRANCH}")

    repository.push("more", {f"{FOLDER}/api.yaml": buffer("api", 5)}, start="main")
    number = repository.open_pull_request("more")
    words = ("diff", "origin/main..HEAD", "--path", FOLDER, "--post", "gitea", "--pull-request", str(number))
    done = repository.headroom(*words)
    printed, errors = done.communicate(timeout=120)
    assert done.returncode == 1, errors
    assert re.search(rf"planned on published:{BRANCH}, as of .* UTC: \d minutes? old", errors)
    assert repository.gitea.token not in errors
    assert "absent → 5" in printed
    (comment,) = repository.comments(number)
    assert "## production: what merging changes\n" in comment["body"]
    told = r", planned on the snapshot of clusters/production as of \d{4}-\d\d-\d\d \d\d:\d\d UTC\n"
    assert re.search(told, comment["body"])
    assert f"origin/{BRANCH}" not in repository.git("branch", "--remotes")
