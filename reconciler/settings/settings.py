"""Every setting: its name, default and meaning.

`config/headroom.yaml` shows each with its default, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from datetime import timedelta
from functools import cache
from typing import Any, get_type_hints

from reconciler.model.buffers import Dialect
from reconciler.model.changes import Drift
from reconciler.model.provisioning_requests import RequestRules
from reconciler.model.rules import BufferRules, Caps, PlacementRules
from reconciler.source.credentials import GitOptions


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


@dataclass(frozen=True, slots=True)
class PassSettings:
    """When passes are made.

    interval: the time between passes if nothing changes. quiet: how long there must be no change before a pass starts.
    quiet_at_most: a pass starts this long after the first change, even if changes continue.
    """

    interval: timedelta = timedelta(minutes=5)
    quiet: timedelta = timedelta(seconds=2)
    quiet_at_most: timedelta = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class InventorySettings:
    """The ConfigMap that lists what headroom applied; one for each daemon on a cluster."""

    namespace: str = "headroom-system"
    name: str = "headroom"


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """How fast the embedded cluster is."""

    launch_delay: timedelta = timedelta(seconds=2)
    register_delay: timedelta = timedelta(seconds=3)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """form: console or json. level: debug, info, warning or error."""

    form: str = "console"
    level: str = "info"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings.

    repository: path or URL. revision: branch, tag or commit ("" is the working tree, or a URL's default branch).
    path: folder inside it. cluster, catalog: as the flags of those names. kubeconfig: a file, such as a mounted Secret ("" is KUBECONFIG or ~/.kube/config). dialect: karpenter or ca.
    templates: the folder inside the repository with its own templates. drift: whether to correct or to report changes made in the
    cluster. listen: the address of the pages, health and metrics. allowed_hosts: more names of the host for requests to it, with commas
    between. dashboard: an address that the pages link to. suspend: plan but never write. allow_empty: accept an empty repository, and prune what it no longer declares.
    """

    repository: str = ""
    revision: str = ""
    path: str = ""
    cluster: str = ""
    kubeconfig: str = ""
    catalog: str = ""
    dialect: Dialect = Dialect.KARPENTER
    templates: str = "templates"
    listen: str = "127.0.0.1:8080"
    allowed_hosts: str = ""
    dashboard: str = ""
    leader_election: bool = False
    suspend: bool = False
    allow_empty: bool = False
    drift: Drift = Drift.CORRECT
    git: GitOptions = field(default_factory=GitOptions)
    forge: ForgeSettings = field(default_factory=ForgeSettings)
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    proposal: ProposalSettings = field(default_factory=ProposalSettings)
    snapshot: SnapshotSettings = field(default_factory=SnapshotSettings)
    passes: PassSettings = field(default_factory=PassSettings)
    inventory: InventorySettings = field(default_factory=InventorySettings)
    caps: Caps = field(default_factory=Caps)
    buffers: BufferRules = field(default_factory=BufferRules)
    requests: RequestRules = field(default_factory=RequestRules)
    placement: PlacementRules = field(default_factory=PlacementRules)
    embedded: EmbeddedSettings = field(default_factory=EmbeddedSettings)
    logs: LogSettings = field(default_factory=LogSettings)


@cache
def setting_fields() -> Mapping[str, Field[Any]]:
    """Every setting by its dotted name, in order."""
    return dict(_leaves(Settings))


def _leaves(owner: type[Any], prefix: str = "") -> Iterator[tuple[str, Field[Any]]]:
    hints = get_type_hints(owner)
    for item in fields(owner):
        kind = hints[item.name]
        if is_dataclass(kind) and isinstance(kind, type):
            yield from _leaves(kind, f"{prefix}{item.name}.")
        else:
            yield prefix + item.name, item


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """One cluster. name: for pages, logs and metrics, unique in the process; "" for the only one."""

    name: str
    settings: Settings
