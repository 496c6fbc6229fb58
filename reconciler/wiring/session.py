"""Opens the adapters for a one-shot command, and turns settings into the rules of a pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from reconciler.clocks import FixedClock, SystemClock
from reconciler.cycle import Cycle
from reconciler.files import packaged_texts
from reconciler.model.changes import WriteResult
from reconciler.model.errors import Misused, Stalled
from reconciler.model.rules import ALL_REMOVALS, UNCAPPED
from reconciler.model.view import ClusterView
from reconciler.plan.objects.objects import Owner
from reconciler.ports import Catalog, Clock, Cluster, Proposals, Source
from reconciler.settings.settings import Settings
from reconciler.source.opening import WorkingTree
from reconciler.stages.state import Rules
from reconciler.wiring.inputs import (
    inventory_parent,
    open_catalog,
    open_cluster,
    open_cluster_or_published,
    open_source,
)

if TYPE_CHECKING:
    from reconciler.cluster.embedded.cluster import EmbeddedCluster
    from reconciler.cluster.kubernetes import KubernetesCluster
    from reconciler.cluster.lease import LeaseRecord
    from reconciler.cluster.snapshot.capture import Captured


@dataclass(frozen=True, slots=True)
class Session:
    """The adapters of a one-shot command. `open_session` closes them."""

    cycle: Cycle
    cluster: Cluster
    clock: Clock


@contextmanager
def started_cluster(
    settings: Settings, clock: Clock, opened: Callable[[Settings, Clock], Cluster] = open_cluster
) -> Iterator[Cluster]:
    """The cluster of the settings, which is watched, and closed in the end."""
    with closing(opened(settings, clock)) as cluster:
        cluster.start(lambda: None)
        yield cluster


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
    """Opens the adapters for one command, and closes them in any case. allow_removals: whether what Git no longer declares goes at once,
    however much it is.

    compares: whether the caller reads two sides itself, and plans them without caps. They need not be checked out.

    published: whether the daemon's published snapshot is used if no cluster is named and none is found.
    """
    caps = replace(settings.caps, prune_share=ALL_REMOVALS) if allow_removals else settings.caps
    clock: Clock = SystemClock() if now is None else FixedClock(now)
    with closing(open_source(settings, clock)) as source:
        if not compares and isinstance(source, WorkingTree) and not source.has_folder:
            source.read()  # the missing folder is told before a missing cluster
        progress("view")
        opened = open_cluster_or_published if published else open_cluster
        with started_cluster(settings, clock, opened) as cluster:
            cycle = make_cycle(
                replace(settings, caps=UNCAPPED if compares else caps),
                source=source,
                cluster=cluster,
                catalog=open_catalog(settings, cluster, clock),
                clock=clock,
                progress=progress,
            )
            yield Session(cycle, cluster, clock)


def capture_snapshot(settings: Settings, path: str) -> Mapping[str, int]:
    """Writes a snapshot of the settings' cluster; returns the number of objects by plural."""
    from reconciler.cluster.kubernetes import KubernetesCluster
    from reconciler.cluster.snapshot.files import write_snapshot

    clock = SystemClock()
    with started_cluster(settings, clock) as cluster:
        if not isinstance(cluster, KubernetesCluster):
            raise Misused(
                f"{cluster.name} is not a cluster to capture",
                hint="name a real one: --cluster kubeconfig[:CONTEXT] or in-cluster",
            )
        found = captured_of(settings, cluster, clock)
    write_snapshot(path, found.files)
    return found.counts


def captured_of(settings: Settings, cluster: KubernetesCluster | EmbeddedCluster, clock: Clock) -> Captured:
    from reconciler.cluster.snapshot.capture import captured

    types = open_catalog(settings, cluster, clock).instance_types(cluster.view())
    return captured(cluster.read, types, cluster.read_scaled(), inventory_parent(settings))


def seen_cluster(settings: Settings) -> tuple[str, ClusterView]:
    """The name and one view of the cluster; nothing is written. Raises `NoClusterHere`, and what the cluster's adapter raises."""
    with started_cluster(settings, SystemClock()) as cluster:
        return cluster.name, cluster.view()


STOPS_WITHIN = 40
"""Seconds within which a daemon that is being stopped gives up its Lease, or its Lease runs out."""


def wait_until_nobody_leads(lease: Callable[[], LeaseRecord], sleep: Callable[[float], None] = time.sleep) -> None:
    """Raises `Stalled` if a daemon goes on: it would hold every node again. A Lease has run out if nobody renews it for its time, whatever
    the clocks say."""
    renewed, since = "", 0
    for second in range(STOPS_WITHIN):
        record = lease()
        if record.renewed != renewed:
            renewed, since = record.renewed, second
        if not record.holder or second - since >= record.seconds:
            return
        sleep(1.0)
    raise Stalled(
        f"the daemon {record.holder} runs, and would hold every node again",
        reason="DaemonRuns",
        hint="stop it first: kubectl -n headroom-system scale deployment headroom --replicas 0",
    )


def release_all(settings: Settings, progress: Callable[[str], None]) -> tuple[WriteResult, ...]:
    """The result of each write. Raises `Stalled` while a daemon leads, or if the cluster cannot be read in full, since something might stay
    held."""
    from reconciler.cluster.kubernetes import KubernetesCluster
    from reconciler.plan.holding.hold import releases

    with started_cluster(settings, SystemClock()) as cluster:
        if isinstance(cluster, KubernetesCluster):
            progress("waiting for the daemon to stop")
            wait_until_nobody_leads(lambda: cluster.lease)
        progress("view")
        view = cluster.view()
        if not view.complete:
            raise Stalled(f"the cluster cannot be read in full: {', '.join(view.gaps)}", reason="IncompleteView")
        return tuple(cluster.write(write) for write in releases(view))


def make_cycle(
    settings: Settings,
    *,
    source: Source,
    cluster: Cluster,
    catalog: Catalog,
    clock: Clock,
    progress: Callable[[str], None] = lambda _stage: None,
    proposals: Proposals | None = None,
) -> Cycle:
    """proposals: where plans go instead of the cluster."""
    inventory = inventory_parent(settings)
    return Cycle(
        source=source,
        cluster=cluster,
        catalog=catalog,
        clock=clock,
        rules=Rules(
            dialect=settings.dialect,
            caps=settings.caps,
            buffers=settings.buffers,
            requests=settings.requests,
            placement=settings.placement,
            inventory=inventory,
            owner=Owner(inventory.id, inventory.words),
            templates_folder=settings.templates.strip("/"),
            suspend=settings.suspend,
            allow_empty=settings.allow_empty,
            drift=settings.drift,
        ),
        packaged_templates=packaged_texts("templates", suffix=".j2"),
        progress=progress,
        proposals=proposals,
    )
