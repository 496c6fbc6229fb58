"""What reports need beside what they say: the packaged pages, and the cluster's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from reconciler.files import packaged_texts
from reconciler.ports import Cluster
from reconciler.render.environment import MOST_PAGE, Templates
from reconciler.report.escaping import PAGE_FILTERS, page_value
from reconciler.report.plan.rows import trimmed
from reconciler.report.words import moment
from reconciler.settings.settings import Settings
from reconciler.wiring.repository import PublishedCluster, manifests_folder

MOST_BYTES = 60_000
"""Of a Markdown report: GitHub takes 65,536 characters in a comment, and bytes are never fewer."""
_ROWS = (60, 30, 15, 8, 4, 2, 1, 0)
_MARKDOWN = "report.md.j2"


def rendered_page(name: str, page: Mapping[str, object]) -> str:
    """One of the packaged pages: `report.html.j2`, `schedule.html.j2`, … A Markdown report keeps below `MOST_BYTES`. Its lists are
    shortened until it does, and say by how much. The summary stays whole, and so does every other page."""
    templates = Templates(packaged_texts("templates", suffix=".j2"), filters=PAGE_FILTERS, finalize=page_value)
    if name != _MARKDOWN:
        return templates.render(name, page, most_output=MOST_PAGE)
    text = ""
    for most in _ROWS:
        text = templates.render(name, trimmed(page, most), most_output=MOST_PAGE)
        if len(text.encode()) < MOST_BYTES:
            break
    return text


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
