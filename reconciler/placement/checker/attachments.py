"""Volumes and devices: where pods can reach theirs, which pods may share one, and how many a node has.

The rules are those of kube-scheduler's plugins VolumeBinding, VolumeZone, VolumeRestrictions, NodeVolumeLimits (package
nodevolumelimits) and DynamicResources (KEP-4381).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations

from reconciler.model.attachments import (
    NO_PROVISIONER,
    ClaimSpec,
    Device,
    DeviceName,
    Devices,
    PersistentVolume,
    ResourceClaim,
    ResourceSlice,
    Storage,
    StorageClass,
    VolumeClaim,
)
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.requirements import Operator, Requirement
from reconciler.placement.checker.checked_nodes import CheckedNode, IndexedProblem, SampleNodes
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


def device_violations(problem: IndexedProblem, samples: SampleNodes, nodes: Sequence[CheckedNode]) -> Iterable[str]:
    """Devices are counted for every set of classes. However the classes overlap, the set's requests together must not exceed the
    devices that any of them selects. Claims that cannot be counted are skipped: the placement reports them as not judged.
    """
    claiming = [node for node in nodes if any(map(_claims_devices, node.shapes()))]
    if not claiming:
        return
    claims = _Claims(problem)
    inventory = _Inventory(problem.cluster.devices, claims.classes_asked(problem), samples)
    for node in claiming:
        running, minimum, empty = Counter[str](), Counter[str](), Counter[str]()
        for occupant in node.occupants:
            shape = claims.owned(occupant.shape)
            if not occupant.is_chunk or not _claims_devices(shape):
                continue
            missing = [f"{node.name}: {words} does not exist" for words in claims.missing(shape)]
            yield from missing
            if not missing:
                yield from inventory.misplaced(node, claims.named(shape))
                asked = inventory.countable(claims.unallocated(shape))
                total = running if occupant.is_pending else minimum if occupant.keeps_minimum else empty
                total.update({name: count * occupant.count for name, count in asked.items()})
        # Running pods may be the very ones that a minimum is kept for.
        yield from inventory.overcommitted(node, (running | minimum) + empty)


def _claims_devices(shape: PodShape) -> bool:
    return bool(shape.resource_claims or shape.resource_claim_templates or shape.generated_claims)


class _Claims:
    """ResourceClaims and templates, indexed."""

    def __init__(self, problem: IndexedProblem) -> None:
        devices = problem.cluster.devices
        self._classes = {item.name for item in devices.classes}
        self._templates = {(item.namespace, item.name): item.spec for item in devices.templates}
        self._claims = {(item.namespace, item.name): item for item in devices.claims}
        bound = [(pod.shape, 1) for pod in problem.cluster.pods if pod.node_name is not None]
        self._users = Counter[tuple[str, str]]()
        for shape, count in (*((self.owned(shape), count) for shape, count in problem.asked()), *bound):
            self._users.update({(shape.namespace, name): count for name in shape.resource_claims})

    def owned(self, shape: PodShape) -> PodShape:
        """The shape with claims made for the pod among those it names. For one that is gone or another pod's, the template counts."""
        for made in shape.generated_claims:
            claim = self._claims.get((shape.namespace, made.name))
            if claim is not None and claim.owner == made.owner:
                others = (name for name in shape.resource_claims if name != made.name)
                shape = replace(shape, resource_claims=(*others, made.name))
            else:
                shape = replace(shape, resource_claim_templates=(*shape.resource_claim_templates, made.template))
        return shape

    def classes_asked(self, problem: IndexedProblem) -> set[str]:
        specs = (spec for shape, _ in problem.asked() for spec in self._specs(self.owned(shape)))
        return {request.device_class for spec in specs for request in spec.requests}

    def missing(self, shape: PodShape) -> Iterable[str]:
        """Objects that the pod refers to but that do not exist. Until they do, it cannot be on any node."""
        for name in shape.resource_claim_templates:
            if (shape.namespace, name) not in self._templates:
                yield f"ResourceClaimTemplate {shape.namespace}/{name}"
        for name in shape.resource_claims:
            if (shape.namespace, name) not in self._claims:
                yield f"ResourceClaim {shape.namespace}/{name}"
        allocated = {claim.name for claim in self.named(shape) if claim.allocated}
        for spec in self._specs(shape, without=allocated):
            for request in spec.requests if spec.simple else ():
                if request.device_class not in self._classes:
                    yield f"DeviceClass {request.device_class}"

    def named(self, shape: PodShape) -> list[ResourceClaim]:
        found = (self._claims.get((shape.namespace, name)) for name in shape.resource_claims)
        return [claim for claim in found if claim is not None]

    def unallocated(self, shape: PodShape) -> Iterable[ClaimSpec]:
        """Claims without devices so far. A claim that several pods share is not judged."""
        shared = {name for name in shape.resource_claims if self._users[shape.namespace, name] > 1}
        allocated = {claim.name for claim in self.named(shape) if claim.allocated}
        return self._specs(shape, without=shared | allocated)

    def _specs(self, shape: PodShape, *, without: Collection[str] = ()) -> Iterable[ClaimSpec]:
        """The specs of all templates, and of all claims except these."""
        templates = (self._templates.get((shape.namespace, name)) for name in shape.resource_claim_templates)
        yield from (spec for spec in templates if spec is not None)
        yield from (claim.spec for claim in self.named(shape) if claim.name not in without)


