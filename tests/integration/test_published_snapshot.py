"""The daemon's snapshot on a branch of the repository: what is pushed, what never is, and that `diff` finds it in CI."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.errors import Invalid
from reconciler.settings.settings import ProposalSettings, Settings, SnapshotSettings
from reconciler.wiring import snapshot_publisher
from reconciler.wiring.snapshot_publisher import SnapshotPublisher
from tests.fakes.clock import ManualClock
from tests.fakes.embedded import workload
from tests.fakes.played_cluster import PlayedCluster
from tests.git_repository import GitRepository
from tests.headroom_command import headroom_at
from tests.manifests import BY_DEPLOYMENT, buffer

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
BRANCH = "headroom/snapshot"
SECRET = "hunter2"
DEPLOYMENT = workload(
    "web",
    replicas=40,
    cpu="1",
    container={"image": f"registry.example.com/{SECRET}:1", "env": [{"name": "PASSWORD", "value": SECRET}]},
)
DEPLOYMENT["metadata"] |= {
    "annotations": {"vault.example.com/role": SECRET, "headroom.dev/note": f"password={SECRET}"},
    "labels": {"example.com/token": SECRET},
}


class Published:
    """A repository with a commit on main, a cluster with a Deployment of 40 pods, and the daemon's publisher between them."""

    def __init__(self, folder: Path) -> None:
        self.repository = GitRepository(folder)
        self.repository.push({"pools.yaml": (ROOT / "config" / "scaffold" / "nodepools.yaml").read_text()})
        self.clock = ManualClock(NOW)
        self.cluster = PlayedCluster(self.clock, real_time=False, makes_namespaces=True)
        self.cluster.apply(DEPLOYMENT)

    def publisher(self, *, path: str = "", branch: str = BRANCH, **settings: Any) -> SnapshotPublisher:
        snapshot = SnapshotSettings(publish=True, branch=branch)
        chosen = Settings(**{"repository": self.repository.url, "path": path, "snapshot": snapshot, **settings})
        return SnapshotPublisher(chosen, self.cluster, self.clock)

    def tip(self, branch: str = BRANCH) -> str:
        return self.repository.git("rev-parse", branch, at=self.repository.remote)

    def clone(self) -> Path:
        """As a CI job checks it out, with a branch that adds a buffer of a tenth of the Deployment."""
        folder = self.repository.work.parent / "clone"
        self.repository.git("clone", "--quiet", "--single-branch", self.repository.url, str(folder), at=folder.parent)
        size = "percentage: 10, provisioningStrategy: buffer.x-k8s.io/active-capacity"
        (folder / "buffer.yaml").write_text(buffer("web", size, of=BY_DEPLOYMENT))
        self.repository.git("add", ".", at=folder)
        self.repository.git("commit", "--quiet", "--message=A buffer", at=folder)
        return folder


@pytest.fixture
def published(tmp_path: Path) -> Published:
    return Published(tmp_path)


def diff(folder: Path, *words: str, now: datetime = NOW) -> subprocess.CompletedProcess[str]:
    return headroom(folder, "diff", "origin/main..HEAD", *words, now=now)


def headroom(folder: Path, *words: str, now: datetime = NOW) -> subprocess.CompletedProcess[str]:
    return headroom_at(folder, *words, f"--now={now.isoformat()}", HOME=str(folder.parent))


def test_a_snapshot_is_one_commit_that_is_replaced_only_when_the_cluster_differs(published: Published) -> None:
    publisher = published.publisher()
    assert publisher.publish() == "published"
    first = published.tip()
    published.clock.advance(timedelta(hours=3))
    assert publisher.publish() == "unchanged"
    assert published.tip() == first

    published.cluster.apply({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 50}})
    assert published.publisher().publish() == "published"  # by another process: nothing is remembered
    assert published.tip() != first
    assert published.repository.git("rev-list", "--count", BRANCH, at=published.repository.remote) == "1"
    published.clock.advance(timedelta(hours=24))
    assert publisher.publish() == "published"  # so that its age tells whether the daemon runs
    message = published.repository.git("log", "-1", "--format=%B", BRANCH, at=published.repository.remote)
    assert "Headroom-Snapshot: 2026-11-23T15:00:00Z" in message


def test_nothing_secret_is_in_it(published: Published) -> None:
    published.publisher().publish()
    remote = published.repository.remote
    names = published.repository.git("ls-tree", "--name-only", BRANCH, at=remote).split()
    assert {"workloads.json", "pods.json", "instance_types.json"} <= set(names)
    texts = {name: published.repository.git("show", f"{BRANCH}:{name}", at=remote) for name in names}
    assert '"replicas": 40' in texts["workloads.json"]
    assert [name for name, text in texts.items() if SECRET in text] == []


def test_diff_plans_on_it_where_there_is_no_cluster_and_leaves_the_clone_as_it_was(published: Published) -> None:
    published.publisher().publish()
    folder = published.clone()
    before = {path: path.stat().st_mtime_ns for path in (folder / ".git").rglob("*") if path.is_file()}
    done = diff(folder, now=NOW + timedelta(minutes=12))
    assert done.returncode == 1, done.stderr
    assert f"planned on published:{BRANCH}, as of 2026-11-22 12:00 UTC: 12m old" in done.stderr
    assert "absent → 4" in done.stdout  # a tenth of the 40 pods that only the snapshot knows
    after = {path: path.stat().st_mtime_ns for path in (folder / ".git").rglob("*") if path.is_file()}
    assert {path for path in after if path.name != "index"} == {path for path in before if path.name != "index"}
    assert not [path for path in after if "refs" in path.parts and after[path] != before[path]]


