"""The name of a cluster in reports, so that reports about several clusters can be distinguished."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from reconciler.ports import Cluster
from reconciler.report.words import moment
from reconciler.settings.settings import Settings
from reconciler.wiring.published_snapshot import PublishedCluster, manifests_folder


@dataclass(frozen=True, slots=True)
class ReportedCluster:
    """name: for titles. snapshot: in words, the published snapshot that is planned with; "" for any other cluster."""

    name: str
    snapshot: str = ""


def reported_cluster(cluster: Cluster, settings: Settings) -> ReportedCluster:
    """The cluster's name. One without a name gets that of its manifests' folder: `clusters/production` is `production`."""
    if isinstance(cluster, PublishedCluster):
        of = f" of {cluster.folder}" if cluster.folder else ""
        snapshot = f"planned on the snapshot{of} as of {moment(cluster.taken, UTC)}"
        return ReportedCluster(_last(cluster.folder) or _repository(settings) or cluster.branch, snapshot)
    if cluster.name == "in-cluster":
        return ReportedCluster(_last(manifests_folder(settings)) or cluster.name)
    return ReportedCluster(cluster.name)


def _last(folder: str) -> str:
    return folder.rpartition("/")[2]


def _repository(settings: Settings) -> str:
    """The last part of the repository's URL or folder: `git@git.example:platform/capacity.git` is `capacity`."""
    written = settings.repository or "."
    place = str(Path(written).resolve()) if Path(written).is_dir() else written
    return re.split("[/:]", place.rstrip("/"))[-1].removesuffix(".git")
