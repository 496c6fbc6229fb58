"""The embedded cluster as other clients, the provider and the kubelet of a test see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from reconciler.cluster.embedded.cluster import EmbeddedCluster
from reconciler.cluster.embedded.fields import Manager
from reconciler.cluster.embedded.store import SERVED, Body
from reconciler.cluster.resources import group_of
from reconciler.model.errors import Invalid
from reconciler.model.nodes import node_claim_ref, node_ref
from reconciler.model.refs import DEFAULT_NAMESPACE, ObjectRef
from reconciler.ports import Event

UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event, and how often it came."""

    event: Event
    count: int = 1


class PlayedCluster(EmbeddedCluster):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._recorded: Counter[Event] = Counter()

    def record(self, event: Event) -> None:
        """Keeps what headroom records."""
        self._recorded[event] += 1

    @property
    def events(self) -> tuple[RecordedEvent, ...]:
        """The oldest first."""
        return tuple(RecordedEvent(event, count) for event, count in self._recorded.items())

    def get(self, ref: ObjectRef) -> Body | None:
        """An object, as from the API."""
        with self._lock:
            self._world.advance(self._clock.now())
            return self._world.store.get(ref)

    def live(self, ref: ObjectRef) -> Body:
        """An object that is there."""
        body = self.get(ref)
        assert body is not None
        return body

    def apply(self, manifest: Mapping[str, Any], *, manager: str = "kubectl") -> Body:
        """A server-side apply of another client. Raises `Invalid` or `Conflicting`."""
        ref = self._ref_of(manifest)
        with self._acting():
            self._world.store.apply(ref, manifest, Manager(manager), force=False)
        return self.live(ref)

    def delete(self, ref: ObjectRef) -> bool:
        """Deletes an object; False if it does not exist. Deleting a NodeClaim drains its node."""
        with self._acting():
            return self._world.store.delete(ref)

    def scale(self, ref: ObjectRef, replicas: int, *, manager: str = "kubectl") -> None:
        """Scales as through the scale subresource. The manager, such as an autoscaler, then owns the field."""

        def write(copy: dict[str, Any]) -> None:
            copy["spec"]["replicas"] = replicas

        with self._acting():
            self._world.store.change(ref, write, manager, subresource="scale")

    def set_stock(self, instance_type: str, zone: str, capacity_type: str, *, available: bool) -> None:
        """Sets whether this offering can be launched from now on. The catalog keeps listing it."""
        with self._acting():
            change = self._world.market.sold_out.discard if available else self._world.market.sold_out.add
            change((instance_type, zone, capacity_type))

    def interrupt(self, node: str) -> None:
        """The provider reclaims the instance with a warning: Karpenter drains it at once, whatever protects it."""
        with self._acting():
            self._karpenter._delete_claim_of(node)

    def lose(self, node: str) -> None:
        """The instance vanishes with its pods."""
        with self._acting():
            claim = self._world.claim_of(node)
            self._karpenter._end(node_claim_ref(claim.name if claim else ""), claim.uid if claim else "", node)

    def set_ready(self, node: str, *, ready: bool) -> None:
        """Sets whether the node's kubelet reports, with the taint of a node that does not. Pods are not evicted, however long it lasts."""

        def write(copy: dict[str, Any]) -> None:
            self._world.set_condition(copy, "Ready", "True" if ready else "Unknown", "Kubelet")
            taints = [item for item in copy["spec"].get("taints", ()) if item["key"] != UNREACHABLE_TAINT]
            copy["spec"]["taints"] = taints if ready else [*taints, {"key": UNREACHABLE_TAINT, "effect": "NoSchedule"}]

        with self._acting():
            self._world.store.change(node_ref(node), write, "kube-controller-manager")

    @contextmanager
    def _acting(self) -> Iterator[None]:
        """Simulates what is due, lets the caller act, simulates the consequences, and notifies listeners."""
        with self._lock:
            self._world.advance(self._clock.now())
            yield
            self._world.advance(self._clock.now())
            self._due.notify_all()
        self._tell()

    def _ref_of(self, manifest: Mapping[str, Any]) -> ObjectRef:
        """The object of a manifest. An absent namespace is `default`. Raises `Invalid` for a kind that is not served."""
        key = (group_of(str(manifest.get("apiVersion", ""))), str(manifest.get("kind", "")))
        resource, metadata = SERVED.get(key) or self._world.store.scaled.get(key), manifest.get("metadata") or {}
        if resource is None:
            raise Invalid(f"no matches for kind {key[1]!r} in version {manifest.get('apiVersion')!r}")
        namespace = (metadata.get("namespace") or DEFAULT_NAMESPACE) if resource.namespaced else ""
        return ObjectRef(resource.group, resource.kind, namespace, str(metadata.get("name", "")))
