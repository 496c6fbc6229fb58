"""Every setting with its default. Those that plans go by stand in `model/rules.py`, and those of Git in `source/credentials.py`.

`config/headroom.yaml` says what each means. It shows the default too, and a test compares the two.
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
    """Where pull requests are, and what the daemon says on them."""

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
    """Where the forge announces pushes and pull requests."""

    listen: str = ""
    secret_file: str = ""


@dataclass(frozen=True, slots=True)
class ProposalSettings:
    """Instead of writing to the cluster, headroom keeps a pull request with what it would write. Needs `forge`."""

    branch: str = ""
    base: str = "main"
    folder: str = "rendered"


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """A snapshot of the cluster on a branch of the repository, for CI that has no access to the cluster."""

    publish: bool = False
    branch: str = "headroom/snapshot"
    interval: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class PassSettings:
    """When passes are made."""

    interval: timedelta = timedelta(minutes=5)
    quiet: timedelta = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class InventorySettings:
    """The ConfigMap that lists what headroom applied; one for each daemon on a cluster."""

    namespace: str = "headroom-system"
    name: str = "headroom"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged, and how."""

    form: str = "console"
    level: str = "info"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings."""

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
