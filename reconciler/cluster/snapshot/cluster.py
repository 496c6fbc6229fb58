"""A captured cluster to plan against: it reads like a cluster and refuses every write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from reconciler.cluster.inventory import InventoryParent
from reconciler.cluster.snapshot.files import Snapshot, read_snapshot
from reconciler.cluster.view import ViewStore
from reconciler.model.changes import Outcome, Write, WriteResult
from reconciler.model.view import ClusterView
from reconciler.ports import Event


class SnapshotCluster:
    """ports.Cluster for a snapshot, read when it is first looked at."""

    def __init__(self, name: str, read: Callable[[], Snapshot], inventory: InventoryParent | None = None) -> None:
        """name: as messages call it."""
        self._name = name
        self._read = read
        self._inventory = inventory
        self._view: ClusterView | None = None

    @property
    def name(self) -> str:
        return self._name

    def start(self, changed: Callable[[], None]) -> None:
        """Nothing ever changes in it."""

    def view(self) -> ClusterView:
        """Raises `Invalid` when the snapshot cannot be read."""
        if self._view is None:
            snapshot = self._read()
            store = ViewStore(self._inventory, catalog=snapshot.catalog)
            for resource, items in snapshot.objects.items():
                store.replace(resource, items)
            self._view = replace(store.view(), reduced=True, findings=snapshot.findings)
        return self._view

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:  # noqa: ARG002 - as the port has it
        return WriteResult(write, Outcome.REFUSED, f"{self.name} cannot be written to")

    def record(self, event: Event) -> None:
        """There is nobody to tell."""

    def close(self) -> None:
        """Nothing is open."""


def snapshot_at(path: str, inventory: InventoryParent | None = None) -> SnapshotCluster:
    """Of a folder or an archive."""
    return SnapshotCluster(f"snapshot:{path}", partial(read_snapshot, path), inventory)
