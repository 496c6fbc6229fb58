"""What pods attach, judged before anything is placed: volumes and devices become alternatives of node requirements and
countable resources of their shapes. Called by place.

Only demands that name claims are looked at: pending pods, and chunks with templates of resource claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.model.demand import Demand
from reconciler.model.nodes import InstanceType, Node, NodeClaim
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.placement.requirements import Requirements
from reconciler.placement.resource_claims import DEVICES, with_devices
from reconciler.placement.volumes import ANYWHERE, Obstacle, Volumes

ATTACHABLE = "attachable-volumes-csi-"
"""Before a driver's name: the resource by which its volumes on a node are counted, as kubelets once called it."""
_UNLIMITED = 2**40
_MOST_ALTERNATIVES = 256


@dataclass(frozen=True, slots=True)
class Attached:
    """The same world with everything attachable said in terms of shapes, labels and resources."""

    view: ClusterView
    instance_types: Sequence[InstanceType]
    demands: Sequence[Demand]
    assumptions: tuple[str, ...] = ()


def with_attachments(view: ClusterView, instance_types: Sequence[InstanceType], demands: Sequence[Demand]) -> Attached:
    """The very same objects when no demand has anything to attach."""
    attached = _with_volumes(view, instance_types, demands)
    equipped, judged, sentences = with_devices(attached.view, attached.demands)
    return replace(attached, view=equipped, demands=judged, assumptions=(*attached.assumptions, *sentences))


def _with_volumes(view: ClusterView, instance_types: Sequence[InstanceType], demands: Sequence[Demand]) -> Attached:
    if not any(group.shape.volume_claims for demand in demands for group in demand.groups):
        return Attached(view, instance_types, demands)
    judge = _Judge(view)
    judged = [
        replace(demand, groups=tuple(replace(group, shape=judge.shape(group.shape)) for group in demand.groups))
        if any(group.shape.volume_claims for group in demand.groups)
        else demand
        for demand in demands
    ]
    drivers = sorted(judge.drivers)
    if drivers:
        view = _with_limits(view, drivers)
        instance_types = [_unlimited_type(kind, drivers) for kind in instance_types]
    return Attached(view, instance_types, judged, judge.assumptions())


class _Judge:
    """Judges shapes in the order of their demands. drivers: those whose volumes some node limits and some pod needs."""

    def __init__(self, view: ClusterView) -> None:
        self._volumes = Volumes(view.storage)
        self._limited = {driver for node in view.storage.limits for driver, _ in node.limits}
        self._taken = {
            (pod.namespace, name)
            for pod in view.pods
            if pod.node_name is not None
            for name in pod.shape.volume_claims
            if (claim := self._volumes.claim(pod.namespace, name)) is not None and claim.is_for_one_pod
        }
        self.drivers: set[str] = set()

    def shape(self, shape: PodShape) -> PodShape:
        try:
            places = self._places(shape)
        except Obstacle as obstacle:
            return replace(shape, obstacle=str(obstacle), volume_claims=())
        for name in shape.volume_claims:
            claim = self._volumes.claim(shape.namespace, name)
            if claim is not None and claim.is_for_one_pod:
                self._taken.add((shape.namespace, name))
        terms = () if NodeSelectorTerm() in places else tuple(dict.fromkeys(places))
        return replace(
            shape, attachment_terms=terms, volume_claims=(), requests=shape.requests + self._volumes_of(shape)
        )

    def _places(self, shape: PodShape) -> tuple[NodeSelectorTerm, ...]:
        together: tuple[NodeSelectorTerm, ...] = ANYWHERE
        for name in shape.volume_claims:
            if (shape.namespace, name) in self._taken:
                claim = f"PersistentVolumeClaim/{shape.namespace}/{name}"
                raise Obstacle(f"{claim} is ReadWriteOncePod and another pod uses it")
            together = tuple(_joined(together, self._volumes.places(shape.namespace, name)))[:_MOST_ALTERNATIVES]
            if not together:
                raise Obstacle(
                    f"its volumes are in places that have no node in common: {', '.join(shape.volume_claims)}"
                )
        return together

    def _volumes_of(self, shape: PodShape) -> Resources:
        counts: dict[str, int] = {}
        for name in shape.volume_claims:
            driver = self._volumes.driver(shape.namespace, name)
            if driver in self._limited:
                counts[ATTACHABLE + driver] = counts.get(ATTACHABLE + driver, 0) + 1
                self.drivers.add(driver)
        return Resources.of(counts)

    def assumptions(self) -> tuple[str, ...]:
        return (
            *(
                f"how many volumes of {driver} a new node can have attached is not known: as many as its pods need"
                for driver in sorted(self.drivers)
            ),
            *(
                f"volumes of storage class {name} lie ready in a fixed number: that two claims want the same one is not judged"
                for name in sorted(self._volumes.competing)
            ),
        )


def _joined(places: Iterable[NodeSelectorTerm], more: Iterable[NodeSelectorTerm]) -> Iterable[NodeSelectorTerm]:
    """Both together, wherever they do not rule each other out."""
    others = list(more)
    for place in places:
        for other in others:
            if Requirements.of(place.expressions).conflict(Requirements.of(other.expressions)) is None:
                expressions = dict.fromkeys((*place.expressions, *other.expressions))
                yield NodeSelectorTerm(tuple(expressions), tuple(dict.fromkeys((*place.fields, *other.fields))))


def _with_limits(view: ClusterView, drivers: Sequence[str]) -> ClusterView:
    """Nodes that limit a driver's volumes have what is left of that; all others, and those to come, have plenty."""
    volumes = Volumes(view.storage)
    limits = {item.node: dict(item.limits) for item in view.storage.limits}
    attached: dict[str, set[tuple[str, str]]] = {}
    for pod in view.pods:
        if pod.node_name is not None:
            attached.setdefault(pod.node_name, set()).update((pod.namespace, name) for name in pod.shape.volume_claims)

    def left(node: Node) -> Resources:
        own = [volumes.driver(*claim) for claim in attached.get(node.name, ())]
        known = limits.get(node.name, {})
        return Resources.of(
            (ATTACHABLE + driver, max(0, known[driver] - own.count(driver)) if driver in known else _UNLIMITED)
            for driver in drivers
        )

    # What a NodeClaim promises fills the gaps of its young node: of volumes that would be more than the node can attach.
    there = {node.name for node in view.nodes}
    return replace(
        view,
        nodes=tuple(replace(node, allocatable=node.allocatable + left(node)) for node in view.nodes),
        node_claims=tuple(
            claim if claim.node_name in there else _unlimited_claim(claim, drivers) for claim in view.node_claims
        ),
    )


def _unlimited(drivers: Iterable[str]) -> Resources:
    return Resources.of((ATTACHABLE + driver, _UNLIMITED) for driver in drivers)


def _unlimited_claim(claim: NodeClaim, drivers: Sequence[str]) -> NodeClaim:
    if not claim.allocatable:
        return claim
    return replace(claim, allocatable=claim.allocatable + _unlimited(drivers))


def _unlimited_type(kind: InstanceType, drivers: Sequence[str]) -> InstanceType:
    return replace(kind, capacity=kind.capacity + _unlimited(drivers))


def without_attachable(requests: Resources) -> Resources:
    """What a NodeClaim may ask for: no instance type is sold with a number of volumes."""
    return Resources.of(
        (name, amount) for name, amount in requests.amounts if not name.startswith((ATTACHABLE, DEVICES))
    )
