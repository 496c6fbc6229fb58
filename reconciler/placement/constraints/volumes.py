"""Where a pod's volumes allow it to be: alternative node requirements, or the reason why it can be nowhere.

Judged as kube-scheduler's plugins VolumeBinding, VolumeZone and VolumeRestrictions do. A bound volume restricts the pod to the
volume's node affinity and zone. A claim with WaitForFirstConsumer restricts it to where its class may provision a volume, or where
a matching one is available. Every other claim must be bound first.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.attachments import NO_PROVISIONER, PersistentVolume, Storage, StorageClass, VolumeClaim
from reconciler.model.pods import NodeSelectorTerm
from reconciler.model.requirements import Operator, Requirement

_SEVERAL = "__"
"""Separates the zones in the label of a volume that is in several."""
ANYWHERE = (NodeSelectorTerm(),)


class Obstacle(Exception):  # noqa: N818 - a fact about a pod, not a fault
    """Why a claim keeps its pod off every node."""


class Volumes:
    """The cluster's storage, indexed."""

    def __init__(self, storage: Storage) -> None:
        self._claims = {(claim.namespace, claim.name): claim for claim in storage.claims}
        self._volumes = {volume.name: volume for volume in storage.volumes}
        self._classes = {item.name: item for item in storage.classes}
        defaults = [item.name for item in storage.classes if item.default]
        self._default = max(defaults, default="")
        self.competing: set[str] = set()
        """Storage classes with volumes made in advance, which several claims may compete for."""

    def claim(self, namespace: str, name: str) -> VolumeClaim | None:
        return self._claims.get((namespace, name))

    def places(self, namespace: str, name: str, pod_uid: str | None = None) -> tuple[NodeSelectorTerm, ...]:
        """Alternatives, of which a node must meet one. Raises `Obstacle` where there is none.

        pod_uid: the pod that must own the claim, as with ephemeral volumes; None where any may."""
        claim = self._claims.get((namespace, name))
        if claim is None:
            raise Obstacle(f"PersistentVolumeClaim/{namespace}/{name} does not exist")
        if claim.deleting:
            raise Obstacle(f"{claim} is being deleted")
        if claim.lost:
            raise Obstacle(f"{claim} has lost its volume")
        if pod_uid is not None and claim.controller != pod_uid:
            raise Obstacle(f"{claim} was not made for the pod, though its ephemeral volume's claim has that name")
        if claim.volume:
            return self._bound(claim)
        return self._unbound(claim)

    def waits(self, namespace: str, name: str) -> bool:
        """Whether a claim gets its volume only where its first pod goes (WaitForFirstConsumer)."""
        claim = self._claims.get((namespace, name))
        return claim is not None and not claim.volume and not claim.selected_node

    def volume(self, namespace: str, name: str) -> str:
        """The driver's handle of the claim's volume, which several claims may share; the claim's name while it has no volume."""
        claim = self._claims.get((namespace, name))
        volume = self._volumes.get(claim.volume) if claim is not None and claim.volume else None
        return f"{namespace}/{name}" if volume is None else f"{volume.driver}/{volume.handle or volume.name}"

    def driver(self, namespace: str, name: str) -> str:
        """The CSI driver that attaches the claim's volume; "" where that is not known."""
        claim = self._claims.get((namespace, name))
        if claim is None:
            return ""
        volume = self._volumes.get(claim.volume)
        if volume is not None:
            return volume.driver
        found = self._classes.get(self._class_name(claim))
        return "" if found is None or found.provisioner == NO_PROVISIONER else found.provisioner

    def _bound(self, claim: VolumeClaim) -> tuple[NodeSelectorTerm, ...]:
        if not claim.bound:
            raise Obstacle(f"{claim} is not bound to volume {claim.volume} yet")
        volume = self._volumes.get(claim.volume)
        if volume is None:
            raise Obstacle(f"{claim} is bound to volume {claim.volume}, which does not exist")
        places = _places_of(volume)
        if not places:
            raise Obstacle(f"volume {volume.name} has a node affinity that no node meets")
        return places

    def _class_name(self, claim: VolumeClaim) -> str:
        return self._default if claim.storage_class is None else claim.storage_class

    def _unbound(self, claim: VolumeClaim) -> tuple[NodeSelectorTerm, ...]:
        name = self._class_name(claim)
        if not name:
            raise Obstacle(f"{claim} is not bound and names no storage class")
        found = self._classes.get(name)
        if found is None:
            raise Obstacle(f"{claim}: there is no storage class {name}")
        if not found.waits:
            raise Obstacle(f"{claim} is not bound yet, and its storage class {name} binds before pods are placed")
        if claim.selected_node:
            return self._being_made(claim, found)
        ready = [place for volume in self._ready(claim, found) for place in _places_of(volume)]
        if found.provisioner != NO_PROVISIONER:
            return (*ready, *found.topologies) if found.topologies else ANYWHERE
        if not ready:
            raise Obstacle(f"{claim}: no volume of storage class {name} is free that is large enough")
        self.competing.add(name)
        return tuple(ready)

    def _being_made(self, claim: VolumeClaim, found: StorageClass) -> tuple[NodeSelectorTerm, ...]:
        """Until the volume exists, kube-scheduler keeps every pod of the claim on the node it selected for the first."""
        if found.provisioner == NO_PROVISIONER:
            raise Obstacle(
                f"{claim} waits for a volume for node {claim.selected_node}, and its storage class makes none"
            )
        there = (Requirement("metadata.name", Operator.IN, (claim.selected_node,)),)
        return tuple(NodeSelectorTerm(term.expressions, there) for term in found.topologies or ANYWHERE)

    def _ready(self, claim: VolumeClaim, found: StorageClass) -> Iterable[PersistentVolume]:
        """Available volumes that belong to no claim and satisfy this one."""
        for volume in self._volumes.values():
            free = volume.claim is None or volume.claim == (claim.namespace, claim.name)
            large = volume.capacity >= claim.requested and set(claim.access_modes) <= set(volume.access_modes)
            if free and large and volume.storage_class == found.name:
                yield volume


def _places_of(volume: PersistentVolume) -> tuple[NodeSelectorTerm, ...]:
    """The volume's node affinity as alternatives; () for a volume that no node can reach."""
    terms = tuple(term for term in volume.terms if term.expressions or term.fields)
    if volume.terms and not terms:
        return ()
    if not volume.labels:
        return terms or ANYWHERE
    return tuple(
        NodeSelectorTerm((*term.expressions, *place.expressions), term.fields)
        for term in terms or ANYWHERE
        for place in _labelled_places(volume)
    )


def _labelled_places(volume: PersistentVolume) -> tuple[NodeSelectorTerm, ...]:
    """The volume's zone and region labels as requirements. A node that has neither label meets them too."""
    there = tuple(Requirement(key, Operator.IN, tuple(value.split(_SEVERAL))) for key, value in volume.labels)
    nowhere = tuple(Requirement(key, Operator.DOES_NOT_EXIST) for key, _ in volume.labels)
    return (NodeSelectorTerm(there), NodeSelectorTerm(nowhere))
