"""What reports call a cluster that has no name of its own."""

from __future__ import annotations

import pytest

from reconciler.cluster.snapshot.cluster import SnapshotCluster
from reconciler.cluster.snapshot.files import Snapshot
from reconciler.settings import Settings
from reconciler.wiring.reported_cluster import ReportedCluster, reported_cluster


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
