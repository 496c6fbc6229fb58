"""What pods attach, judged before anything is placed: volumes and devices become alternatives of node requirements and
countable resources of their shapes. Called by place.

Only demands that name claims are looked at: pending pods, and chunks with templates of resource claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.demand import ChunkGroup, Demand
from reconciler.model.nodes import InstanceType, Node, NodePool
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.placement.constraints.dynamic_resources import DEVICES, has_claims, with_devices
from reconciler.placement.constraints.shared_claims import NOT_IN_USE, InUse, SharedClaims, claims_of, defined_labels
from reconciler.placement.constraints.volume_limits import ATTACHABLE, VolumesToCome, plenty
from reconciler.placement.constraints.volumes import ANYWHERE, Obstacle, Volumes
from reconciler.placement.nodes.samples import pool_types, with_least, young_nodes
from reconciler.placement.offers.pool_offers import Observed
from reconciler.placement.reasons.claims import place_words
from reconciler.placement.requirements import Requirements

_NONE = Resources()
_MOST_ALTERNATIVES = 256


@dataclass(frozen=True, slots=True)
class Attached:
    """The same world with everything attachable said in terms of shapes, labels and resources."""

    view: ClusterView
    demands: Sequence[Demand]
    observed: Observed = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    in_use: InUse = NOT_IN_USE


def with_attachments(
    view: ClusterView, node_pools: Sequence[NodePool], instance_types: Sequence[InstanceType], demands: Sequence[Demand]
) -> Attached:
    """The very same objects when no demand has anything to attach."""
    shapes = {id(group.shape): group.shape for demand in demands for group in demand.groups}
    if not any(map(_attaches, shapes.values())):
        return Attached(view, demands)
    kinds = list(pool_types(node_pools, instance_types))
    attached = _with_volumes(view, node_pools, instance_types, demands)
    equipped = with_devices(attached.view, kinds, attached.demands)
    more = {kind: attached.observed.get(kind, _NONE) + equipped.observed.get(kind, _NONE) for kind in kinds}
    return replace(
        attached,
        view=equipped.view,
        demands=equipped.demands,
        observed=more,
        assumptions=(*attached.assumptions, *equipped.sentences),
    )


def _attaches(shape: PodShape) -> bool:
    return bool(shape.volume_claims) or has_claims(shape)


def _with_volumes(
    view: ClusterView, node_pools: Sequence[NodePool], instance_types: Sequence[InstanceType], demands: Sequence[Demand]
) -> Attached:
    if not any(group.shape.volume_claims for demand in demands for group in demand.groups):
        return Attached(view, demands)
    judge = _Judge(view, demands, defined_labels(node_pools, instance_types))
    judged = [
        demand.with_shapes(judge.shape) if any(group.shape.volume_claims for group in demand.groups) else demand
        for demand in demands
    ]
    drivers = sorted(judge.drivers)
    observed = VolumesToCome(view, list(pool_types(node_pools, instance_types)), drivers) if drivers else None
    return Attached(
        view if observed is None else _with_limits(view, drivers, observed.limits, judge.shared.attached),
        judged,
        {} if observed is None else observed.limits,
        (*(() if observed is None else observed.assumptions), *judge.assumptions()),
        judge.shared.in_use(),
    )


class _Judge:
    """Judges shapes. drivers: those whose volumes some node limits and some pod needs; shared: what pods have in common."""

    def __init__(self, view: ClusterView, demands: Sequence[Demand], defined: Collection[str]) -> None:
        self._volumes = Volumes(view.storage)
        self._limited = {driver for node in view.storage.limits for driver, _ in node.limits}
        self.drivers: set[str] = set()
        self._judged: dict[int, PodShape] = {}
        """By identity of the shape, which its demand keeps."""
        users: list[tuple[PodShape, int]] = []
        for group in (group for demand in demands for group in demand.groups if group.shape.volume_claims):
            if id(group.shape) not in self._judged:
                self._judged[id(group.shape)] = self._placed(group.shape)
            if not self._judged[id(group.shape)].obstacle:
                users.append((group.shape, group.count))
        self.shared = SharedClaims(view, self._volumes, users, limited=self._limited, defined=defined)

    def shape(self, group: ChunkGroup) -> PodShape:
        shape = self._judged.get(id(group.shape), group.shape)
        if shape.volume_claims:
            shape = self._judged[id(group.shape)] = replace(
                self.shared.shape(shape), volume_claims=(), ephemeral_claims=()
            )
        return shape

    def _placed(self, shape: PodShape) -> PodShape:
        """With where its volumes can be, and what they count for on a node; its claims are left on it."""
        try:
            by_claim = self._places_by_claim(shape)
            places = _together(by_claim)
        except Obstacle as obstacle:
            return replace(shape, obstacle=str(obstacle), volume_claims=(), ephemeral_claims=())
        terms = () if NodeSelectorTerm() in places else tuple(dict.fromkeys(places))
        return replace(
            shape,
            attachment_terms=terms,
            attachment_places=tuple(
                (claim, found) for claim, found in by_claim.items() if NodeSelectorTerm() not in found
            ),
            requests=shape.requests + self._volumes_of(shape),
        )

    def _places_by_claim(self, shape: PodShape) -> dict[str, tuple[NodeSelectorTerm, ...]]:
        found = {}
        made_for = dict(shape.ephemeral_claims)
        for name in shape.volume_claims:
            claim = f"PersistentVolumeClaim/{shape.namespace}/{name}"
            found[claim] = self._volumes.places(shape.namespace, name, made_for.get(name))
        return found

    def _volumes_of(self, shape: PodShape) -> Resources:
        """Of claims that come to the same volume one counts."""
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
            f"volumes of storage class {name} lie ready in a fixed number: that two claims want the same one is not judged"
            for name in sorted(self._volumes.competing)
        )
        return (*competing, *self.shared.assumptions)


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


def _with_limits(
    view: ClusterView, drivers: Sequence[str], observed: Observed, attached: Mapping[str, Mapping[str, str]]
) -> ClusterView:
    """Nodes that limit a driver's volumes have what is left of that, those that come up what is told of their kind, all others
    plenty. attached: by node, volumes with their drivers."""
    limits = {item.node: dict(item.limits) for item in view.storage.limits}
    young = young_nodes(view)

    def left(node: Node) -> Resources:
        own = Counter(attached.get(node.name, {}).values())
        to_come = observed.get(young[node.name], plenty(drivers)) if node.name in young else plenty(drivers)
        known = {driver: to_come.get(ATTACHABLE + driver) for driver in drivers} | limits.get(node.name, {})
        return Resources.of((ATTACHABLE + driver, max(0, known[driver] - own[driver])) for driver in drivers)

    return replace(
        view,
        nodes=tuple(replace(node, allocatable=node.allocatable + left(node)) for node in view.nodes),
        node_claims=with_least(view, observed, plenty(drivers)),
    )


def without_attachable(requests: Resources) -> Resources:
    """What a NodeClaim may ask for: no instance type is sold with a number of volumes."""
    return Resources.of(
        (name, amount) for name, amount in requests.amounts if not name.startswith((ATTACHABLE, DEVICES))
    )
