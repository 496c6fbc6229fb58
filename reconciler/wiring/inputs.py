"""What a pass reads, as the settings name it: the repository, the cluster, its catalog, and the snapshot that the daemon has published for CI."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from reconciler.clocks import FixedClock
from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.connection import Count, uncounted
from reconciler.cluster.snapshot.files import SnapshotCluster, snapshot_at, snapshot_of
from reconciler.model.declared import SourceTree
from reconciler.model.errors import Invalid, Misused, Stalled
from reconciler.model.quantity import time_text
from reconciler.ports import Catalog, Clock, Cluster, Source
from reconciler.report.words import moment
from reconciler.settings.settings import Settings
from reconciler.source.selection import Scope

if TYPE_CHECKING:
    from reconciler.daemon.ending import Watchdog
    from reconciler.model.nodes import InstanceType
    from reconciler.model.view import Manifest
    from reconciler.source.credentials import GitOptions
    from reconciler.source.state import LatestTree


def open_catalog(settings: Settings, cluster: Cluster, clock: Clock) -> Catalog:
    """The catalog that `catalog` names; else the cluster's own (a snapshot's, the embedded one's), else what is observed."""
    choice = settings.catalog
    kind, _, rest = choice.partition(":")
    if kind == "karpenter-metrics":
        from reconciler.catalog.karpenter_metrics import KarpenterMetricsCatalog

        if not rest:
            hint = "write karpenter-metrics:http://karpenter.kube-system:8080/metrics"
            raise Misused(f"--catalog {choice} names no address", hint=hint)
        return KarpenterMetricsCatalog(rest, clock=clock)
    if choice in {"", "observed"}:
        from reconciler.catalog.observed import ClusterCatalog, ObservedCatalog

        return ObservedCatalog() if choice else ClusterCatalog(cluster.name)
    from reconciler.catalog.file import FileCatalog

    return FileCatalog(choice)


CLUSTER_CHOICES = "kubeconfig[:CONTEXT], in-cluster, snapshot:PATH, published[:BRANCH] or embedded[:SNAPSHOT]"
_SECONDS_TO_ASK = 5.0


class NoClusterHere(Invalid):
    """No cluster was named, and none was found."""


def open_cluster(settings: Settings, clock: Clock, count: Count = uncounted, *, checked: bool = True) -> Cluster:
    """The cluster that `cluster` names; without one, the cluster that is found, but never the embedded one.

    count: called for every request to an API server (method, resource, HTTP status). checked: whether `Invalid` is raised for one that
    there are no credentials for; otherwise they are looked for until they are there.
    """
    choice = settings.cluster or ("kubeconfig" if settings.kubeconfig else _what_is_there())
    kind, _, rest = choice.partition(":")
    inventory = inventory_parent(settings)
    if kind == "snapshot" and rest:
        return snapshot_at(rest, inventory)
    if kind == "published":
        return _published_cluster(settings, rest)
    if kind == "embedded":
        return _embedded_cluster(settings, clock, rest)
    if choice != "in-cluster" and kind != "kubeconfig":
        raise Misused(f"--cluster {choice} is not a cluster", hint=f"write {CLUSTER_CHOICES}")
    from reconciler.cluster.access import in_cluster_access, kubeconfig_access
    from reconciler.cluster.kubernetes import KubernetesCluster

    of_file = partial(kubeconfig_access, rest or None, settings.kubeconfig)
    access = in_cluster_access if choice == "in-cluster" else of_file
    if checked:
        access()
    return KubernetesCluster(f"{kind}:{rest}" if rest else kind, access, inventory=inventory, count=count)


def open_cluster_or_published(settings: Settings, clock: Clock) -> Cluster:
    """As `open_cluster`; where no cluster is named and none is there, the snapshot that the daemon has published."""
    try:
        return open_cluster(settings, clock)
    except NoClusterHere as error:
        hint = f"name one with --cluster: {CLUSTER_CHOICES}"
        try:
            snapshot = published_cluster(settings)
        except Stalled as failure:
            message = f"{error.message}; whether a snapshot is published is unknown"
            raise NoClusterHere(message, hint=hint, causes=(failure,)) from error
        if snapshot is None:
            raise NoClusterHere(error.message, hint=hint) from error
        return snapshot