def test_a_demand_is_explained_on_it(published: Published) -> None:
    published.publisher().publish()
    done = headroom(published.clone(), "explain", "web")
    assert "size: 4 chunks" in done.stdout, done.stderr
    assert "planned on published:headroom/snapshot" in done.stderr


def test_it_is_named_for_other_clusters_and_told_of_when_it_is_old(published: Published) -> None:
    published.publisher(branch="headroom/eu", path="clusters/production").publish()
    folder = published.clone()
    words = ("--cluster", "published:headroom/eu", "--output", "markdown")
    done = diff(folder, *words, now=NOW + timedelta(days=3))
    assert done.returncode == 1, done.stderr
    assert "72h old\n  the daemon renews it every day: look whether it runs" in done.stderr
    assert done.stdout.startswith("## production: what merging changes\n")
    told = "planned on the snapshot of clusters/production as of 2026-11-22 12:00 UTC"
    assert f", 2026-11-25 12:00 UTC, {told}\n" in done.stdout
    for output, title in (("markdown", "## Capacity plan for production\n"), ("text", "Plan for production at ")):
        planned = headroom(folder, "plan", "--cluster", "published:headroom/eu", "--output", output)
        assert planned.stdout.startswith(title), planned.stderr
        assert told in " ".join(planned.stdout.split())

    remote = diff(folder, *words, "--repo", published.repository.url)
    assert "has no branch or tag 'origin/main'" in remote.stderr  # a URL has no such name, but its snapshot was read
    assert "0s old" in remote.stderr


def test_what_was_fetched_last_counts_where_origin_cannot_be_asked(published: Published) -> None:
    published.publisher().publish()
    folder = published.clone()
    published.repository.git("fetch", "--quiet", "origin", f"+{BRANCH}:refs/remotes/origin/{BRANCH}", at=folder)
    published.repository.remote.rename(published.repository.remote.with_name("away"))
    assert "absent → 4" in diff(folder).stdout
    published.repository.git("update-ref", "-d", f"refs/remotes/origin/{BRANCH}", at=folder)
    done = diff(folder)
    assert done.returncode == 2
    assert "there is no cluster here" in done.stderr
    assert "; whether a snapshot is published is unknown\n  because" in done.stderr
    assert "does not appear to be a git repository" in done.stderr


def test_a_snapshot_of_another_folder_or_of_none_is_not_planned_on(published: Published) -> None:
    folder = published.clone()
    assert "there is no cluster here" in diff(folder).stderr
    done = diff(folder, "--cluster", "published")
    assert "no snapshot is published: the repository has no branch 'headroom/snapshot'" in done.stderr
    published.publisher(path="clusters/staging").publish()
    done = diff(folder, "--path", "clusters/production")
    assert done.returncode == 2
    assert "is of the cluster that clusters/staging is for" in done.stderr
    assert "give --path clusters/staging, or name the branch of the right cluster" in done.stderr
    published.publisher(branch="headroom/whole").publish()
    (folder / "headroom.yaml").write_text("snapshot: {branch: headroom/whole}\n")
    done = diff(folder, "--path", "clusters/production", "--config", "headroom.yaml")
    assert "leave --path out, or name the branch" in done.stderr
    assert diff(folder, "--path", ".", "--config", "headroom.yaml").returncode == 1
    assert "has no snapshot that headroom has published" in diff(folder, "--cluster", "published:main").stderr


def test_a_branch_of_somebody_elses_is_never_written(published: Published) -> None:
    main = published.tip("main")
    with pytest.raises(Invalid, match="branch 'main' has no snapshot, which would be lost"):
        published.publisher(branch="main", proposal=ProposalSettings(base="release")).publish()
    assert published.tip("main") == main
    published.publisher(path="clusters/staging").publish()
    with pytest.raises(Invalid, match="has the snapshot of clusters/staging, which would be lost"):
        published.publisher(path="clusters/production").publish()
    for wrong in ({"revision": BRANCH}, {"proposal": ProposalSettings(branch=BRANCH)}, {"branch": ""}):
        with pytest.raises(Invalid, match="is not a branch that headroom may use"):
            published.publisher(**wrong)
    with pytest.raises(Invalid, match=r"needs a repository to push to: /.* is a path") as refused:
        published.publisher(repository=str(published.repository.work))
    assert refused.value.hint.startswith(f"write {published.repository.work.as_uri()}, or")
    with pytest.raises(Invalid, match=r"needs a repository to push to$"):
        published.publisher(repository="")


def test_one_that_is_too_large_is_not_pushed(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_publisher, "MOST_BYTES", 1000)
    with pytest.raises(Invalid, match="the snapshot is not published: it has"):
        published.publisher().publish()
    assert BRANCH not in published.repository.git("branch", at=published.repository.remote)
