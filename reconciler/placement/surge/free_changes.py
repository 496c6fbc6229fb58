"""What can be changed about the nodes of a placement at no cost: marks of scarce room, zones of new nodes, and one node for two.

A change may leave chunks where they do not fit. That does not matter to a rehearsal, which asks for the nodes only. In the end the chunks
go where an order of pods is bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, Node
from reconciler.model.placement import Binding, Holding, Placement, PlannedNode
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator
from reconciler.placement.problem import Problem

_SAME, _DIGITS = 1e-9, 6
"""Two prices that differ by less are equal, in USD an hour; and the digits by which those that may be are found."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """planned: new nodes, and whether each gets the mark of scarce room. marked: names of other nodes that get it."""

    planned: tuple[tuple[PlannedNode, bool], ...]
    marked: frozenset[str]


def free_changes(problem: Problem, nodes: Nodes, there: Iterable[str]) -> Iterator[Nodes]:
    """One change each. there: names of other nodes that may be marked."""
    prices = {
        (kind.name, offered.zone, offered.capacity_type): offered.price
        for kind in problem.instance_types
        for offered in kind.offerings
        if offered.available
    }
    at_price = defaultdict[float, set[str]](set)
    for (name, _, _), price in prices.items():
        at_price[round(price, _DIGITS)].add(name)
    planned = nodes.planned
    yield from (replace(nodes, marked=nodes.marked ^ {name}) for name in there)
    for at, (node, is_marked) in enumerate(planned):
        yield replace(nodes, planned=(*planned[:at], (node, not is_marked), *planned[at + 1 :]))
    for at, (node, is_marked) in enumerate(planned):
        made: list[tuple[tuple[PlannedNode, bool], ...]] = [
            ((_in(node, zone), is_marked),) for zone in _zones(node, prices) if len(node.zones) > 1
        ]
        for name in sorted(at_price[round(node.price / 2, _DIGITS)]):
            if _costs(node, name, node.price / 2, prices):
                one, other = (replace(node, price=node.price / 2, holdings=half) for half in _halves(node.holdings))
                made += [tuple((_as(each, name), is_marked) for each in (one, other))]
        yield from (replace(nodes, planned=(*planned[:at], *new, *planned[at + 1 :])) for new in made)
        for to in range(at + 1, len(planned)):
            joined = _joined(node, planned[to][0])
            for name in sorted(at_price[round(joined.price, _DIGITS)]) if joined else ():
                if joined and _costs(joined, name, joined.price, prices):
                    rest = (*planned[at + 1 : to], *planned[to + 1 :])
                    yield replace(nodes, planned=(*planned[:at], (_as(joined, name), is_marked), *rest))


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


_Prices = Mapping[tuple[str, str, str], float]


def _costs(node: PlannedNode, name: str, price: float, prices: _Prices) -> bool:
    """Whether the type costs just that wherever the node may be."""
    places = ((name, zone, each) for zone in node.zones for each in node.capacity_types)
    return all(abs(prices.get(place, 0.0) - price) < _SAME for place in places)


def _zones(node: PlannedNode, prices: _Prices) -> Collection[str]:
    """The zones in which the node costs no more."""
    return [
        zone for zone in node.zones if _costs(replace(node, zones=(zone,)), node.instance_types[0], node.price, prices)
    ]


def _joined(one: PlannedNode, other: PlannedNode) -> PlannedNode | None:
    zones = tuple(zone for zone in one.zones if zone in other.zones)
    alike = [(node.node_pool, node.capacity_types, node.labels, node.taints) for node in (one, other)]
    if not zones or alike[0] != alike[1]:
        return None
    return replace(one, zones=zones, price=one.price + other.price, holdings=(*one.holdings, *other.holdings))


def _halves(holdings: Sequence[Holding]) -> tuple[tuple[Holding, ...], tuple[Holding, ...]]:
    fewer = (replace(item, count=item.count // 2) for item in holdings if item.count > 1)
    return tuple(fewer), tuple(replace(item, count=item.count - item.count // 2) for item in holdings)


def _in(node: PlannedNode, zone: str) -> PlannedNode:
    return _narrowed(node, node.instance_types, (zone,), node.capacity_types)


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
