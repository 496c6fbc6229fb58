"""Takes a snapshot of the settings' cluster."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.clocks import SystemClock
from reconciler.model.errors import Misused
from reconciler.settings.settings import Settings
from reconciler.wiring.catalog import open_catalog
from reconciler.wiring.cluster import inventory_parent, open_cluster


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
