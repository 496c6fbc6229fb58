"""What can be changed about the nodes of a placement at no cost: marks of scarce room, zones of new nodes, and one node for two.

A change may leave chunks where they do not fit. That does not matter to a rehearsal, which asks for the nodes only. In the end the chunks
go where an order of pods is bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, SCARCE_TAINTS, ZONE_LABEL, Node
from reconciler.model.placement import Binding, Holding, Placement, PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator
from reconciler.placement.problem import Problem
from reconciler.placement.scheduler.walk import next_seed

_Item = TypeVar("_Item")
_SAME, _DIGITS = 1e-9, 6
"""Two prices that differ by less are equal, in USD an hour; and the digits by which those that may be are found."""
_MOST_MARKS = len(SCARCE_TAINTS)
_AT_ONCE = (1, 1, 1, 2, 2, 3)
"""How many changes are made together: some only help together, as a mark and a zone do."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """planned: new nodes. there: names of others. With each, how many taints of scarce room it gets."""

    planned: tuple[tuple[PlannedNode, int], ...]
    there: tuple[tuple[str, int], ...]


class FreeChanges:
    """Draws changes that cost nothing. Always the same ones for a problem."""

    def __init__(self, problem: Problem) -> None:
        self._prices = {
            (kind.name, offered.zone, offered.capacity_type): offered.price
            for kind in problem.instance_types
            for offered in kind.offerings
            if offered.available
        }
        self._at_price = defaultdict[float, set[str]](set)
        for (name, _, _), price in self._prices.items():
            self._at_price[round(price, _DIGITS)].add(name)
        self._zones = sorted({zone for _, zone, _ in self._prices})
        self._asked = {pool.name: pool.template.requirements for pool in problem.node_pools}
        self._seed = 1

    def next(self, nodes: Nodes) -> Nodes:
        """One change or some together. The nodes as they are where that is not possible."""
        ways = (self._marked, self._marked, self._moved, self._joined)
        for _ in range(self._one_of(_AT_ONCE)):
            nodes = self._one_of(ways)(nodes)
        return nodes

    def _one_of(self, items: Sequence[_Item]) -> _Item:
        self._seed = next_seed(self._seed)
        return items[(self._seed >> 8) % len(items)]

    def _marked(self, nodes: Nodes) -> Nodes:
        """Another number of marks for one node, or for all new ones that are alike."""
        marks = self._one_of(range(_MOST_MARKS + 1))
        at = self._one_of(range(len(nodes.planned) + len(nodes.there)))
        if at >= len(nodes.planned):
            at -= len(nodes.planned)
            there = (*nodes.there[:at], (nodes.there[at][0], marks), *nodes.there[at + 1 :])
            return replace(nodes, there=there)
        return self._with(nodes, at, lambda node, _: (node, marks))

    def _moved(self, nodes: Nodes) -> Nodes:
        """Another zone for one new node, or for all that are alike."""
        if not nodes.planned:
            return nodes
        at, zone = self._one_of(range(len(nodes.planned))), self._one_of(self._zones)
        node = nodes.planned[at][0]
        asked = (item for item in self._asked[node.node_pool] if item.key == ZONE_LABEL)
        there = replace(node, zones=(zone,))
        if not all(item.holds(zone) for item in asked) or not self._costs(there, node.instance_types[0], node.price):
            return nodes

        def moved(planned: PlannedNode, marks: int) -> tuple[PlannedNode, int]:
            return _narrowed(planned, planned.instance_types, (zone,), planned.capacity_types), marks

        return self._with(nodes, at, moved)

    def _with(self, nodes: Nodes, at: int, change: Callable[[PlannedNode, int], tuple[PlannedNode, int]]) -> Nodes:
        alike = {at}
        if self._one_of((True, False)):
            alike = {to for to, (node, _) in enumerate(nodes.planned) if _look(node) == _look(nodes.planned[at][0])}
        planned = (change(*item) if to in alike else item for to, item in enumerate(nodes.planned))
        return replace(nodes, planned=tuple(planned))

    def _joined(self, nodes: Nodes) -> Nodes:
        """One new node of twice the price for two."""
        if not nodes.planned:
            return nodes
        (one, marks), (other, _) = pair = [self._one_of(nodes.planned) for _ in range(2)]
        joined = None if pair[0] is pair[1] else _joined(one, other)
        names = self._names(joined) if joined else ()
        if joined is None or not names:
            return nodes
        rest = (item for item in nodes.planned if not any(item is each for each in pair))
        return replace(nodes, planned=(*rest, (_as(joined, self._one_of(names)), marks)))

    def _names(self, node: PlannedNode) -> Sequence[str]:
        """Types at the price of the node."""
        names = sorted(self._at_price[round(node.price, _DIGITS)])
        return [name for name in names if self._costs(node, name, node.price)]

    def _costs(self, node: PlannedNode, name: str, price: float) -> bool:
        """Whether the type costs just that wherever the node may be."""
        places = ((name, zone, each) for zone in node.zones for each in node.capacity_types)
        return all(abs(self._prices.get(place, 0.0) - price) < _SAME for place in places)


def as_bound(
    problem: Problem,
    before: Placement,
    changed: Placement,
    names: Sequence[str],
    nodes: Iterable[Node],
    order: Iterable[Binding],
) -> Placement:
    """The changed placement with chunks where the pods of an order are bound. before: without changes. names: of the planned nodes.
    nodes: as they were rehearsed. A new node has the one type, zone and capacity type that it was rehearsed with."""
    held: defaultdict[str, Counter[tuple[ObjectRef, int]]] = defaultdict(Counter)
    for item in order:
        held[item.node][item.demand, item.group] += 1
    coming = {ref for counts in held.values() for ref, _ in counts}
    groups = {item.ref: item.groups for item in problem.demands}
    labels = {node.name: dict(node.labels) for node in nodes}

    def now(name: str, holdings: Iterable[Holding]) -> tuple[Holding, ...]:
        others = (item for item in holdings if item.demand not in coming)
        return tuple(sorted(chain(others, (Holding(*key, count) for key, count in held[name].items()))))

    def asked(holdings: Iterable[Holding]) -> Resources:
        return Resources.total(groups[item.demand][item.group].shape.requests * item.count for item in holdings)

    daemons = {node.node_pool: node.requests - asked(node.holdings) for node in before.planned}
    planned = []
    for name, node in zip(names, changed.planned, strict=True):
        holdings = now(name, node.holdings)
        zone, capacity_type = (labels[name].get(key) for key in (ZONE_LABEL, CAPACITY_TYPE_LABEL))
        place = (zone,) if zone else node.zones, (capacity_type,) if capacity_type else node.capacity_types
        narrowed = _narrowed(node, node.instance_types[:1], *place)
        planned.append(replace(narrowed, holdings=holdings, requests=asked(holdings) + daemons[node.node_pool]))
    occupied = (
        replace(item, holdings=now(item.node or item.node_claim or "", item.holdings)) for item in changed.occupied
    )
    return replace(changed, planned=tuple(planned), occupied=tuple(item for item in occupied if item.holdings))


def _look(node: PlannedNode) -> tuple[object, ...]:
    return node.node_pool, node.instance_types[0], node.zones, node.capacity_types


def _joined(one: PlannedNode, other: PlannedNode) -> PlannedNode | None:
    zones = tuple(zone for zone in one.zones if zone in other.zones)
    alike = [(node.node_pool, node.capacity_types, node.labels, node.taints) for node in (one, other)]
    if not zones or alike[0] != alike[1]:
        return None
    return replace(one, zones=zones, price=one.price + other.price, holdings=(*one.holdings, *other.holdings))


def _as(node: PlannedNode, name: str) -> PlannedNode:
    """Requests would make its room larger than the type's, as overlays do."""
    return replace(_narrowed(node, (name,), node.zones, node.capacity_types), requests=Resources())


def _narrowed(
    node: PlannedNode, names: tuple[str, ...], zones: tuple[str, ...], capacity_types: tuple[str, ...]
) -> PlannedNode:
    decided = {INSTANCE_TYPE_LABEL: names, ZONE_LABEL: zones, CAPACITY_TYPE_LABEL: capacity_types}
    asked = tuple(
        replace(item, operator=Operator.IN, values=tuple(sorted(decided[item.key]))) if item.key in decided else item
        for item in node.requirements
    )
    return replace(node, instance_types=names, zones=zones, capacity_types=capacity_types, requirements=asked)
