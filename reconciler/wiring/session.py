"""What a one-shot command works with: adapters that are opened together and closed whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from reconciler.clocks import FixedClock, SystemClock
from reconciler.cycle import Cycle
from reconciler.model.source import SourceTree
from reconciler.ports import Clock, Cluster
from reconciler.settings import Settings
from reconciler.wiring.catalog import open_catalog
from reconciler.wiring.cluster import open_cluster
from reconciler.wiring.cycle import make_cycle
from reconciler.wiring.repository import git_options, open_source


@dataclass(frozen=True, slots=True)
class Session:
    """What a one-shot command works with; open_session closes it."""

    cycle: Cycle
    cluster: Cluster
    settings: Settings
    clock: Clock

    def tree_at(self, revision: str | None) -> SourceTree:
        """The repository's tree at a revision; None is the working tree as it stands."""
        from reconciler.source.opening import tree_at  # noqa: PLC0415 - only where it is used

        settings = self.settings
        return tree_at(
            settings.repository or ".",
            revision,
            settings.path,
            clock=self.clock,
            options=git_options(settings),
        )


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
            catalog = open_catalog(settings, cluster, clock)
            cycle = make_cycle(
                settings, source=source, cluster=cluster, catalog=catalog, clock=clock, progress=progress
            )
            yield Session(cycle, cluster, settings, clock)
        finally:
            cluster.close()
    finally:
        source.close()
