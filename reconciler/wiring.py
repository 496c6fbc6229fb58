"""The composition root: the one place where real adapters are bound, as typed arguments. Called by cli.

Everything heavy (a Kubernetes client, Git, numpy) is imported only on the way to the adapter that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from reconciler.clocks import FixedClock, SystemClock
from reconciler.cycle import Cycle, Rules
from reconciler.model.errors import Invalid
from reconciler.model.source import SourceTree
from reconciler.packaged import packaged_texts
from reconciler.ports import Catalog, Clock, Cluster, Source
from reconciler.render.environment import Templates
from reconciler.settings import Settings

if TYPE_CHECKING:
    from reconciler.cluster.kubernetes import KubernetesCluster

CLUSTER_CHOICES = "kubeconfig[:CONTEXT], in-cluster, snapshot:PATH or embedded[:SNAPSHOT]"


@dataclass(frozen=True, slots=True)
class Session:
    """What a one-shot command works with; open_session closes it."""

    cycle: Cycle
    cluster: Cluster
    settings: Settings

    def tree_at(self, revision: str | None) -> SourceTree:
        """The repository's tree at a revision; None is the working tree as it stands."""
        from reconciler.source.worktree import WorkingTree  # noqa: PLC0415 - Git only where it is used

        settings = self.settings
        if revision is None:
            return WorkingTree(settings.repository or ".", settings.path).read()
        from reconciler.source.git import tree_at  # noqa: PLC0415 - likewise

        return tree_at(settings.repository or ".", revision, settings.path)


@contextmanager
def open_session(
    settings: Settings,
    *,
    now: datetime | None,
    progress: Callable[[str], None],
) -> Iterator[Session]:
    """Adapters for one command: opened, and closed whatever happens."""
    clock: Clock = SystemClock() if now is None else FixedClock(now)
    source = open_source(settings, clock)
    try:
        cluster = open_cluster(settings, clock)
        try:
            progress("view")
            cluster.start(lambda: None)
            catalog = open_catalog(settings, cluster)
            cycle = make_cycle(settings, source, cluster, catalog, clock, progress)
            yield Session(cycle, cluster, settings)
        finally:
            cluster.close()
    finally:
        source.close()


def make_cycle(
    settings: Settings,
    source: Source,
    cluster: Cluster,
    catalog: Catalog,
    clock: Clock,
    progress: Callable[[str], None] = lambda _stage: None,
) -> Cycle:
    from reconciler.cluster.inventory import InventoryParent  # noqa: PLC0415 - see above
    from reconciler.demand.dialect import Dialect  # noqa: PLC0415 - see above
    from reconciler.placement.place import PlacementOptions  # noqa: PLC0415 - see above
    from reconciler.plan.limits import PlanCaps  # noqa: PLC0415 - see above

    caps, placement = settings.caps, settings.placement
    return Cycle(
        source=source,
        cluster=cluster,
        catalog=catalog,
        clock=clock,
        rules=Rules(
            dialect=Dialect(settings.dialect),
            caps=PlanCaps(
                new_nodes=caps.new_nodes_per_pass or None,
                price_per_hour=caps.price_per_hour or None,
                nodes_per_pool=caps.nodes_per_pool or None,
                prune_share=caps.prune_share,
            ),
            placement=PlacementOptions(
                chunks_per_node=placement.chunks_per_node or None,
                instance_types=placement.instance_types,
            ),
            inventory=InventoryParent(settings.inventory.namespace, settings.inventory.name),
            templates_folder=settings.templates,
            suspend=settings.suspend,
        ),
        packaged_templates=packaged_texts("templates", suffix=".j2"),
        progress=progress,
    )


def packaged_templates(own: Mapping[str, str] | None = None) -> Templates:
    return Templates(packaged_texts("templates", suffix=".j2"), own)


def open_source(settings: Settings, clock: Clock) -> Source:
    from reconciler.source.opening import open_source as opened  # noqa: PLC0415 - Git only where it is used

    return opened(
        settings.repository or ".", revision=settings.revision or None, subdirectory=settings.path, clock=clock
    )


def open_catalog(settings: Settings, cluster: Cluster) -> Catalog:
    """The catalog that `catalog` names; else the cluster's own (a snapshot's, the embedded one's), else what is observed."""
    choice = settings.catalog
    kind, _, rest = choice.partition(":")
    if kind == "karpenter-metrics" and rest:
        from reconciler.catalog.karpenter_metrics import KarpenterMetricsCatalog  # noqa: PLC0415 - see above

        return KarpenterMetricsCatalog(rest)
    if choice in {"", "observed"}:
        from reconciler.catalog.observed import ClusterCatalog, ObservedCatalog  # noqa: PLC0415 - see above

        return ObservedCatalog() if choice else ClusterCatalog(cluster.name)
    if kind == "karpenter-metrics":
        raise Invalid(
            "--catalog karpenter-metrics needs the address of Karpenter's metrics", hint="karpenter-metrics:URL"
        )
    from reconciler.catalog.file import FileCatalog  # noqa: PLC0415 - see above

    return FileCatalog(choice)


def open_cluster(settings: Settings, clock: Clock) -> Cluster:
    """The cluster that `cluster` names; without one, what is there, and never the embedded one by itself."""
    choice = settings.cluster or _what_is_there()
    kind, _, rest = choice.partition(":")
    if kind == "snapshot" and rest:
        from reconciler.cluster.snapshot import SnapshotCluster  # noqa: PLC0415 - see above

        return SnapshotCluster(rest)
    if kind == "embedded":
        from reconciler.cluster.embedded import EmbeddedCluster  # noqa: PLC0415 - see above

        return EmbeddedCluster(clock)
    if choice == "in-cluster" or kind == "kubeconfig":
        return _real_cluster(settings, choice)
    raise Invalid(f"--cluster {choice} is no cluster", hint=f"write {CLUSTER_CHOICES}")


def _real_cluster(settings: Settings, choice: str) -> KubernetesCluster:
    raise NotImplementedError(settings, choice)


def _what_is_there() -> str:
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "in-cluster"
    from reconciler.cluster.connection import current_context  # noqa: PLC0415 - see above

    if current_context() is not None:
        return "kubeconfig"
    raise Invalid(
        "there is no cluster here: not inside one, and no kubeconfig with a current context",
        hint=f"name one with --cluster: {CLUSTER_CHOICES}",
    )
