"""Planned nodes: each may become any of the variants it lists, and each of these must take all of its chunks.

A variant is one instance type with one operating system, as one offering has it. Many checks of a variant do not depend on the
node's chunks, and are made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from reconciler.model.launch_options import LaunchOption
from reconciler.model.nodes import HOSTNAME_LABEL, NODEPOOL_LABEL, NodePool
from reconciler.model.placement import PlannedNode
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources
from reconciler.placement.checker.checked_nodes import CheckedNode, IndexedProblem, Occupant
from reconciler.placement.checker.node_pools import min_values_violations
from reconciler.placement.checker.node_rules import (
    CheckedVolumes,
    clashing_ports,
    daemon_runs,
    loads,
    overcommitted,
    own_taint_violations,
    selection_violations,
    surely_holds,
)
from reconciler.placement.checker.offerings import (
    Values,
    decided,
    labels_for_overlays,
    overlaid_capacity,
    overlaid_price,
    united,
)

_SAME_PRICE = 1e-6
"""Prices that differ by less are the same. In USD an hour."""


@dataclass(slots=True)
class _Variant:
    """What a planned node may become.

    room: allocatable less daemons. price: USD an hour, None where unknown. broken: the rules that the variant itself breaks. refused: by
    identity of a shape, why its chunks may not be there.
    """

    labels: Mapping[str, str]
    node: CheckedNode
    room: Resources
    daemons: Sequence[Occupant]
    price: float | None
    broken: Sequence[str]
    refused: dict[int, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Listing:
    """What planned nodes with the same list have in common."""

    variants: Sequence[_Variant]
    labels: Mapping[str, Values]
    broken: Sequence[str]


class PlannedNodeChecker:
    def __init__(self, problem: IndexedProblem, volumes: CheckedVolumes) -> None:
        self._problem = problem
        self._volumes = volumes
        self._listings: dict[tuple[object, ...], _Listing] = {}
        self._variants: dict[tuple[object, ...], _Variant] = {}

    def node(self, planned: PlannedNode, number: int) -> CheckedNode:
        """The planned node. A label that differs between variants is undecided."""
        taints = (*self._problem.pools[planned.node_pool].template.taints, *planned.taints)
        return CheckedNode(f"planned-{number}", self._listing(planned).labels, taints)

    def violations(self, planned: PlannedNode, node: CheckedNode) -> Iterable[str]:
        pool = self._problem.pools[planned.node_pool]
        if pool.replicas is not None or pool.deleting or pool.unready:
            yield f"NodePool {planned.node_pool} cannot be used"
            return
        if not planned.holdings:
            yield "holds nothing"
        if len(planned.instance_types) != len(set(planned.instance_types)) or not planned.instance_types:
            yield f"instance types {planned.instance_types}"
        listing = self._listing(planned)
        yield from listing.broken
        yield from _price_violations(planned, [variant.price for variant in listing.variants])
        yield from own_taint_violations(planned.taints, node)
        load = loads(node)
        for variant in listing.variants:
            yield from variant.broken
            for shape in node.shapes():
                if id(shape) not in variant.refused:
                    variant.refused[id(shape)] = tuple(shape_violations(self._volumes, variant.node, shape))
                yield from variant.refused[id(shape)]
            yield from overcommitted(load, variant.room)
            if clashing_ports([*node.occupants, *variant.daemons]):
                yield "host ports clash"

    def _listing(self, planned: PlannedNode) -> _Listing:
        places = (planned.instance_types, planned.zones, planned.capacity_types)
        key = (planned.node_pool, planned.labels, planned.requirements, *places)
        if key not in self._listings:
            problem, pool = self._problem, self._problem.pools[planned.node_pool]
            listed = dict.fromkeys(product(*places))
            own = _pool_labels(pool, planned)
            ways = [
                way for way in problem.catalog.ways(tuple(own.items()), planned.requirements) if way.place in listed
            ]
            broken = list(min_values_violations(problem, planned, ways))
            sold = {way.place for way in ways}
            for place in listed:
                name, zone, capacity_type = place
                if place not in sold:
                    broken.append(f"{name} is not offered in {zone} as {capacity_type}")
                if place in problem.options.back_offs:
                    broken.append(f"{name} in {zone} as {capacity_type} is backed off from")
            variants = [self._variant(pool, own, way) for way in ways]
            self._listings[key] = _Listing(variants, united(item.labels for item in variants), broken)
        return self._listings[key]

    def _variant(self, pool: NodePool, own: Mapping[str, str], way: LaunchOption) -> _Variant:
        """own: the labels of its NodePool and those that its NodeClaim has besides."""
        key = (pool.name, *own.items(), id(way))
        if key not in self._variants:
            problem, offering = self._problem, way.offering
            labels = {**own, **way.labels}
            node = CheckedNode("", decided(labels), pool.template.taints)
            for_overlays = labels_for_overlays(pool, way.labels)
            daemons = [Occupant(item.shape) for item in problem.cluster.daemon_sets if daemon_runs(node, item)]
            self._variants[key] = _Variant(
                labels,
                node,
                room=way.instance_type.allocatable
                + overlaid_capacity(problem.overlays, for_overlays)
                - Resources.total(item.shape.requests for item in daemons),
                daemons=daemons,
                price=overlaid_price(problem.overlays, for_overlays, offering.price if offering.price_known else None),
                broken=tuple(_pool_violations(pool, node)),
            )
        return self._variants[key]


def shape_violations(volumes: CheckedVolumes, node: CheckedNode, shape: PodShape) -> Iterable[str]:
    """Why a chunk may not be on a node, whatever else is there."""
    yield from volumes.misplaced(node, shape)
    yield from selection_violations(node, shape)


def _price_violations(planned: PlannedNode, prices: Sequence[float | None]) -> Iterable[str]:
    known = [price for price in prices if price is not None]
    if (len(known) == len(prices)) != planned.price_known:
        yield f"its price is said to be {'known' if planned.price_known else 'unknown'}"
    elif known and planned.price_known and abs(min(known) - planned.price) > _SAME_PRICE:
        yield f"price is {planned.price}, cheapest offering {min(known)}"


def _pool_labels(pool: NodePool, planned: PlannedNode) -> dict[str, str]:
    own = dict(pool.template.labels) | dict(planned.labels) | {NODEPOOL_LABEL: pool.name}
    if pool.template.node_class is not None:
        reference = pool.template.node_class
        own[f"{reference.group}/{reference.kind.lower()}"] = reference.name
    return own


def _pool_violations(pool: NodePool, node: CheckedNode) -> Iterable[str]:
    """Requirements of the pool that the node does not meet. No variant has a hostname yet, so that label is skipped."""
    for requirement in pool.template.requirements:
        known = requirement.key in node.labels or requirement.key == HOSTNAME_LABEL
        if known and not surely_holds(node, requirement):
            said = "/".join(node.possible(requirement.key)) or None
            yield f"NodePool {pool.name} does not allow {requirement.key}={said}"
