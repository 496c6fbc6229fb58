"""Volumes: where pods can reach theirs, which pods may share one, and how many a node has.

The rules are those of kube-scheduler's plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits (package
nodevolumelimits). Pods with resource claims may be nowhere, since nobody looks at devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.attachments import NO_PROVISIONER, PersistentVolume, Storage, StorageClass, VolumeClaim
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.checker.checked_nodes import CheckedNode
from reconciler.placement.checker.node_rules import surely_holds, term_holds

_Key = tuple[str, str]
"""A claim's namespace and name."""


class CheckedVolumes:
    """The cluster's storage, indexed."""

    def __init__(self, storage: Storage) -> None:
        self._claims = {(item.namespace, item.name): item for item in storage.claims}
        self._volumes = {item.name: item for item in storage.volumes}
        self._of_class: dict[str, list[PersistentVolume]] = {}
        for volume in storage.volumes:
            self._of_class.setdefault(volume.storage_class, []).append(volume)
        self._classes = {item.name: item for item in storage.classes}
        # Of several default classes the last by name counts, since the view does not tell which is the newest.
        self._default = next((item for item in reversed(storage.classes) if item.default), None)
        self._limits: dict[str, Mapping[str, int]] = {item.node: dict(item.limits) for item in storage.limits}

    def misplaced(self, node: CheckedNode, shape: PodShape) -> Iterable[str]:
        """VolumeBinding and VolumeZone, for one node and one pod."""
        if shape.claims_devices:
            yield "its resource claims are not judged"
        made_for = dict(shape.ephemeral_claims)
        for name in shape.volume_claims:
            claim, words = self._claims.get((shape.namespace, name)), f"claim {shape.namespace}/{name}"
            if (
                claim is None
                or claim.deleting
                or claim.lost
                or made_for.get(name, claim.controller) != claim.controller
            ):
                yield f"{words} cannot be used"
            elif claim.volume:
                volume = self._volumes.get(claim.volume)
                if volume is None or not claim.bound or not _is_reached(node, volume):
                    yield f"the volume of {words} cannot be had there"
            elif not self._can_be_bound(node, claim):
                yield f"no volume for {words} can be had there"

    def _can_be_bound(self, node: CheckedNode, claim: VolumeClaim) -> bool:
        """For a claim with WaitForFirstConsumer: whether an available volume can be reached, or one provisioned for the node."""
        found = self._class_of(claim)
        if found is None or not found.waits:
            return False
        can_be_made = found.provisioner != NO_PROVISIONER and _meets_any(node, found.topologies)
        if claim.selected_node:
            # Until the volume exists, VolumeBinding allows pods of the claim on no other node.
            return can_be_made and node.exists and node.name == claim.selected_node
        return can_be_made or any(_is_reached(node, volume) for volume in self._ready(claim, found))

    def _ready(self, claim: VolumeClaim, storage_class: StorageClass) -> Iterable[PersistentVolume]:
        for volume in self._of_class.get(storage_class.name, ()):
            free = volume.claim in {None, (claim.namespace, claim.name)}
            if free and volume.capacity >= claim.requested and set(claim.access_modes) <= set(volume.access_modes):
                yield volume

    def _class_of(self, claim: VolumeClaim) -> StorageClass | None:
        return self._default if claim.storage_class is None else self._classes.get(claim.storage_class)

    def shared_violations(self, nodes: Sequence[CheckedNode]) -> Iterable[str]:
        """VolumeRestrictions: only one pod may use a claim with ReadWriteOncePod (KEP-2485)."""
        users: Counter[_Key] = Counter()
        asked: set[_Key] = set()
        for item in (item for node in nodes for item in node.occupants if item.shape.volume_claims):
            keys = [(item.shape.namespace, name) for name in item.shape.volume_claims]
            users.update(dict.fromkeys(keys, item.count))
            asked.update(keys if item.is_chunk else ())
        for namespace, name in sorted(asked):
            claim, count = self._claims.get((namespace, name)), users[namespace, name]
            if claim is not None and claim.is_for_one_pod and count > 1:
                yield f"claim {namespace}/{name} is for one pod and has {count}"

    def limit_violations(self, node: CheckedNode) -> Iterable[str]:
        """NodeVolumeLimits. A volume counts once, however many pods of the node use it. A new node is not judged, as in Karpenter."""
        chunks = {self._attached(key) for item in node.occupants if item.is_chunk for key in _claims_of(item.shape)}
        if not chunks:
            return
        pods = {self._attached(key) for item in node.occupants if not item.is_chunk for key in _claims_of(item.shape)}
        attached = Counter(driver for driver, _ in chunks | pods)
        added = {driver for driver, _ in chunks - pods}
        for driver, limit in self._limits.get(node.name, {}).items() if node.exists else ():
            if attached[driver] > limit and driver in added:
                yield f"{node.name}: {attached[driver]} volumes of {driver} are attached, {limit} can be"

    def _attached(self, key: _Key) -> tuple[str, tuple[str, ...]]:
        """Driver and identity of a claim's volume. Several volumes may be the same one to their driver."""
        claim = self._claims.get(key)
        volume = self._volumes.get(claim.volume) if claim is not None else None
        if volume is not None:
            return volume.driver, (volume.handle,) if volume.handle else (volume.name, "")
        found = self._class_of(claim) if claim is not None else None
        return "" if found is None or found.provisioner == NO_PROVISIONER else found.provisioner, key


def _claims_of(shape: PodShape) -> list[_Key]:
    return [(shape.namespace, name) for name in shape.volume_claims]


def _is_reached(node: CheckedNode, volume: PersistentVolume) -> bool:
    """Whether the node meets the volume's node affinity and zone labels. A node without any of these labels does (VolumeZone)."""
    if not _meets_any(node, volume.terms):
        return False
    if all(node.values(key) == {None} for key, _ in volume.labels):
        return True
    zones = [Requirement(key, Operator.IN, tuple(value.split("__"))) for key, value in volume.labels]
    return all(surely_holds(node, item) for item in zones)


def _meets_any(node: CheckedNode, terms: Sequence[NodeSelectorTerm]) -> bool:
    return not terms or any(term_holds(node, term) for term in terms)
