"""What a one-shot command opens: sessions, snapshots, releases, and what a first repository is written for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from reconciler.clocks import FixedClock, SystemClock
from reconciler.cycle import Cycle
from reconciler.model.changes import WriteResult
from reconciler.model.errors import Misused, Stalled
from reconciler.model.view import ClusterView
from reconciler.plan.launching.caps import UNCAPPED
from reconciler.ports import Clock, Cluster
from reconciler.settings.settings import Settings
from reconciler.source.opening import WorkingTree
from reconciler.wiring.cluster import inventory_parent, open_catalog, open_cluster, open_cluster_or_published
from reconciler.wiring.cycle import caps_of, make_cycle
from reconciler.wiring.repository import open_source


@dataclass(frozen=True, slots=True)
class Session:
    """The adapters of a one-shot command. `open_session` closes them."""

    cycle: Cycle
    cluster: Cluster
    settings: Settings
    clock: Clock


@contextmanager
def open_session(
    settings: Settings,
    *,
    now: datetime | None,
    progress: Callable[[str], None],
    compares: bool = False,
    published: bool = False,
    allow_removals: bool = False,
) -> Iterator[Session]:
    """Opens the adapters for one command, and closes them in any case. allow_removals: as for `caps_of`.

    compares: whether the caller reads two sides itself, and plans them without caps. They need not be checked out.

    published: whether the daemon's published snapshot is used if no cluster is named and none is found.
    """
    clock: Clock = SystemClock() if now is None else FixedClock(now)
    source = open_source(settings, clock)
    try:
        if not compares and isinstance(source, WorkingTree) and not source.has_folder:
            source.read()  # the missing folder is told before a missing cluster
        cluster = (open_cluster_or_published if published else open_cluster)(settings, clock)
        try:
            progress("view")
            cluster.start(lambda: None)
            catalog = open_catalog(settings, cluster, clock)
            cycle = make_cycle(
                settings,
                source=source,
                cluster=cluster,
                catalog=catalog,
                clock=clock,
                progress=progress,
                caps=UNCAPPED if compares else caps_of(settings, allow_removals=allow_removals),
            )
            yield Session(cycle, cluster, settings, clock)
        finally:
            cluster.close()
    finally:
        source.close()


def capture_snapshot(settings: Settings, path: str) -> Mapping[str, int]:
    """Writes a snapshot of the settings' cluster; returns the number of objects by plural."""
    from reconciler.cluster.kubernetes import KubernetesCluster
    from reconciler.cluster.snapshot.capture import capture

    clock = SystemClock()
    cluster = open_cluster(settings, clock)
    try:
        cluster.start(lambda: None)
        if not isinstance(cluster, KubernetesCluster):
            raise Misused(
                f"{cluster.name} is not a cluster to capture",
                hint="name a real one: --cluster kubeconfig[:CONTEXT] or in-cluster",
            )
        catalog = open_catalog(settings, cluster, clock).instance_types(cluster.view())
        return capture(cluster.read, path, catalog, cluster.read_scaled(), inventory_parent(settings))
    finally:
        cluster.close()


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
    from reconciler.source.opening import origin_of

    return origin_of(folder)


def release_all(settings: Settings) -> tuple[WriteResult, ...]:
    """The result of each write. Raises `Stalled` if the cluster cannot be read in full, since something might stay held."""
    from reconciler.plan.holding.hold import releases

    cluster = open_cluster(settings, SystemClock())
    try:
        cluster.start(lambda: None)
        view = cluster.view()
        if not view.complete:
            raise Stalled(f"the cluster cannot be read in full: {', '.join(view.gaps)}", reason="IncompleteView")
        return tuple(cluster.write(write) for write in releases(view))
    finally:
        cluster.close()
