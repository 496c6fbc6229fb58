"""Opens the adapters for a one-shot command, and turns settings into the rules of a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from reconciler.clocks import FixedClock, SystemClock
from reconciler.cycle import Cycle
from reconciler.files import packaged_texts
from reconciler.model.changes import WriteResult
from reconciler.model.errors import Misused, Stalled
from reconciler.model.view import ClusterView
from reconciler.placement.problem import PlacementOptions
from reconciler.plan.holding.consolidation import ConsolidationRules
from reconciler.plan.launching.back_offs import BackOffRules
from reconciler.plan.launching.caps import UNCAPPED, PlanCaps
from reconciler.plan.objects.objects import Owner
from reconciler.plan.objects.prune import PruneRules
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


def caps_of(settings: Settings, *, allow_removals: bool = False) -> PlanCaps:
    """allow_removals: whether what Git no longer declares goes at once, however much it is."""
    caps = settings.caps
    return PlanCaps(
        new_nodes_per_pass=caps.new_nodes_per_pass,
        price_per_hour=caps.price_per_hour,
        nodes_per_pool=caps.nodes_per_pool,
        pruning=PruneRules(
            share=caps.prune_share,
            nodes=caps.prune_nodes_at_least,
            objects=caps.prune_objects_at_least,
            lifted=allow_removals,
        ),
        nodes_per_request=caps.nodes_per_request,
    )


def make_cycle(
    settings: Settings,
    *,
    source: Source,
    cluster: Cluster,
    catalog: Catalog,
    clock: Clock,
    progress: Callable[[str], None] = lambda _stage: None,
    caps: PlanCaps | None = None,
    proposals: Proposals | None = None,
) -> Cycle:
    """caps: None for those of the settings. proposals: where plans go instead of the cluster."""
    placement, inventory = settings.placement, inventory_parent(settings)
    return Cycle(
        source=source,
        cluster=cluster,
        catalog=catalog,
        clock=clock,
        rules=Rules(
            dialect=settings.dialect,
            caps=caps_of(settings) if caps is None else caps,
            placement=PlacementOptions(instance_types=placement.instance_types, optimal=placement.mode == "optimal"),
            optimal_within=placement.optimal_within,
            surge=placement.surge,
            not_ready_grace=placement.not_ready_grace,
            consolidation=ConsolidationRules(placement.consolidation_share, placement.consolidation_per_hour),
            back_off=BackOffRules(placement.back_off, placement.back_off_at_most),
            inventory=inventory,
            owner=Owner(inventory.id, inventory.words),
            check_placement=placement.check,
            templates_folder=settings.templates.strip("/"),
            suspend=settings.suspend,
            allow_empty=settings.allow_empty,
            drift=settings.drift,
            fulfilment=settings.buffers.fulfilment,
            balloon_image=settings.buffers.balloon_image,
            shrink_after=settings.buffers.shrink_after,
            requests=settings.requests,
        ),
        packaged_templates=packaged_texts("templates", suffix=".j2"),
        progress=progress,
        proposals=proposals,
    )