def definitions_there(names: Iterable[str]) -> dict[str, Manifest]:
    """By name, those of these CustomResourceDefinitions that the cluster has which is here; none without a cluster.

    Raises `Transient` or `Invalid` if the cluster does not say.
    """
    from reconciler.cluster.access import in_cluster_access, kubeconfig_access
    from reconciler.cluster.connection import Connection

    try:
        choice = _what_is_there()
    except NoClusterHere:
        return {}
    connection = Connection(in_cluster_access if choice == "in-cluster" else kubeconfig_access, timeout=_SECONDS_TO_ASK)
    definitions: dict[str, Manifest] = {}
    try:
        for name in names:
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
            answer = connection.request("GET", path, resource="customresourcedefinitions")
            if answer.ok:
                definitions[name] = json.loads(answer.data)
            elif answer.status != HTTPStatus.NOT_FOUND:
                raise Invalid(answer.refusal)
    finally:
        connection.close()
    return definitions


def _published_cluster(settings: Settings, branch: str) -> Cluster:
    snapshot = published_cluster(settings, branch)
    if snapshot is None:
        raise Invalid(
            f"no snapshot is published: the repository has no branch {branch or settings.snapshot.branch!r}",
            hint="set snapshot.publish for the daemon, and name the branch as it does: --cluster published:BRANCH",
        )
    return snapshot


def _embedded_cluster(settings: Settings, clock: Clock, snapshot: str) -> Cluster:
    from reconciler.cluster.embedded.cluster import EmbeddedCluster

    options: dict[str, Any] = {
        "inventory": inventory_parent(settings),
        "provisions_pending": True,
        "instance_types": _sold(settings),
    }
    if snapshot:
        return EmbeddedCluster.from_snapshot(snapshot, clock, **options)
    # A snapshot has its cluster's namespaces. An empty embedded cluster gets those of the repository.
    return EmbeddedCluster(clock, makes_namespaces=True, **options)


def _sold(settings: Settings) -> tuple[InstanceType, ...] | None:
    """What the embedded cluster launches: the types of the catalog file, so that a plan with them can come true. None: its own."""
    if settings.catalog in {"", "observed"} or settings.catalog.startswith("karpenter-metrics"):
        return None
    from reconciler.catalog.file import FileCatalog
    from reconciler.model.view import ClusterView

    return FileCatalog(settings.catalog).instance_types(ClusterView())


def inventory_parent(settings: Settings) -> InventoryParent:
    from reconciler.source.opening import place_in_repository

    place = place_in_repository(settings.repository)
    path = None if place is None else (PurePosixPath(place) / settings.path).as_posix()
    return InventoryParent(settings.inventory.namespace, settings.inventory.name, path)


def _what_is_there() -> str:
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "in-cluster"
    from reconciler.cluster.access import current_context, kubeconfig_location

    if current_context() is not None:
        return "kubeconfig"
    raise NoClusterHere(
        f"there is no cluster here: not inside one, and no current context in the kubeconfig {kubeconfig_location()}",
        hint="name one with --cluster, such as kubeconfig:CONTEXT; --help says what else this command takes",
    )


def open_source(settings: Settings, clock: Clock, name: str = "") -> Source:
    """name: of one cluster among several, whose copy of the repository is its own."""
    from reconciler.source.opening import open_source as opened

    return opened(
        settings.repository or ".",
        clock=clock,
        revision=settings.revision or None,
        scope=scope_of(settings),
        options=git_options(settings, name),
    )


