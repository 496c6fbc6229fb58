"""The adapters of a one-shot command, which are opened together and closed in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from reconciler.clocks import FixedClock, SystemClock
from reconciler.comparison import UNCAPPED
from reconciler.cycle import Cycle
from reconciler.ports import Clock, Cluster
from reconciler.settings.settings import Settings
from reconciler.source.worktree import WorkingTree
from reconciler.wiring.catalog import open_catalog
from reconciler.wiring.cluster import open_cluster, open_cluster_or_published
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
