"""The cluster and the catalog that the settings name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from reconciler.model.errors import Invalid, Misused, Stalled
from reconciler.ports import Catalog, Clock, Cluster
from reconciler.settings.settings import Settings


def open_catalog(settings: Settings, cluster: Cluster, clock: Clock) -> Catalog:
    """The catalog that `catalog` names; else the cluster's own (a snapshot's, the embedded one's), else what is observed."""
    choice = settings.catalog
    kind, _, rest = choice.partition(":")
    if kind == "karpenter-metrics" and rest:
        from reconciler.catalog.karpenter_metrics import KarpenterMetricsCatalog

        return KarpenterMetricsCatalog(rest, clock=clock)
    if choice in {"", "observed"}:
        from reconciler.catalog.observed import ClusterCatalog, ObservedCatalog

        return ObservedCatalog() if choice else ClusterCatalog(cluster.name)
    if kind == "karpenter-metrics":
        raise Misused(
            "--catalog karpenter-metrics needs the address of Karpenter's metrics", hint="karpenter-metrics:URL"
        )
    from reconciler.catalog.file import FileCatalog

    return FileCatalog(choice)


if TYPE_CHECKING:
    from reconciler.cluster.apply import InventoryParent
    from reconciler.model.nodes import InstanceType
    from reconciler.model.view import Manifest


CLUSTER_CHOICES = "kubeconfig[:CONTEXT], in-cluster, snapshot:PATH, published[:BRANCH] or embedded[:SNAPSHOT]"
Count = Callable[[str, str, str], None]
_SECONDS_TO_ASK = 5.0


class NoClusterHere(Invalid):
    """No cluster was named, and none was found."""


def _uncounted(_method: str, _resource: str, _code: str) -> None:
    """A one-shot command has no metrics."""


def open_cluster(settings: Settings, clock: Clock, count: Count = _uncounted, *, checked: bool = True) -> Cluster:
    """The cluster that `cluster` names; without one, the cluster that is found, but never the embedded one.

    count: called for every request to an API server (method, resource, HTTP status). checked: whether `Invalid` is raised for one that
    there are no credentials for; otherwise they are looked for until they are there.
    """
    choice = settings.cluster or ("kubeconfig" if settings.kubeconfig else _what_is_there())
    kind, _, rest = choice.partition(":")
    if kind == "snapshot" and rest:
        from reconciler.cluster.snapshot.files import snapshot_at

        return snapshot_at(rest, inventory_parent(settings))
    if kind == "published":
        return _published_cluster(settings, rest)
    if kind == "embedded":
        return _embedded_cluster(settings, clock, rest)
    if choice != "in-cluster" and kind != "kubeconfig":
        raise Misused(f"--cluster {choice} is not a cluster", hint=f"write {CLUSTER_CHOICES}")
    from reconciler.cluster.kubernetes import in_cluster, kubeconfig_cluster

    if choice == "in-cluster":
        return in_cluster(inventory=inventory_parent(settings), count=count, checked=checked)
    return kubeconfig_cluster(
        rest or None, settings.kubeconfig, inventory=inventory_parent(settings), count=count, checked=checked
    )


def open_cluster_or_published(settings: Settings, clock: Clock) -> Cluster:
    """As `open_cluster`; where no cluster is named and none is there, the snapshot that the daemon has published."""
    try:
        return open_cluster(settings, clock)
    except NoClusterHere as error:
        from reconciler.wiring.repository import published_cluster

        try:
            snapshot = published_cluster(settings, inventory_parent(settings))
        except Stalled as failure:
            message = f"{error.message}; whether a snapshot is published is unknown"
            raise NoClusterHere(message, hint=error.hint, causes=(failure,)) from error
        if snapshot is None:
            raise
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
                raise Invalid(answer.failure().message)
    finally:
        connection.close()
    return definitions


def _published_cluster(settings: Settings, branch: str) -> Cluster:
    from reconciler.wiring.repository import published_cluster

    snapshot = published_cluster(settings, inventory_parent(settings), branch)
    if snapshot is None:
        raise Invalid(
            f"no snapshot is published: the repository has no branch {branch or settings.snapshot.branch!r}",
            hint="set snapshot.publish for the daemon, and name the branch as it does: --cluster published:BRANCH",
        )
    return snapshot


def _embedded_cluster(settings: Settings, clock: Clock, snapshot: str) -> Cluster:
    from reconciler.cluster.embedded.cluster import EmbeddedCluster
    from reconciler.cluster.embedded.karpenter import Delays

    delays = Delays(launch=settings.embedded.launch_delay, register=settings.embedded.register_delay)
    options: dict[str, Any] = {
        "delays": delays,
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
    from reconciler.cluster.apply import InventoryParent

    return InventoryParent(settings.inventory.namespace, settings.inventory.name, _path_in_repository(settings))


def _path_in_repository(settings: Settings) -> str | None:
    """The folder that is read, from the top of its repository; None for a folder in no repository."""
    from reconciler.source.credentials import is_remote

    path = PurePosixPath(settings.path)
    if is_remote(settings.repository):
        return path.as_posix()
    folder = Path(settings.repository or ".").absolute()
    top = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)
    return None if top is None else (PurePosixPath(folder.relative_to(top).as_posix()) / path).as_posix()


def _what_is_there() -> str:
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "in-cluster"
    from reconciler.cluster.access import current_context

    if current_context() is not None:
        return "kubeconfig"
    raise NoClusterHere(
        "there is no cluster here: not inside one, and no kubeconfig with a current context",
        hint=f"name one with --cluster: {CLUSTER_CHOICES}",
    )
