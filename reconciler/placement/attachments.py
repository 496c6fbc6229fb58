"""What pods attach, judged before anything is placed: volumes and devices become alternatives of node requirements and
countable resources of their shapes. Called by place.

Only demands that name claims are looked at: pending pods, and chunks with templates of resource claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import InstanceType, Node, NodePool
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.placement.candidates import PoolType, Told
from reconciler.placement.claim_excuses import place_words
from reconciler.placement.examples import pool_types, with_least, young_nodes
from reconciler.placement.requirements import Requirements
from reconciler.placement.resource_claims import DEVICES, has_claims, with_devices
from reconciler.placement.volume_limits import ATTACHABLE, VolumesToCome, plenty
from reconciler.placement.volumes import ANYWHERE, Obstacle, Volumes

_NONE = Resources()
_MOST_ALTERNATIVES = 256


@dataclass(frozen=True, slots=True)
class Attached:
    """The same world with everything attachable said in terms of shapes, labels and resources."""

    view: ClusterView
    demands: Sequence[Demand]
    told: Told = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()


def with_attachments(
    view: ClusterView, node_pools: Sequence[NodePool], instance_types: Sequence[InstanceType], demands: Sequence[Demand]
) -> Attached:
    """The very same objects when no demand has anything to attach."""
    shapes = {id(group.shape): group.shape for demand in demands for group in demand.groups}
    if not any(map(_attaches, shapes.values())):
        return Attached(view, demands)
    kinds = list(pool_types(node_pools, instance_types))
    attached = _with_volumes(view, kinds, demands)
    equipped = with_devices(attached.view, kinds, attached.demands)
    more = {kind: attached.told.get(kind, _NONE) + equipped.told.get(kind, _NONE) for kind in kinds}
    return replace(
        attached,
        view=equipped.view,
        demands=equipped.demands,
        told=more,
        assumptions=(*attached.assumptions, *equipped.sentences),
    )


def _attaches(shape: PodShape) -> bool:
    return bool(shape.volume_claims) or has_claims(shape)


def _with_volumes(view: ClusterView, kinds: Sequence[PoolType], demands: Sequence[Demand]) -> Attached:
    if not any(group.shape.volume_claims for demand in demands for group in demand.groups):
        return Attached(view, demands)
    judge = _Judge(view)
    judged = [
        demand.with_shapes(judge.shape) if any(group.shape.volume_claims for group in demand.groups) else demand
        for demand in demands
    ]
    drivers = sorted(judge.drivers)
    if not drivers:
        return Attached(view, judged, {}, judge.assumptions())
    told = VolumesToCome(view, kinds, drivers)
    return Attached(
        _with_limits(view, drivers, told.limits), judged, told.limits, (*told.assumptions, *judge.assumptions())
    )


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
        self._users: Counter[tuple[str, str]] = Counter()
        """How many pods to be placed use each claim that has no volume yet."""

    def shape(self, group: ChunkGroup) -> PodShape:
        shape = group.shape
        try:
            by_claim = self._places_by_claim(shape)
            places = _together(by_claim)
        except Obstacle as obstacle:
            return replace(shape, obstacle=str(obstacle), volume_claims=(), ephemeral_claims=())
        for name in shape.volume_claims:
            if self._volumes.has_no_volume(shape.namespace, name):
                self._users[shape.namespace, name] += group.count
            claim = self._volumes.claim(shape.namespace, name)
            if claim is not None and claim.is_for_one_pod:
                self._taken.add((shape.namespace, name))
        terms = () if NodeSelectorTerm() in places else tuple(dict.fromkeys(places))
        return replace(
            shape,
            attachment_terms=terms,
            attachment_places=tuple(
                (claim, found) for claim, found in by_claim.items() if NodeSelectorTerm() not in found
            ),
            volume_claims=(),
            ephemeral_claims=(),
            requests=shape.requests + self._volumes_of(shape),
        )

    def _places_by_claim(self, shape: PodShape) -> dict[str, tuple[NodeSelectorTerm, ...]]:
        found = {}
        made_for = dict(shape.ephemeral_claims)
        for name in shape.volume_claims:
            claim = f"PersistentVolumeClaim/{shape.namespace}/{name}"
            if (shape.namespace, name) in self._taken:
                raise Obstacle(f"{claim} is ReadWriteOncePod and another pod uses it")
            found[claim] = self._volumes.places(shape.namespace, name, made_for.get(name))
        return found

    def _volumes_of(self, shape: PodShape) -> Resources:
        counts: dict[str, int] = {}
        for name in shape.volume_claims:
            driver = self._volumes.driver(shape.namespace, name)
            if driver in self._limited:
                counts[ATTACHABLE + driver] = counts.get(ATTACHABLE + driver, 0) + 1
                self.drivers.add(driver)
        return Resources.of(counts)

    def assumptions(self) -> tuple[str, ...]:
        competing = (
            f"volumes of storage class {name} lie ready in a fixed number: that two claims want the same one is not judged"
            for name in sorted(self._volumes.competing)
        )
        shared = (
            f"PersistentVolumeClaim/{namespace}/{name} has no volume yet and {users} pods would use it: that the volume is "
            "made where the first of them goes, and the others must then reach it, is not judged"
            for (namespace, name), users in sorted(self._users.items())
            if users > 1
        )
        return (*competing, *shared)


def _together(by_claim: Mapping[str, tuple[NodeSelectorTerm, ...]]) -> tuple[NodeSelectorTerm, ...]:
    """Where all of the claims can be used. Raises `Obstacle`."""
    together: tuple[NodeSelectorTerm, ...] = ANYWHERE
    for places in by_claim.values():
        together = tuple(_joined(together, places))[:_MOST_ALTERNATIVES]
        if not together:
            where = "; ".join(f"{claim} {words}" for claim, found in by_claim.items() if (words := place_words(found)))
            raise Obstacle(f"its volumes are in places that have no node in common: {where}")
    return together


def _joined(places: Iterable[NodeSelectorTerm], more: Iterable[NodeSelectorTerm]) -> Iterable[NodeSelectorTerm]:
    """Both together, wherever they do not rule each other out."""
    others = list(more)
    for place in places:
        for other in others:
            if Requirements.of(place.expressions).conflict(Requirements.of(other.expressions)) is None:
                expressions = dict.fromkeys((*place.expressions, *other.expressions))
                yield NodeSelectorTerm(tuple(expressions), tuple(dict.fromkeys((*place.fields, *other.fields))))


def _with_limits(view: ClusterView, drivers: Sequence[str], told: Told) -> ClusterView:
    """Nodes that limit a driver's volumes have what is left of that, those that come up what is told of their kind, all others
    plenty."""
    volumes = Volumes(view.storage)
    limits = {item.node: dict(item.limits) for item in view.storage.limits}
    young = young_nodes(view)
    attached: dict[str, set[tuple[str, str]]] = {}
    for pod in view.pods:
        if pod.node_name is not None:
            attached.setdefault(pod.node_name, set()).update((pod.namespace, name) for name in pod.shape.volume_claims)

    def left(node: Node) -> Resources:
        own = [volumes.driver(*claim) for claim in attached.get(node.name, ())]
        to_come = told.get(young[node.name], plenty(drivers)) if node.name in young else plenty(drivers)
        known = {driver: to_come.get(ATTACHABLE + driver) for driver in drivers} | limits.get(node.name, {})
        return Resources.of((ATTACHABLE + driver, max(0, known[driver] - own.count(driver))) for driver in drivers)

    return replace(
        view,
        nodes=tuple(replace(node, allocatable=node.allocatable + left(node)) for node in view.nodes),
        node_claims=with_least(view, told, plenty(drivers)),
    )


def without_attachable(requests: Resources) -> Resources:
    """What a NodeClaim may ask for: no instance type is sold with a number of volumes."""
    return Resources.of(
        (name, amount) for name, amount in requests.amounts if not name.startswith((ATTACHABLE, DEVICES))
    )
