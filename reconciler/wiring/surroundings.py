"""Finds what a first repository is written for: the settings' cluster, and the remote of its folder."""

from __future__ import annotations

from pathlib import Path

from reconciler.clocks import SystemClock
from reconciler.model.view import ClusterView
from reconciler.settings.settings import Settings
from reconciler.wiring.cluster import open_cluster


def seen_cluster(settings: Settings) -> tuple[str, ClusterView]:
    """The name and one view of the cluster; nothing is written. Raises `NoClusterHere`, and what the cluster's adapter raises."""
    cluster = open_cluster(settings, SystemClock())
    try:
        cluster.start(lambda: None)
        return cluster.name, cluster.view()
    finally:
        cluster.close()


def remote_of(folder: Path) -> str | None:
    """The URL of the remote `origin` of the repository with this root folder; None if there is none."""
    from reconciler.source.origin import origin_of

    return origin_of(folder)