def latest_tree(settings: Settings, clock: Clock, watchdog: Watchdog, name: str) -> LatestTree:
    """The repository as a daemon polls it. Which passes end is remembered beside its clone. name: as for `open_source`."""
    from reconciler.source.git import GitSource
    from reconciler.source.state import LatestTree

    source = open_source(settings, clock, name)
    passes = source.passes if isinstance(source, GitSource) else None
    tree = LatestTree(source, progress=watchdog.git_progress, passes=passes)
    watchdog.on_stuck = tree.stuck
    return tree


def repository_tree(settings: Settings, now: datetime) -> SourceTree:
    """The tree that the settings name, for a command that needs no cluster. Raises as `tree_at`."""
    from reconciler.source.opening import tree_at

    return tree_at(
        settings.repository or ".",
        settings.revision or None,
        scope_of(settings),
        clock=FixedClock(now),
        options=git_options(settings),
    )


def scope_of(settings: Settings) -> Scope:
    """The part of the repository that is read."""
    return Scope.of(settings.path, settings.templates)


def git_options(settings: Settings, name: str = "") -> GitOptions:
    git = settings.git
    return replace(git, state=Path(git.state, name)) if git.state else git


MOST_BYTES = 90 * 2**20
"""The largest snapshot in bytes. GitHub accepts no file of more than 100 MiB."""
_TAKEN = re.compile(r"^Headroom-Snapshot: (\S+)$", re.MULTILINE)
_PATH = re.compile(r"^Headroom-Path: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SnapshotNote:
    """What a snapshot's commit message records: when it was taken, and the folder of manifests that its daemon reads."""

    taken: datetime
    path: str

    @property
    def message(self) -> str:
        taken = time_text(self.taken)
        return f"Snapshot of the cluster\n\nHeadroom-Snapshot: {taken}\nHeadroom-Path: {self.path}"

    @classmethod
    def of(cls, message: str) -> SnapshotNote | None:
        """The note in a commit message; None for a commit that is not a snapshot."""
        taken, path = _TAKEN.search(message), _PATH.search(message)
        try:
            time = datetime.fromisoformat(taken[1]) if taken else None
        except ValueError:
            return None
        return None if time is None or time.tzinfo is None else cls(time, path[1].strip() if path else "")


class PublishedCluster(SnapshotCluster):
    """The snapshot on a branch."""

    def __init__(
        self, files: Mapping[str, bytes], inventory: InventoryParent, *, taken: datetime, folder: str, branch: str
    ) -> None:
        """folder: that of its manifests, "" for the whole repository."""
        name = f"published:{branch}, as of {moment(taken, UTC)}"
        super().__init__(name, partial(snapshot_of, name, files), inventory)
        self.taken = taken
        self.folder = folder
        self.branch = branch


def published_cluster(settings: Settings, branch: str = "") -> PublishedCluster | None:
    """The snapshot on a branch of the settings' repository; None where there is none. branch: "" is the settings' own.

    Raises `Invalid` for a branch that has something else, or the snapshot of another folder's cluster, and `Stalled`.
    """
    from reconciler.source.branches import read_branch

    name = branch or settings.snapshot.branch
    found = read_branch(settings.repository or ".", name, git_options(settings), most_bytes=MOST_BYTES)
    if found is None:
        return None
    note = SnapshotNote.of(found.message)
    if note is None:
        raise Invalid(
            f"branch {name!r} has no snapshot that headroom has published",
            hint="set snapshot.branch as the daemon has it, or name a cluster with --cluster",
        )
    if not branch and note.path != manifests_folder(settings):
        path = f"give --path {note.path}" if note.path else "leave --path out"
        raise Invalid(
            f"the snapshot on branch {name!r} is of the cluster that {note.path or 'the whole repository'} is for",
            hint=f"{path}, or name the branch of the right cluster: --cluster published:BRANCH",
        )
    return PublishedCluster(found.files, inventory_parent(settings), taken=note.taken, folder=note.path, branch=name)


def manifests_folder(settings: Settings) -> str:
    """The manifests' folder as a snapshot names it; "" is the whole repository."""
    folder = normpath(settings.path.strip("/"))
    return "" if folder == "." else folder


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
