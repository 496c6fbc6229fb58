"""A real cluster, watched and written to. Its Events about what headroom did are best effort, and one is not repeated within half an hour."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Condition, Lock, Thread
from typing import Any

import msgspec

from reconciler.cluster.access import Access
from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.connection import JSON, Connection, Count, uncounted
from reconciler.cluster.discovery import Discovery, collection_path
from reconciler.cluster.lease import KubernetesLeases, LeaderElection, LeaseRecord
from reconciler.cluster.resources import CONFIG_MAPS, RESOURCES, Resource, only_object
from reconciler.cluster.scales import Scales
from reconciler.cluster.server_clock import seconds_awake_or_asleep
from reconciler.cluster.view import ViewStore
from reconciler.cluster.watch import Pauses, ResourceWatch, WatchedCluster, pages_of
from reconciler.cluster.writes import Writer
from reconciler.model.changes import Apply, Write, WriteResult
from reconciler.model.errors import Failure, Transient, Waiting, message_of
from reconciler.model.quantity import time_text, whole_number
from reconciler.model.refs import DEFAULT_NAMESPACE, ObjectRef, abridged
from reconciler.model.view import ClusterView, Manifest
from reconciler.ports import Event

_HOPELESS_SECONDS = 5.0
_MOST_NAMED = 3
_REACH_IT = "look whether the API server runs, may be reached, and takes the credentials of the kubeconfig"
_SERVED_KINDS = "the list of kinds"
_JOIN_SECONDS = 5.0


class KubernetesCluster:
    """ports.Cluster for a Kubernetes API server.

    sync_timeout: how long `view` waits until everything is read. discovery_interval: seconds between discoveries, most of which
    only show that nothing changed.
    """

    def __init__(
        self,
        name: str,
        access: Callable[[], Access],
        *,
        inventory: InventoryParent,
        sync_timeout: float = 60.0,
        discovery_interval: float = 30.0,
        count: Count = uncounted,
    ) -> None:
        self._name = name
        self._inventory = inventory
        self._sync_timeout = sync_timeout
        self._discovery_interval = discovery_interval
        self._connection = Connection(access, count=count)
        self._leases = KubernetesLeases(self._connection, inventory.namespace, inventory.name)
        self._discovery = Discovery(self._connection)
        self._store = ViewStore(inventory)
        self._writer = Writer(self._connection, self._discovery, self._wrote)
        self._events = EventLog(self._connection, self._discovery, self._store.uid_of)
        self._scales = Scales(self._connection, self._discovery, self._store)
        self._stopping = threading.Event()
        self._moved = Condition()
        self._changed: Callable[[], None] = lambda: None
        self._unreachable = ""
        self._own: dict[tuple[str, str], int] = {}
        watched = WatchedCluster(self._connection, self._discovery, self._store, self._stopping, self._notice)
        own_inventory = only_object(CONFIG_MAPS, inventory.namespace, inventory.name)
        self._watches = {item.key: ResourceWatch(item, watched) for item in (*RESOURCES, own_inventory)}
        self._threads: list[Thread] = []

    @property
    def name(self) -> str:
        return self._name

    def election(self, identity: str) -> LeaderElection:
        """A candidate for the Lease next to the inventory. identity: this replica's, which is unique."""
        return LeaderElection(self._leases, identity, monotonic=seconds_awake_or_asleep, now=lambda: datetime.now(UTC))

    @property
    def lease(self) -> LeaseRecord:
        """The Lease by which daemons lead, asked of the server; a free one if it cannot be read."""
        try:
            return self._leases.read()
        except Transient:
            return LeaseRecord()

    def write_only_unless(self, hindrance: Callable[[], str], seconds_left: Callable[[], float]) -> None:
        """Skips writes while `hindrance` returns a reason."""
        self._connection.write_only_unless(hindrance, seconds_left)

    @property
    def is_writing(self) -> bool:
        return self._connection.is_writing

    def start(self, changed: Callable[[], None]) -> None:
        """Starts the watching threads, without waiting for anything."""
        self._changed = changed
        self._threads = [Thread(target=self._discover, name="headroom-discovery", daemon=True)]
        self._threads[0].start()

    def view(self) -> ClusterView:
        """Waits until everything was read once, and until the watches show this process's own writes.

        It waits however long a busy cluster takes. Otherwise new objects would seem lost, or be made again.
        """
        with self._moved:
            began = time.monotonic()
            while waited := self._unsettled() or self._unseen():
                left = began + self._sync_timeout - time.monotonic()
                if self._unreachable and left <= max(0.0, self._sync_timeout - _HOPELESS_SECONDS):
                    raise Transient(self._unreachable, hint=_REACH_IT)
                if left <= 0 or self._stopping.is_set():
                    raise Waiting(f"{_some(waited)} not read yet")
                if self._connection.hindrance:  # such as a stop: nobody would use the view
                    raise Waiting(self._connection.hindrance)
                self._moved.wait(min(left, 0.5))
            self._own.clear()
        self._scales.refresh()
        return self._connection.server_clock.dated(self._store.view())

    @property
    def room_changes(self) -> tuple[int, int]:
        """How often held room was taken so far, and how often it came. A cheap call."""
        return self._store.room_changes

    @property
    def requested_at(self) -> str:
        """The inventory's annotation that asks for a pass."""
        return self._store.requested_at

    def read(self, resource: Resource) -> Iterator[Manifest]:
        """Every object of a kind from the server, for a snapshot; none if the kind is not served.

        Raises `Transient`, also if the server refuses, since an incomplete snapshot would mislead.
        """
        if not self._discovery.generation:
            self._discovery.refresh()
        path = self._discovery.path_of(resource)
        if path is None:
            return
        for page in pages_of(self._connection, path, resource):
            yield from (msgspec.json.decode(item) for item in page.items or ())

    def read_scaled(self) -> Iterator[tuple[Resource, Manifest]]:
        """Every object of kinds with a scale that headroom does not know by name. Raises `Transient`."""
        if not self._discovery.generation:
            self._discovery.refresh()
        return self._scales.every()

    def write(self, write: Write, *, dry_run: bool = False) -> WriteResult:
        return self._writer.write(write, dry_run=dry_run)

    def unknown_fields(self, apply: Apply) -> tuple[str, ...] | None:
        return self._writer.unknown_fields(apply)

    def record(self, event: Event) -> None:
        self._events.record(event)

    def close(self) -> None:
        """Ends all threads; blocks for a few seconds at most."""
        self._stopping.set()
        with self._moved:
            self._moved.notify_all()
        self._connection.close()
        deadline = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _discover(self) -> None:
        pauses = Pauses(self._stopping, self._discovery_interval)
        while not self._stopping.is_set():
            try:
                changed = self._discovery.refresh()
                self._unreachable = ""
                cleared = self._store.set_gap(_SERVED_KINDS, "")
                differs = changed and self._store.set_apis(self._discovery.apis())
                self._start_watches()
                self._notice(cleared or differs)
            except Exception as error:  # noqa: BLE001 - a thread that ended would leave everybody waiting for the cluster
                self._unreachable = message_of(error)
                self._notice(self._store.set_gap(_SERVED_KINDS, f"cannot be read: {self._unreachable}"))
                pauses.wait()
            else:
                pauses.reset()
                self._stopping.wait(self._discovery_interval)

    def _start_watches(self) -> None:
        """Starts those that do not run yet: all, unless the system refused a thread before."""
        for watch in [*self._watches.values()][len(self._threads) - 1 :]:
            thread = Thread(target=watch.run, name=f"headroom-watch-{watch.resource}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _notice(self, changed: bool) -> None:  # noqa: FBT001 - the one thing there is to say
        with self._moved:
            self._moved.notify_all()
        if changed:
            self._changed()

    def _unsettled(self) -> list[str]:
        return sorted(
            f"{watch.resource} ({watch.failure})" if watch.failure else str(watch.resource)
            for watch in self._watches.values()
            if not watch.settled
        )

    def _wrote(self, ref: ObjectRef, version: str) -> None:
        key = (ref.group, ref.kind)
        if key in self._watches:
            with self._moved:
                self._own[key] = max(whole_number(version) or 0, self._own.get(key, 0))

    def _unseen(self) -> list[str]:
        """Kinds whose watch does not show this process's own writes yet. A kind that cannot be watched is not waited for: it is a
        gap, and is listed again later."""
        return sorted(
            f"own writes of {watch.resource}"
            for key, version in self._own.items()
            if (watch := self._watches[key]).is_following and watch.version < version
        )


def _some(waited: Sequence[str]) -> str:
    """All kinds with a reason why they cannot be read, and some that are only late."""
    told = [what for what in waited if what.endswith(")")]
    late = [what for what in waited if not what.endswith(")")]
    return abridged([*told, *late], len(told) + _MOST_NAMED)


_REPEATED_WITHIN = timedelta(minutes=30)
_LONGEST_MESSAGE = 1024
_MOST_REMEMBERED = 2000


@dataclass
class EventLog:
    """Writes core v1 Events, in the object's namespace; for cluster-scoped objects in `default` (as kubelet does for nodes).

    uid_of: gives an object's uid, by which `kubectl describe` finds its events.
    """

    connection: Connection
    discovery: Discovery
    uid_of: Callable[[ObjectRef], str]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _lock: Lock = field(default_factory=Lock)
    _told: dict[Event, datetime] = field(default_factory=dict)

    def record(self, event: Event) -> None:
        """Writes an event. Never raises, since a lost event does no harm."""
        now = self.now()
        with suppress(Failure), self._lock:
            if event in self._told and now - self._told[event] < _REPEATED_WITHIN:
                return
            if len(self._told) >= _MOST_REMEMBERED:
                self._told.clear()
            digest = hashlib.sha256(f"{event}{now.timestamp()}".encode()).hexdigest()[:16]
            name = f"{event.ref.name[:200]}.{digest}"
            self.connection.request(
                "POST",
                collection_path("", "v1", "events", _namespace(event)),
                body=msgspec.json.encode(self._document(event, name, now)),
                headers={"Content-Type": JSON},
                resource="events",
            )
            self._told[event] = now

    def _document(self, event: Event, name: str, now: datetime) -> dict[str, Any]:
        ref = event.ref
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(event)},
            "involvedObject": {
                "apiVersion": self.discovery.api_version(ref),
                "kind": ref.kind,
                "name": ref.name,
                "namespace": ref.namespace,
                "uid": self.uid_of(ref),
            },
            "type": event.kind,
            "reason": event.reason,
            "message": event.message[:_LONGEST_MESSAGE],
            "source": {"component": "headroom"},
            "reportingComponent": "headroom",
            "firstTimestamp": time_text(now),
            "lastTimestamp": time_text(now),
            "count": 1,
        }


def _namespace(event: Event) -> str:
    return event.ref.namespace or DEFAULT_NAMESPACE
