"""A captured cluster to plan against: it reads like a cluster and refuses every write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Self

from reconciler.cluster.inventory import InventoryParent
from reconciler.cluster.snapshot.files import Snapshot, read_snapshot, snapshot_of
from reconciler.cluster.view import ViewStore
from reconciler.model.changes import Outcome, Write, WriteResult
from reconciler.model.view import ClusterView
from reconciler.ports import Event


class SnapshotCluster:
    """ports.Cluster for a snapshot's folder or archive, read when it is first looked at."""

    def __init__(self, path: str, inventory: InventoryParent | None = None) -> None:
        self._name = f"snapshot:{path}"
        self._read: Callable[[], Snapshot] = partial(read_snapshot, path)
        self._inventory = inventory
        self._view: ClusterView | None = None

    @classmethod
    def of_files(cls, name: str, files: Mapping[str, bytes], inventory: InventoryParent | None = None) -> Self:
        """One whose files were read already. name: as messages call it."""
        made = cls("", inventory)
        made._name, made._read = name, partial(snapshot_of, name, files)
        return made

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
