"""A snapshot as a cluster to plan with: it can be read, and refuses every write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from reconciler.cluster.inventory import InventoryParent
from reconciler.cluster.snapshot.files import Snapshot, read_snapshot
from reconciler.cluster.view import ViewStore
from reconciler.model.changes import Apply, Outcome, Write, WriteResult
from reconciler.model.view import ClusterView
from reconciler.ports import Event


class SnapshotCluster:
    """ports.Cluster for a snapshot, which is read at the first use."""

    def __init__(self, name: str, read: Callable[[], Snapshot], inventory: InventoryParent | None = None) -> None:
        """name: for messages."""
        self._name = name
        self._read = read
        self._inventory = inventory
        self._view: ClusterView | None = None

    @property
    def name(self) -> str:
        return self._name

    def start(self, changed: Callable[[], None]) -> None:
        """Does nothing, since a snapshot never changes."""

    def view(self) -> ClusterView:
        """The view. Raises `Invalid` if the snapshot cannot be read."""
        if self._view is None:
            snapshot = self._read()
            store = ViewStore(self._inventory, catalog=snapshot.catalog)
            for resource, items in snapshot.objects.items():
                store.replace(resource, items)
            self._view = replace(store.view(), reduced=True, findings=snapshot.findings)
        return self._view

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:  # noqa: ARG002 - as the port has it
        return WriteResult(write, Outcome.REFUSED, f"{self.name} cannot be written to")

    def unknown_fields(self, apply: Apply) -> None:
        """Not known: definitions of kinds are not part of a snapshot."""

    def record(self, event: Event) -> None:
        """Does nothing: a snapshot has no events."""

    def close(self) -> None:
        """Does nothing, since nothing is open."""


def snapshot_at(path: str, inventory: InventoryParent | None = None) -> SnapshotCluster:
    """The snapshot in a folder or archive."""
    return SnapshotCluster(f"snapshot:{path}", partial(read_snapshot, path), inventory)