class _Inventory:
    """Devices by node and by the classes that select them."""

    def __init__(self, devices: Devices, asked: Collection[str], samples: SampleNodes) -> None:
        self._samples = samples
        self._taken = {device for claim in devices.claims for device in claim.allocated}
        self._node_of: dict[DeviceName, str] = {}
        self._on_node: dict[str, set[DeviceName]] = {}
        uncounted: set[DeviceName] = set()
        """Devices that are not allocated whole, or belong to no single node."""
        published = [(item, device) for item in _complete(devices.slices) for device in item.devices]
        for item, device in published:
            name = _name(item, device)
            self._on_node.setdefault(self._node_of.setdefault(name, item.node), set()).add(name)
            if not (device.simple and item.node):
                uncounted.add(name)
        self._selected = {
            found.name: frozenset(
                _name(item, device) for item, device in published if found.selects(item.driver, device)
            )
            for found in devices.classes
            if found.name in asked and found.is_simple
        }
        # If classes overlap only in part, nobody knows for which of them a device will be allocated.
        self._countable = {
            name
            for name, own in self._selected.items()
            if not own & uncounted and all(other == own or not other & own for other in self._selected.values())
        }

    def misplaced(self, node: CheckedNode, claims: Iterable[ResourceClaim]) -> Iterable[str]:
        """Claims whose devices belong to another node. That is known only if all of them belong to one node."""
        for claim in claims:
            nodes = {self._node_of.get(device, "") for device in claim.allocated}
            if len(nodes) == 1 and "" not in nodes and not (node.exists and node.name in nodes):
                yield f"{node.name}: the devices of claim {claim.namespace}/{claim.name} are elsewhere"

    def countable(self, specs: Iterable[ClaimSpec]) -> Counter[str]:
        """Requested devices by class, from specs in which everything can be counted."""
        found = Counter[str]()
        for spec in specs:
            if spec.simple and all(request.device_class in self._countable for request in spec.requests):
                for request in spec.requests:
                    found[request.device_class] += request.count
        return found

    def overcommitted(self, node: CheckedNode, asked: Counter[str]) -> Iterable[str]:
        names = sorted(asked)
        for some in chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1)):
            count = sum(asked[name] for name in some)
            free = self._free(node, some)
            if count > free:
                yield f"{node.name}: {count} devices of {' and '.join(some)} are asked for, {free} are free"

    def _free(self, node: CheckedNode, classes: Sequence[str]) -> int:
        """Free devices that any of these classes selects. On a node that is coming up a pool counts once all of its slices exist."""
        selected = frozenset[DeviceName]().union(*(self._selected[name] for name in classes))
        if node.exists and (node.name in self._on_node or node.name in self._samples.up):
            return len(self._on(node.name, selected) - self._taken)
        return min(self._expected(pool, instance_type, selected) for pool, instance_type in node.pools_and_types())

    def _expected(self, pool: str, instance_type: str, selected: frozenset[DeviceName]) -> int:
        """How many of these devices each node of that NodePool and type has; 0 where they differ."""
        names = self._samples.names(pool, instance_type)
        counts = {len(self._on(name, selected)) for name in names}
        return counts.pop() if len(counts) == 1 else 0

    def _on(self, node: str, selected: frozenset[DeviceName]) -> frozenset[DeviceName]:
        return selected & self._on_node.get(node, set())


def _name(item: ResourceSlice, device: Device) -> DeviceName:
    return (item.driver, item.pool, device.name)


def _complete(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of each pool's newest generation, where that is complete (dynamic-resource-allocation, structured.GatherPools)."""
    generations: dict[tuple[str, str], Counter[int]] = {}
    for item in slices:
        generations.setdefault((item.driver, item.pool), Counter())[item.generation] += 1
    found = []
    for item in slices:
        counts = generations[item.driver, item.pool]
        if item.generation == max(counts) and counts[item.generation] >= item.slices:
            found.append(item)
    return found
