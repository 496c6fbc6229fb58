"""A small cluster in this process: Kubernetes' API, its scheduler and workload controllers, and Karpenter.

It is the cluster of `--cluster embedded[:SNAPSHOT]`; tests play with it in `tests/fakes/played_cluster.py`. Things happen only in `advance`, which every call
makes first. With `real_time` a thread makes it too, whenever something is due. It can begin with the objects of a snapshot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec

from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.embedded.consolidation import Consolidation
from reconciler.cluster.embedded.fields import Manager
from reconciler.cluster.embedded.karpenter import Delays, Karpenter
from reconciler.cluster.embedded.provisioner import Provisioner, StaticPools
from reconciler.cluster.embedded.scheduler import Scheduler
from reconciler.cluster.embedded.store import SERVED, Body, Conflicting, Missing
from reconciler.cluster.embedded.workloads import Workloads
from reconciler.cluster.embedded.world import Controller, Market, World
from reconciler.cluster.resources import NAMESPACES, WORKLOADS, Resource
from reconciler.cluster.snapshot.files import Snapshot, read_snapshot
from reconciler.manifests.instance_types import gpu_instance_types, synthetic_instance_types
from reconciler.model.changes import Annotate, Apply, ApplyStatus, Delete, Outcome, Write, WriteResult
from reconciler.model.errors import Invalid, Transient
from reconciler.model.findings import Finding
from reconciler.model.marks import OWN_MANAGER
from reconciler.model.nodes import InstanceType
from reconciler.model.refs import DEFAULT_NAMESPACE, ObjectRef
from reconciler.model.view import ClusterView
from reconciler.ports import Clock, Cluster, Event

WAKE = 1.0
"""Seconds between the real-time thread's looks at the clock, which may not be the machine's."""


class EmbeddedCluster(Cluster):
    """Implements `ports.Cluster`; thread-safe.

    delays: how long launches, registrations and drains take. provisions_pending: whether NodeClaims are also made for pods that
    found no node, as by Karpenter. makes_namespaces: whether an applied object's missing namespace is made. real_time: whether a
    thread simulates what becomes due between calls; otherwise only calls do.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        delays: Delays | None = None,
        instance_types: Iterable[InstanceType] | None = None,
        inventory: InventoryParent | None = None,
        provisions_pending: bool = False,
        makes_namespaces: bool = False,
        real_time: bool = True,
        name: str = "embedded",
    ) -> None:
        types = (*synthetic_instance_types(), *gpu_instance_types()) if instance_types is None else instance_types
        self._name = name
        self._findings: tuple[Finding, ...] = ()
        self._clock = clock
        self._real_time = real_time
        self._lock = threading.RLock()
        self._due = threading.Condition(self._lock)
        self._closed = False
        self._changed: Callable[[], None] = lambda: None
        self._thread: threading.Thread | None = None
        self._world = World(
            now=clock.now(),
            market=Market(types),
            inventory=inventory or InventoryParent(),
            controllers=self._controllers,
            makes_namespaces=makes_namespaces,
        )
        self._delays = delays or Delays()
        self._provisions_pending = provisions_pending
        self.serve()

    @classmethod
    def from_snapshot(cls, path: str | Path, clock: Clock, **options: Any) -> Self:
        """A cluster that begins with a snapshot. Raises `Invalid` naming the file that cannot be read."""
        snapshot = read_snapshot(path)
        if snapshot.catalog and options.get("instance_types") is None:
            options["instance_types"] = snapshot.catalog
        cluster = cls(clock, name=f"embedded:{path}", **options)
        with cluster._lock:
            cluster.serve(*(resource for resource in snapshot.objects if resource.key not in SERVED))
            for ref, body in _in_turn(snapshot):
                cluster._world.store.load(ref, body)
            cluster._world.settle()
            cluster._findings = snapshot.findings
        return cluster

    # ports.Cluster

    @property
    def name(self) -> str:
        return self._name

    def start(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        if self._real_time and self._thread is None:
            self._thread = threading.Thread(target=self._play, name="embedded cluster", daemon=True)
            self._thread.start()

    def view(self) -> ClusterView:
        with self._lock:
            self._world.advance(self._clock.now())
            view = self._world.views.view()
        if self._findings:
            view = replace(view, findings=self._findings)
        self._tell()
        return view

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        with self._lock:
            self._world.advance(self._clock.now())
            try:
                done = self._write(write, dry_run=dry_run)
            except Missing:
                return WriteResult(write, Outcome.SKIPPED, f"{write.ref} is gone")
            except Conflicting as error:
                return WriteResult(write, Outcome.CONFLICT, error.message)
            except Invalid as error:
                return WriteResult(write, Outcome.REFUSED, error.with_hint)
            except Transient as error:
                return WriteResult(write, Outcome.FAILED, error.message)
            body = self._world.store.get(write.ref) or {}
            self._world.advance(self._clock.now())
            self._due.notify_all()
        self._tell()
        version = str((body.get("metadata") or {}).get("resourceVersion", ""))
        return WriteResult(write, Outcome.APPLIED if done else Outcome.UNCHANGED, version=version)

    def record(self, event: Event) -> None:
        """Does nothing: nobody could ask for its events."""

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._due.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    # What a snapshot is taken of

    def read(self, resource: Resource) -> Iterator[Body]:
        """Every object of a kind, as from the API."""
        with self._lock:
            found = self._world.store.all(*resource.key)
        for ref, body in found:
            if not resource.name or (ref.namespace, ref.name) == (resource.namespace, resource.name):
                yield body

    def read_scaled(self) -> Iterator[tuple[Resource, Body]]:
        """Every object of kinds with a scale that headroom does not know by name."""
        with self._lock:
            kinds = list(self._world.store.scaled.values())
        for resource in kinds:
            yield from ((resource, body) for body in self.read(resource))

    # What else is asked of it

    @property
    def room_changes(self) -> tuple[int, int]:
        """How often held room was taken so far, and how often it came. A cheap call."""
        return self._world.views.room_changes

    def serve(self, *scaled: Resource) -> None:
        """Serves these kinds too. Only their scale is known; new pods are copies of existing ones."""
        with self._lock:
            self._world.store.scaled |= {resource.key: resource for resource in scaled}
            served = {**SERVED, **self._world.store.scaled}
            self._world.views.set_apis({key: resource.versions[:1] for key, resource in served.items()})

    # Inside

    @cached_property
    def _karpenter(self) -> Karpenter:
        return Karpenter(self._world, self._delays)

    def _controllers(self) -> tuple[Controller, ...]:
        scheduler = Scheduler(self._world)
        provisioner = Provisioner(self._world, scheduler)
        consolidation = Consolidation(self._world, provisioner)
        nodes = (Workloads(self._world), scheduler, self._karpenter, consolidation, StaticPools(self._world))
        return (*nodes, provisioner) if self._provisions_pending else nodes

    def _write(self, write: Write, *, dry_run: bool) -> bool:
        store, owner = self._world.store, Manager(OWN_MANAGER)
        match write:
            case Apply():
                return store.apply(write.ref, write.manifest, owner, force=write.force, dry_run=dry_run)
            case ApplyStatus():
                manager = Manager(OWN_MANAGER, "Apply", "status")
                return store.apply_status(write.ref, write.status, manager, dry_run=dry_run)
            case Annotate():
                manager, annotations = Manager(OWN_MANAGER, "Update"), dict(write.annotations)
                return store.annotate(write.ref, annotations, manager, taints=write.taints, dry_run=dry_run)
            case Delete():
                return store.delete(write.ref, write.uid, dry_run=dry_run)

    def _tell(self) -> None:
        """Notifies listeners outside the lock, since they may read at once."""
        with self._lock:
            changed, self._world.view_changed = self._world.view_changed, False
        if changed:
            self._changed()

    def _play(self) -> None:
        while self._wait_until_due():
            with self._lock:
                self._world.advance(self._clock.now())
            self._tell()

    def _wait_until_due(self) -> bool:
        """False once the cluster is closed."""
        with self._lock:
            if not self._closed:
                due = self._world.next_timer
                wait = WAKE if due is None else (due - self._clock.now()) / timedelta(seconds=1)
                self._due.wait(min(WAKE, max(0.0, wait)))
            return not self._closed


_FINISHED = {"Succeeded", "Failed"}


def _in_turn(snapshot: Snapshot) -> list[tuple[ObjectRef, Body]]:
    """A snapshot's objects in an order in which they can be created. Namespaces that no file lists are added."""
    objects = [
        (_ref_in(resource, body), body)
        for resource, items in sorted(snapshot.objects.items(), key=lambda entry: _turn(entry[0]))
        for body in _bodies(resource, items)
    ]
    listed = {ref.name for ref, _ in objects if (ref.group, ref.kind) == NAMESPACES.key}
    missing = sorted({ref.namespace for ref, _ in objects} - listed - {""})
    return [*map(_namespace, missing), *objects]


def _ref_in(resource: Resource, body: Mapping[str, Any]) -> ObjectRef:
    metadata = body.get("metadata") or {}
    namespace = (metadata.get("namespace") or DEFAULT_NAMESPACE) if resource.namespaced else ""
    return ObjectRef(resource.group, resource.kind, namespace, str(metadata.get("name", "")))


def _turn(resource: Resource) -> tuple[int, str]:
    """The order of creation: pods before the workloads that would create them, and all else before pods, which need nodes and
    priority classes."""
    last = ("Node", "NodeClaim", "Pod", *(workload.kind for workload in WORKLOADS), "DaemonSet")
    if resource.key not in SERVED:
        return (len(last), resource.kind)
    return (last.index(resource.kind) if resource.kind in last else -1, resource.kind)


def _bodies(resource: Resource, items: list[msgspec.Raw]) -> Iterator[Body]:
    """The items, with apiVersion and kind, which those of a list may lack. Finished pods are left out, since they would run again."""
    for item in items:
        body: dict[str, Any] = msgspec.json.decode(item)
        if resource.kind == "Pod" and (body.get("status") or {}).get("phase") in _FINISHED:
            continue
        body.setdefault("apiVersion", resource.api_version)
        body.setdefault("kind", resource.kind)
        yield body


def _namespace(name: str) -> tuple[ObjectRef, Body]:
    ref = ObjectRef(*NAMESPACES.key, "", name)
    return ref, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
