"""A cluster that stores what is applied, with faults that a test asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.resources import BY_KIND
from reconciler.cluster.view import ViewStore
from reconciler.model.changes import Apply, Delete, Outcome, Write, WriteResult
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.ports import Cluster, Event

PARENT = InventoryParent("headroom-system", "headroom")


class KilledError(Exception):
    """The process ended here."""


@dataclass
class FakeCluster(Cluster):
    """A cluster that stores what is applied and can refuse, fail or be killed at the nth real write."""

    stored: dict[ObjectRef, Mapping[str, Any]] = field(default_factory=dict)
    refused: Mapping[ObjectRef, Outcome] = field(default_factory=dict)
    refused_for_real: Mapping[ObjectRef, Outcome] = field(default_factory=dict)
    kill_at: int | None = None
    done: list[str] = field(default_factory=list)
    name: str = "objects"

    def start(self, changed: Callable[[], None]) -> None:
        changed()

    def view(self) -> ClusterView:
        store = ViewStore(PARENT)
        for ref, body in self.stored.items():
            store.put(BY_KIND[(ref.group, ref.kind)], dict(body))
        return store.view()

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        outcome = self.refused.get(write.ref) or (None if dry_run else self.refused_for_real.get(write.ref))
        if outcome is not None:
            return WriteResult(write, outcome, "the server said no")
        if isinstance(write, Apply) and self.stored.get(write.ref) == write.manifest:
            return WriteResult(write, Outcome.UNCHANGED)
        if not dry_run:
            if self.kill_at == len(self.done):
                raise KilledError
            self.done.append(f"{type(write).__name__} {write.ref}")
            if isinstance(write, Apply):
                self.stored[write.ref] = write.manifest
            if isinstance(write, Delete):
                self.stored.pop(write.ref, None)
        return WriteResult(write, Outcome.APPLIED)

    def record(self, event: Event) -> None: ...

    def close(self) -> None: ...
