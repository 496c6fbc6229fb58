"""Volumes of pods, judged before anything is placed: where they allow a pod to be, or the reason why it can be nowhere.

They become node requirements and countable resources of the pods' shapes. Only pending pods have any. Resource claims (Dynamic Resource
Allocation), which chunks may have too, are not judged: no node takes their pods. Volumes are judged as kube-scheduler's plugins
VolumeBinding, VolumeZone and VolumeRestrictions do. A bound volume restricts the pod to the volume's node affinity and zone. A claim with
WaitForFirstConsumer restricts it to where its class may provision a volume, or where a matching one is available. Every other claim must
be bound first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from reconciler.model.attachments import NO_PROVISIONER, PersistentVolume, Storage, StorageClass, VolumeClaim
from reconciler.model.demand import ChunkGroup
from reconciler.model.nodes import Node
from reconciler.model.pods import CLAIMS_NOT_JUDGED, NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.arrays import ATTACHABLE
from reconciler.placement.phrases import place_words
from reconciler.placement.problem import Problem
from reconciler.placement.requirements import Requirements

_MOST_ALTERNATIVES = 256
_UNLIMITED = 2**40
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


def with_volumes(problem: Problem) -> tuple[Problem, tuple[str, ...]]:
    """The same problem with volumes as requirements and resources, and what was not judged."""
    judge = _Judge(problem)
    # In the order in which pods are placed: a claim for one pod goes to the first.
    order = sorted(problem.demands, key=attrgetter("order"))
    judged = {id(demand): demand.with_shapes(judge.shape) for demand in order}
    problem = replace(problem, demands=[judged[id(demand)] for demand in problem.demands])
    drivers = sorted(judge.drivers)
    if drivers:
        problem = replace(problem, view=_with_limits(problem.view, drivers, judge.attached))
    return problem, judge.assumptions()


class _Judge:
    """Judges shapes with volume claims.

    drivers: those with a limit on some node and a volume that some pod needs. attached: by node, the volumes that its pods use,
    each with its driver.
    """

    def __init__(self, problem: Problem) -> None:
        self._volumes = Volumes(problem.view.storage)
        self._limited = {driver for node in problem.view.storage.limits for driver, _ in node.limits}
        self.drivers: set[str] = set()
        self.attached: dict[str, dict[str, str]] = {}
        self._judged: dict[int, PodShape] = {}
        """By identity of the shape, which its demand keeps alive."""
        self._taken: set[str] = set()
        """ReadWriteOncePod claims that some pod uses."""
        self._users: Counter[tuple[str, str]] = Counter()
        for pod in problem.view.pods:
            if pod.node_name is not None and pod.shape.volume_claims:
                self._run(pod.node_name, pod.shape)
        for demand in problem.demands:
            for group in demand.groups:
                self._users.update(dict.fromkeys(claims_of(group.shape), group.count))

    def _run(self, node: str, shape: PodShape) -> None:
        there = self.attached.setdefault(node, {})
        for claim in claims_of(shape):
            there[self._volumes.volume(*claim)] = self._volumes.driver(*claim)
        self._taken.update(self._claims_for_one_pod(shape))

    def _claims_for_one_pod(self, shape: PodShape) -> list[str]:
        """Claims with access mode ReadWriteOncePod."""
        claims = (self._volumes.claim(*claim) for claim in claims_of(shape))
        return [str(claim) for claim in claims if claim is not None and claim.is_for_one_pod]

    def shape(self, group: ChunkGroup) -> PodShape:
        if group.shape.claims_devices:
            return _without_claims(group.shape, f"its pod names {CLAIMS_NOT_JUDGED}")
        if not group.shape.volume_claims:
            return group.shape
        for claim in self._claims_for_one_pod(group.shape):
            if claim in self._taken:
                return _without_claims(group.shape, f"{claim} is ReadWriteOncePod and another pod uses it")
            self._taken.add(claim)
        key = id(group.shape)
        if key not in self._judged:
            self._judged[key] = self._placed(group.shape)
        return self._judged[key]

    def _placed(self, shape: PodShape) -> PodShape:
        """The shape with its claims replaced: by where their volumes can be, and by what they count for on a node."""
        made_for = dict(shape.ephemeral_claims)
        try:
            by_claim = {
                f"PersistentVolumeClaim/{shape.namespace}/{name}": self._volumes.places(
                    shape.namespace, name, made_for.get(name)
                )
                for name in shape.volume_claims
            }
            places = _together(by_claim)
        except Obstacle as obstacle:
            return _without_claims(shape, str(obstacle))
        terms = () if NodeSelectorTerm() in places else tuple(dict.fromkeys(places))
        return replace(
            shape,
            attachment_terms=terms,
            attachment_places=tuple(
                (claim, found) for claim, found in by_claim.items() if NodeSelectorTerm() not in found
            ),
            requests=shape.requests + self._volumes_of(shape),
            volume_claims=(),
            ephemeral_claims=(),
        )

    def _volumes_of(self, shape: PodShape) -> Resources:
        """How many volumes of each driver it attaches. Several claims of the same volume count once."""
        drivers = {
            self._volumes.volume(*claim): driver
            for claim in claims_of(shape)
            if (driver := self._volumes.driver(*claim)) in self._limited
        }
        self.drivers.update(drivers.values())
        counts = Counter(drivers.values())
        return Resources.of((ATTACHABLE + driver, count) for driver, count in counts.items())

    def assumptions(self) -> tuple[str, ...]:
        competing = (
            f"storage class {name} has a fixed number of volumes: whether two claims want the same one is not judged"
            for name in sorted(self._volumes.competing)
        )
        shared = (
            f"{self._volumes.claim(*claim)} has no volume yet and {count} pods use it: that all of them must reach it is not judged"
            for claim, count in sorted(self._users.items())
            if count > 1 and self._volumes.waits(*claim)
        )
        return (*competing, *shared)


def _without_claims(shape: PodShape, obstacle: str) -> PodShape:
    return replace(shape, obstacle=obstacle, volume_claims=(), ephemeral_claims=())


def claims_of(shape: PodShape) -> list[tuple[str, str]]:
    """Namespace and name of each claim."""
    return [(shape.namespace, name) for name in shape.volume_claims]


def _together(by_claim: Mapping[str, tuple[NodeSelectorTerm, ...]]) -> tuple[NodeSelectorTerm, ...]:
    """Where all of the claims can be used. Raises `Obstacle` where that is nowhere."""
    together: tuple[NodeSelectorTerm, ...] = ANYWHERE
    for places in by_claim.values():
        together = tuple(_joined(together, places))[:_MOST_ALTERNATIVES]
        if not together:
            where = "; ".join(f"{claim} {words}" for claim, found in by_claim.items() if (words := place_words(found)))
            raise Obstacle(f"its volumes are in places that have no node in common: {where}")
    return together


def _joined(places: Iterable[NodeSelectorTerm], more: Iterable[NodeSelectorTerm]) -> Iterable[NodeSelectorTerm]:
    """Every pair of alternatives joined, without pairs that contradict each other."""
    others = list(more)
    for place in places:
        for other in others:
            if Requirements.of(place.expressions).conflict(Requirements.of(other.expressions)) is None:
                expressions = dict.fromkeys((*place.expressions, *other.expressions))
                yield NodeSelectorTerm(tuple(expressions), tuple(dict.fromkeys((*place.fields, *other.fields))))


def _with_limits(view: ClusterView, drivers: Sequence[str], attached: Mapping[str, Mapping[str, str]]) -> ClusterView:
    """The nodes with a driver's remaining volumes as a resource: plenty where a node says nothing, and on NodeClaims that are launched and
    have no node yet.

    attached: by node, volumes with their drivers."""
    limits = {item.node: dict(item.limits) for item in view.storage.limits}
    coming = {machine.name for machine in view.machines if machine.node is None}
    plenty = Resources.of((ATTACHABLE + driver, _UNLIMITED) for driver in drivers)

    def left(node: Node) -> Resources:
        own, known = Counter(attached.get(node.name, {}).values()), limits.get(node.name, {})
        return Resources.of(
            (ATTACHABLE + driver, max(0, known.get(driver, _UNLIMITED) - own[driver])) for driver in drivers
        )

    return replace(
        view,
        nodes=tuple(replace(node, allocatable=node.allocatable + left(node)) for node in view.nodes),
        node_claims=tuple(
            replace(claim, allocatable=claim.allocatable + plenty)
            if claim.allocatable and claim.name in coming
            else claim
            for claim in view.node_claims
        ),
    )
