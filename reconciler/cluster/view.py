"""The store that makes views of the cluster from what is listed and watched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from threading import RLock
from typing import Any, TypeVar, cast

from reconciler.cluster.apply import InventoryParent
from reconciler.cluster.decoding.decode import Body, Decoded, Value, decode
from reconciler.cluster.decoding.pods import ShapePool
from reconciler.cluster.decoding.workloads import NamespaceLabels
from reconciler.cluster.resources import (
    BY_KIND,
    CONFIG_MAPS,
    DAEMON_SETS,
    NAMESPACES,
    NODE_CLAIMS,
    NODES,
    PODS,
    RESOURCES,
    RUNTIME_CLASSES,
    Resource,
)
from reconciler.model.attachments import Storage
from reconciler.model.marks import PART_OF_LABEL
from reconciler.model.nodes import InstanceType, Node, NodeClaim
from reconciler.model.pods import DaemonSet, Pod, admitted
from reconciler.model.refs import ObjectRef, listed
from reconciler.model.remembered import Inventory
from reconciler.model.view import ClusterView, LiveObject


def is_held(side: object) -> bool:
    """Whether it is a node or NodeClaim that holds chunks."""
    return isinstance(side, Node | NodeClaim) and side.is_held


def begins_to_go(before: object, after: object) -> bool:
    """Whether a node or NodeClaim that holds chunks begins to be deleted or disrupted with this change."""
    return is_held(before) and _is_going(after) and not _is_going(before)


def is_starting(side: object) -> bool:
    """Whether it is the NodeClaim of a node that holds chunks, or waits for pods, and is not initialized yet."""
    return isinstance(side, NodeClaim) and is_held(side) and side.condition("Initialized") != "True"


def node_newly_used(before: object, after: object) -> str:
    """The node that the change binds a pod to, "" for none. Daemon pods do not count, since they come with their node."""
    if not isinstance(after, Pod) or after.node_name is None or after.is_daemon or after.deleting:
        return ""
    return "" if isinstance(before, Pod) and before.node_name is not None else after.node_name


def _is_going(side: object) -> bool:
    disrupted = isinstance(side, Node) and side.is_disrupted
    return disrupted or (isinstance(side, Node | NodeClaim) and side.deleting)


Key = tuple[str, str]
_APART = frozenset(resource.key for resource in (*RESOURCES, CONFIG_MAPS) if resource.part)
"""The kinds that have a part of the view for themselves."""
_FOLLOWING = {
    "objects": "inventory",
    "runtime_classes": "admitted daemon_sets",
    "daemon_sets": "admitted daemon_sets",
    "pods": "pods by phase",
    "namespaces": "namespaces by name",
}
"""Parts of a view that other parts are made from."""
_T = TypeVar("_T")
_MOST_GAPS = 5
"""How many unreadable objects of one kind are named."""
_MOST_SUBJECTS = 4
"""How many kinds are named that cannot be read for the same reason."""


class ViewStore:
    """Takes objects and provides `ClusterView`s. Thread-safe.

    The revision changes only with a decoded value: a node's heartbeat or a new resourceVersion alone is no change. Unchanged parts
    are the same tuples in the next view. An object that cannot be read is a gap, not an error.
    """

    def __init__(self, inventory: InventoryParent | None = None, *, catalog: tuple[InstanceType, ...] = ()) -> None:
        self._parent = inventory or InventoryParent()
        self._catalog = catalog
        self._lock = RLock()
        self._values: dict[Key, dict[Key, Value]] = {NODES.key: {}}
        self._gaps: dict[tuple[str, ...], str] = {}
        self._apis: Mapping[Key, tuple[str, ...]] = {}
        self._made: dict[str, Any] = {}
        self._revision = 0
        self._room_taken = self._room_came = 0
        self._view: ClusterView | None = None

    @cached_property
    def _shapes(self) -> ShapePool:
        return ShapePool()

    def _decoded(self, resource: Resource, body: Body) -> Decoded:
        return decode(resource, body, self._shapes if resource.key == PODS.key else None)

    def put(self, resource: Resource, body: Body) -> bool:
        """Takes an added or changed object; returns whether the next view differs."""
        with self._lock:
            return self._put(resource, self._decoded(resource, body))

    def remove(self, resource: Resource, namespace: str, name: str) -> bool:
        """Removes an object; returns whether the next view differs."""
        with self._lock:
            problem = self._set_gap((*resource.key, namespace, name), "")
            return self._drop(resource, (namespace, name)) or problem

    def replace(self, resource: Resource, bodies: Iterable[Body]) -> bool:
        """Takes all objects of the kind; returns whether the next view differs.

        bodies: may come from a server one by one; an error in between leaves everything as it was.
        """
        listed: dict[Key, Decoded] = {}
        values = self._values.get(resource.key, {})
        for body in bodies:
            with self._lock:
                item = self._decoded(resource, body)
                at = (item.namespace, item.name)
                known = values.get(at)
            # After a lost watch most objects are as they were: the known value itself takes no second room.
            listed[at] = item if known is None or item.value != known else item._replace(value=known)
        with self._lock:
            stale = [gap for gap in self._gaps if gap[:2] == resource.key and gap[2:] not in listed]
            gone = [at for at in values if at not in listed]
            changes = [self._begin(resource, listed)] if resource.key not in self._values else []
            # Most are as they were, or have just been taken over.
            values, look = self._values[resource.key], bool(self._gaps)
            changes += [
                self._put(resource, item)
                for at, item in listed.items()
                if item.value is not values.get(at) or item.problem or look
            ]
            changes += [self._drop(resource, at) for at in gone]
            changes += [self._set_gap(gap, "") for gap in stale if gap[2:]]
            return any(changes)

    def _begin(self, resource: Resource, listed: Mapping[Key, Decoded]) -> bool:
        """Takes the first list of a kind: no pod in it has taken room just now."""
        values = {at: item.value for at, item in listed.items() if item.value is not None and not item.problem}
        self._values[resource.key] = values if resource.key != CONFIG_MAPS.key else {}
        return bool(values) and self._changed(_part_of(resource), "objects")

    def set_gap(self, subject: Resource | str, words: str) -> bool:
        """Takes what is said of something that cannot be read (`cannot be read: why`), or "" once it can be; returns whether the next view
        differs. subject: a kind, or a name for something else."""
        with self._lock:
            return self._set_gap((subject,) if isinstance(subject, str) else subject.key, words)

    def set_apis(self, apis: Mapping[Key, tuple[str, ...]]) -> bool:
        """Takes the versions served by (group, kind), the preferred first; returns whether the next view differs."""
        with self._lock:
            if apis == self._apis:
                return False
            self._apis = dict(sorted(apis.items()))
            return self._changed("apis")

    def uid_of(self, ref: ObjectRef) -> str:
        """The uid of an object in the store; "" if it does not exist or has none."""
        with self._lock:
            value = self._values.get((ref.group, ref.kind), {}).get((ref.namespace, ref.name))
        return getattr(value, "uid", "")

    def objects(self) -> Mapping[ObjectRef, LiveObject]:
        """The objects of declared kinds, as in the next view."""
        with self._lock:
            return self._part("objects", self._objects)

    def view(self) -> ClusterView:
        """The present view; the same object as before if nothing changed."""
        with self._lock:
            if self._view is None:
                self._view = self._make_view()
            return self._view

    def _put(self, resource: Resource, decoded: Decoded) -> bool:
        key = (decoded.namespace, decoded.name)
        problem = bool(decoded.problem or self._gaps) and self._set_gap((*resource.key, *key), decoded.problem)
        if decoded.problem and decoded.value is None:
            return problem
        if resource.key == CONFIG_MAPS.key and key != (self._parent.namespace, self._parent.name):
            return problem
        if decoded.value is None:
            return self._drop(resource, key) or problem
        values, value = self._values.setdefault(resource.key, {}), decoded.value
        before = values.get(key)
        if before is value or (before is not None and before == value):
            return problem
        values[key] = value
        used = node_newly_used(before, value)
        if (before and begins_to_go(before, value)) or (used and is_held(self._values[NODES.key].get(("", used)))):
            self._room_taken += 1
        if is_starting(before) and is_held(value) and not any(map(is_starting, self._values[NODE_CLAIMS.key].values())):
            self._room_came += 1
        return self._changed(*_parts_of(resource, value))

    def _drop(self, resource: Resource, key: Key) -> bool:
        gone = self._values.get(resource.key, {}).pop(key, None)
        if gone is None:
            return False
        self._room_taken += is_held(gone)
        return self._changed(*_parts_of(resource, gone))

    def _set_gap(self, topic: tuple[str, ...], text: str) -> bool:
        if self._gaps.get(topic, "") == text:
            return False
        if text:
            self._gaps[topic] = text
        else:
            del self._gaps[topic]
        return self._changed("gaps")

    def _changed(self, *parts: str) -> bool:
        for part in parts:
            self._made.pop(part, None)
            self._made.pop(_FOLLOWING.get(part, part), None)
        self._revision += 1
        self._view = None
        return True

    def _make_view(self) -> ClusterView:
        pods, finished_pods = self._part("pods by phase", self._pods_by_phase)
        parts: dict[str, dict[str, Any]] = {"": {}, "storage": {}}
        for resource in RESOURCES:
            holder, _, name = resource.part.rpartition(".")
            if name:
                parts[holder][name] = self._sorted(resource)
        parts[""] |= {
            "pods": pods,
            "daemon_sets": self._part("admitted daemon_sets", self._daemon_sets),
            "namespaces": self._part("namespaces by name", self._namespaces),
        }
        return ClusterView(
            revision=str(self._revision),
            complete=not self._part("gaps", self._all_gaps),
            unread=frozenset(topic[1] for topic in self._gaps if len(topic) > 1),
            gaps=self._part("gaps", self._all_gaps),
            **parts[""],
            finished_pods=finished_pods,
            workloads=self._part("workloads", self._workloads),
            storage=Storage(**parts["storage"]),
            objects=self._part("objects", self._objects),
            apis=self._apis,
            inventory=self._part("inventory", self._inventory),
            catalog=self._catalog,
        )

    def _part(self, name: str, make: Callable[[], _T]) -> _T:
        if name not in self._made:
            self._made[name] = make()
        return cast("_T", self._made[name])

    def _sorted(self, resource: Resource) -> tuple[Any, ...]:
        values = self._values.get(resource.key, {})
        return self._part(
            _part_of(resource), lambda: tuple(value for _, value in sorted(values.items(), key=itemgetter(0)))
        )

    def _pods_by_phase(self) -> tuple[tuple[Pod, ...], tuple[Pod, ...]]:
        """Pods that take room or wait for it, and finished ones."""
        every: tuple[Pod, ...] = self._sorted(PODS)
        finished = tuple(pod for pod in every if pod.is_finished)
        return (tuple(pod for pod in every if not pod.is_finished) if finished else every), finished

    def _daemon_sets(self) -> tuple[DaemonSet, ...]:
        classes = self._sorted(RUNTIME_CLASSES)
        values: tuple[DaemonSet, ...] = self._sorted(DAEMON_SETS)
        return tuple(replace(value, shape=admitted(value.shape, classes)) for value in values)

    def _workloads(self) -> tuple[Any, ...]:
        found = [
            (key, kind, value)
            for kind, values in self._values.items()
            for key, value in values.items()
            if kind not in _APART and not isinstance(value, LiveObject)
        ]
        return tuple(value for _, _, value in sorted(found, key=lambda item: item[:2]))

    def _objects(self) -> dict[ObjectRef, LiveObject]:
        found = [
            value
            for kind, values in self._values.items()
            if kind not in _APART
            for value in values.values()
            if isinstance(value, LiveObject)
        ]
        return {item.ref: item for item in sorted(found, key=lambda item: item.ref)}

    def _namespaces(self) -> dict[str, Mapping[str, str]]:
        values: tuple[NamespaceLabels, ...] = self._sorted(NAMESPACES)
        return {value.name: value.labels for value in values}

    @property
    def room_changes(self) -> tuple[int, int]:
        """How often held room was taken so far, by a pod bound there or by the removal of a node; and how often it came: the last held node
        that was on its way has become initialized."""
        return self._room_taken, self._room_came

    @property
    def requested_at(self) -> str:
        """The annotation that asks for a pass. A cheap call, needed at every change, without a view."""
        with self._lock:
            return self._recorded().requested_at

    def _inventory(self) -> Inventory:
        members = (
            ref
            for ref, item in self._part("objects", self._objects).items()
            if (item.body.get("metadata", {}).get("labels") or {}).get(PART_OF_LABEL) == self._parent.id
        )
        return replace(self._recorded(), members=frozenset(members))

    def _recorded(self) -> Inventory:
        """What the inventory's object says."""
        at = (self._parent.namespace, self._parent.name)
        return cast("Inventory", self._values.get(CONFIG_MAPS.key, {}).get(at, Inventory()))

    def _all_gaps(self) -> tuple[str, ...]:
        """The gaps, grouped. A server that does not answer leaves no kind readable, for the same reason. One webhook or version can make every
        object of a kind unreadable, with similar messages."""
        subjects: dict[str, list[str]] = {}
        of_objects: dict[str, list[str]] = {}
        for topic, words in self._gaps.items():
            match topic:
                case (_, kind, _, _):
                    of_objects.setdefault(kind, []).append(words)
                case (group, kind):
                    subjects.setdefault(words, []).append(str(BY_KIND[group, kind]))
                case _:
                    subjects.setdefault(words, []).append(topic[0])
        rows = [f"{listed(sorted(names), most=_MOST_SUBJECTS)} {words}" for words, names in subjects.items()]
        rows += [row for kind, texts in of_objects.items() for row in _grouped(kind, sorted(texts))]
        return tuple(sorted(rows))


def _grouped(kind: str, texts: Sequence[str]) -> Iterator[str]:
    """The gaps of one kind. texts: of its unreadable objects."""
    more = len(texts) - _MOST_GAPS
    yield from texts[: _MOST_GAPS if more > 1 else None]
    if more > 1:
        yield f"{more:,} more of kind {kind} cannot be read"


def _parts_of(resource: Resource, value: object) -> tuple[str, ...]:
    """The parts of a view that this value belongs to. A Deployment of balloon pods is an object, not a workload."""
    part = _part_of(resource)
    return (part, "objects") if isinstance(value, LiveObject) and part != "objects" else (part,)


def _part_of(resource: Resource) -> str:
    return "objects" if resource.declared else resource.part or "workloads"
