"""Settings of the forge: reports on pull requests, webhooks, proposals instead of writes, and snapshots for CI."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class ForgeSettings:
    """Where pull requests are. kind: github, gitlab, gitea, or "" for none. repository: `OWNER/NAME`. api: its address, "" for the
    public one's. token_file: a path; without one the token is in HEADROOM_FORGE_TOKEN.

    reports: whether the daemon reports on every open pull request what merging would change. reports_above: USD over 30 days. pages: where
    people reach the daemon's pages, "" for nowhere. interval: how often it looks.
    """

    kind: str = ""
    repository: str = ""
    api: str = ""
    token_file: str = ""
    reports: bool = False
    reports_above: float = 0.0
    pages: str = ""
    interval: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Where the forge announces pushes and pull requests. listen: the address, "" for none. secret_file: the secret that signs them;
    without a file the secret is in HEADROOM_WEBHOOK_SECRET."""

    listen: str = ""
    secret_file: str = ""


@dataclass(frozen=True, slots=True)
class ProposalSettings:
    """Instead of writing to the cluster, headroom keeps a pull request with what it would write. Needs `forge`.

    branch: the branch for the rendered manifests, "" to write to the cluster. base: the branch it is merged into. folder: the folder
    for them.
    """

    branch: str = ""
    base: str = "main"
    folder: str = "rendered"


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """A snapshot of the cluster on a branch of the repository, for CI that has no access to the cluster.

    publish: whether the daemon pushes it. branch: for nothing else; `headroom diff` looks there. interval: the least time between two.
    """

    publish: bool = False
    branch: str = "headroom/snapshot"
    interval: timedelta = timedelta(minutes=10)
