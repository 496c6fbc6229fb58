"""Volumes and devices of pods, judged before anything is placed.

They become node requirements and countable resources of the pods' shapes. Only demands that name claims are looked at: pending
pods, and chunks with resource claim templates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from reconciler.model.demand import ChunkGroup
from reconciler.model.nodes import Node
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView
from reconciler.placement.amounts import ATTACHABLE
from reconciler.placement.constraints.dynamic_resources import has_claims, with_devices
from reconciler.placement.constraints.volumes import ANYWHERE, Obstacle, Volumes
from reconciler.placement.nodes.machines import with_more
from reconciler.placement.offers.pool_offers import Observed, PoolType
from reconciler.placement.phrases import place_words
from reconciler.placement.problem import Problem
from reconciler.placement.requirements import Requirements

_NONE = Resources()
_MOST_ALTERNATIVES = 256
_UNLIMITED = 2**40


@dataclass(frozen=True, slots=True)
class Attached:
    """The same problem, with volumes and devices expressed as shapes, labels and resources.

    observed: what new nodes will have, by NodePool and instance type: as many volumes as they like, as Karpenter has it, and devices.
    """

    problem: Problem
    observed: Observed = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()


def with_attachments(problem: Problem) -> Attached:
    """Expresses volumes and devices as requirements and resources. Returns the same object where no demand has any."""
    shapes = {id(group.shape): group.shape for demand in problem.demands for group in demand.groups}
    if not any(map(_attaches, shapes.values())):
        return Attached(problem)
    pool_types = [(pool.name, item.name) for pool in problem.node_pools for item in problem.instance_types]
    attached = _with_volumes(problem, pool_types)
    equipped = with_devices(attached.problem, pool_types)
    observed = {key: attached.observed.get(key, _NONE) + equipped.observed.get(key, _NONE) for key in pool_types}
    return Attached(
        replace(problem, view=equipped.view, demands=equipped.demands),
        observed,
        (*attached.assumptions, *equipped.sentences),
    )


def _attaches(shape: PodShape) -> bool:
    return bool(shape.volume_claims) or has_claims(shape)


def _with_volumes(problem: Problem, pool_types: Sequence[PoolType]) -> Attached:
    if not any(group.shape.volume_claims for demand in problem.demands for group in demand.groups):
        return Attached(problem)
    judge = _Judge(problem)
    # In the order in which pods are placed: a claim for one pod goes to the first.
    order = sorted(problem.demands, key=attrgetter("order"))
    judged = {id(demand): demand.with_shapes(judge.shape) for demand in order}
    demands = [judged[id(demand)] for demand in problem.demands]
    drivers = sorted(judge.drivers)
    if not drivers:
        return Attached(replace(problem, demands=demands), assumptions=judge.assumptions())
    view = _with_limits(problem.view, drivers, judge.attached)
    plenty = dict.fromkeys(pool_types, _plenty(drivers))
    return Attached(replace(problem, view=view, demands=demands), plenty, judge.assumptions())


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
        try:
            by_claim = self._places_by_claim(shape)
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

    def _places_by_claim(self, shape: PodShape) -> dict[str, tuple[NodeSelectorTerm, ...]]:
        found = {}
        made_for = dict(shape.ephemeral_claims)
        for name in shape.volume_claims:
            claim = f"PersistentVolumeClaim/{shape.namespace}/{name}"
            found[claim] = self._volumes.places(shape.namespace, name, made_for.get(name))
        return found

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
    """The nodes with a driver's remaining volumes as a resource: plenty where a node says nothing, be it that it is still to come.

    attached: by node, volumes with their drivers."""
    limits = {item.node: dict(item.limits) for item in view.storage.limits}

    def left(node: Node) -> Resources:
        own, known = Counter(attached.get(node.name, {}).values()), limits.get(node.name, {})
        return Resources.of(
            (ATTACHABLE + driver, max(0, known.get(driver, _UNLIMITED) - own[driver])) for driver in drivers
        )

    return replace(
        view,
        nodes=tuple(replace(node, allocatable=node.allocatable + left(node)) for node in view.nodes),
        node_claims=with_more(view, lambda _: _plenty(drivers)),
    )


def _plenty(drivers: Iterable[str]) -> Resources:
    return Resources.of((ATTACHABLE + driver, _UNLIMITED) for driver in drivers)
