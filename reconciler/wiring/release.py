"""Releases everything that headroom holds on the settings' cluster."""

from __future__ import annotations

from reconciler.clocks import SystemClock
from reconciler.model.changes import WriteResult
from reconciler.model.errors import Stalled
from reconciler.settings.settings import Settings
from reconciler.wiring.cluster import open_cluster


def release_all(settings: Settings) -> tuple[WriteResult, ...]:
    """The result of each write. Raises `Stalled` if the cluster cannot be read in full, since something might stay held."""
    from reconciler.plan.holding.release_all import releases

    cluster = open_cluster(settings, SystemClock())
    try:
        cluster.start(lambda: None)
        view = cluster.view()
        if not view.complete:
            raise Stalled(f"the cluster cannot be read in full: {', '.join(view.gaps)}", reason="IncompleteView")
        return tuple(cluster.write(write) for write in releases(view))
    finally:
        cluster.close()
