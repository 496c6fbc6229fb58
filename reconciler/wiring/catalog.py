"""The catalog that the settings name."""

from __future__ import annotations

from reconciler.model.errors import Misused
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
