"""What reports call a cluster that has no name of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.snapshot.files import Snapshot, SnapshotCluster
from reconciler.settings.settings import Settings
from reconciler.wiring.pages import ReportedCluster, reported_cluster
from reconciler.wiring.repository import PublishedCluster


@pytest.mark.parametrize(
    ("name", "path", "title"),
    [
        ("in-cluster", "clusters/production", "production"),
        ("in-cluster", "./clusters/production/", "production"),
        ("in-cluster", "", "in-cluster"),
        ("kubeconfig:staging", "clusters/production", "kubeconfig:staging"),
    ],
)
def test_the_folder_of_the_manifests_names_it(name: str, path: str, title: str) -> None:
    """It was `in-cluster` for the daemon of every cluster."""
    found = reported_cluster(SnapshotCluster(name, Snapshot), Settings(path=path))
    assert found == ReportedCluster(title)


@pytest.mark.parametrize(
    ("repository", "title"),
    [
        ("https://git.example/platform/capacity.git", "capacity"),
        ("git@git.example:capacity.git", "capacity"),
        ("", Path.cwd().name),
    ],
)
def test_a_published_snapshot_of_a_whole_repository_has_the_repositorys_name(repository: str, title: str) -> None:
    """It was that of the branch, `headroom/snapshot`, for every repository."""
    taken = datetime(2026, 11, 23, tzinfo=UTC)
    cluster = PublishedCluster({}, InventoryParent(), taken=taken, folder="", branch="headroom/snapshot")
    found = reported_cluster(cluster, Settings(repository=repository))
    assert found == ReportedCluster(title, "planned on the snapshot as of 2026-11-23 00:00 UTC")
