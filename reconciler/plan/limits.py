"""Caps on what one pass may make.

What is beyond a cap is cut from the end of the demands' order, and comes in a later pass if there is room then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.demand import POD_KIND
from reconciler.model.placement import PlannedNode
from reconciler.model.refs import ObjectRef


@dataclass(frozen=True, slots=True)
class PlanCaps:
    """0 is no limit. price_per_hour: USD an hour of all nodes together; prune_share: of the inventory within an hour."""

    new_nodes_per_pass: int = 100
    price_per_hour: float = 0.0
    nodes_per_pool: int = 0
    prune_share: float = 0.25
    nodes_per_request: int = 1000


MOST_IN_A_WAVE = 500
"""New nodes of demands that are placed as a whole, in one pass: so many are written within half a minute or so."""


@dataclass(frozen=True, slots=True)
class Cut:
    """node is not made in this pass; cap: which one, in words."""

    node: PlannedNode
    cap: str


@dataclass(frozen=True, slots=True)
class Capped:
    """kept, later: in the planned order. later: no cap is against them, but they come in the next waves. cuts: in the demands' order."""

    kept: tuple[PlannedNode, ...]
    cuts: tuple[Cut, ...] = ()
    later: tuple[PlannedNode, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """What there is before a pass. price: USD an hour of the nodes there are. nodes: by pool. made: of a demand that is placed as a whole,
    nodes that its attempt has already."""

    price: float = 0.0
    nodes: Mapping[str, int] = field(default_factory=dict)
    made: Mapping[ObjectRef, int] = field(default_factory=dict)


def within_caps(
    planned: Sequence[PlannedNode],
    caps: PlanCaps,
    standing: Standing,
    *,
    order: Mapping[ObjectRef, int],
    whole: Collection[ObjectRef] = (),
) -> Capped:
    """order: place of each demand; whole: those that get all of their nodes or none.

    A node beyond a cap of the whole pass ends it for all that come after, so that a demand of lower rank never gets what
    one of higher rank was refused. A full pool stops only its own nodes. Nodes that hold pending pods are let through:
    they are Karpenter's to make and are here only to be looked at. A demand that is placed as a whole and needs more nodes than a
    pass may make gets them in a pass of its own.
    """
    account = _Account(caps, standing)
    refused: dict[int, Cut] = {}
    later: set[int] = set()
    for unit in _units(planned, order, frozenset(whole)):
        nodes = [planned[index] for index in unit.indexes]
        cap = account.refusal(unit, nodes)
        if cap:
            refused |= {index: Cut(planned[index], cap) for index in unit.indexes}
            continue
        later.update(unit.indexes[MOST_IN_A_WAVE:])
        account.take(nodes[:MOST_IN_A_WAVE])
    kept = tuple(node for index, node in enumerate(planned) if index not in refused and index not in later)
    waiting = tuple(node for index, node in enumerate(planned) if index in later)
    return Capped(kept, tuple(refused.values()), waiting)


class _Account:
    """What has been let through so far."""

    def __init__(self, caps: PlanCaps, standing: Standing) -> None:
        self._caps = caps
        self._standing = standing
        self._made = 0
        self._price = standing.price
        self._nodes = dict(standing.nodes)
        self._end = ""

    def refusal(self, unit: _Unit, nodes: Sequence[PlannedNode]) -> str:
        """The cap that is against these nodes, in words; "" for none."""
        caps = self._caps
        for ref, count in unit.whole.items():
            if caps.nodes_per_request and count + self._standing.made.get(ref, 0) > caps.nodes_per_request:
                return f"at most {caps.nodes_per_request:,} nodes for one request"
        price = sum(node.price for node in nodes)
        alone = bool(unit.whole) and not self._made
        most = caps.new_nodes_per_pass
        if not self._end and most and not alone and self._made + len(nodes) > most:
            self._end = f"at most {most:,} new nodes a pass"
        if not self._end and caps.price_per_hour and self._price + price > caps.price_per_hour:
            self._end = f"at most ${caps.price_per_hour:,.2f} an hour"
        if self._end:
            return self._end
        by_pool = Counter(node.node_pool for node in nodes)
        full = (
            pool
            for pool, count in sorted(by_pool.items())
            if caps.nodes_per_pool and self._nodes.get(pool, 0) + count > caps.nodes_per_pool
        )
        pool = next(full, None)
        return "" if pool is None else f"at most {caps.nodes_per_pool:,} nodes in NodePool {pool}"

    def take(self, nodes: Sequence[PlannedNode]) -> None:
        self._made += len(nodes)
        self._price += sum(node.price for node in nodes)
        for node in nodes:
            self._nodes[node.node_pool] = self._nodes.get(node.node_pool, 0) + 1


@dataclass(slots=True)
class _Unit:
    """Nodes that are made together or not at all. whole: the demands for which that is so, and how many of the nodes each has."""

    indexes: list[int]
    whole: Counter[ObjectRef]


def _units(
    planned: Sequence[PlannedNode], order: Mapping[ObjectRef, int], whole: frozenset[ObjectRef]
) -> Iterable[_Unit]:
    """In the demands' order. Two demands that are placed as a whole and share a node share their fate."""
    of_demand: dict[ObjectRef, _Unit] = {}
    units: dict[int, _Unit] = {}
    for index in sorted(range(len(planned)), key=lambda place: (_rank(planned[place], order), place)):
        holdings = planned[index].holdings
        if any(holding.demand.kind == POD_KIND for holding in holdings):
            continue
        own = dict.fromkeys(holding.demand for holding in holdings if holding.demand in whole)
        joined = {id(unit): unit for ref in own if (unit := of_demand.get(ref)) is not None}
        unit = next(iter(joined.values()), None)
        if unit is None:
            unit = units[index] = _Unit([], Counter())
        unit.indexes.append(index)
        unit.whole.update(own.keys())
        for other in joined.values():
            if other is not unit:
                unit.indexes += other.indexes
                unit.whole += other.whole
                units = {first: kept for first, kept in units.items() if kept is not other}
        of_demand |= dict.fromkeys(unit.whole, unit)
    return units.values()


def _rank(node: PlannedNode, order: Mapping[ObjectRef, int]) -> int:
    return min((order.get(holding.demand, len(order)) for holding in node.holdings), default=len(order))


def cap_notes(capped: Capped) -> tuple[str, ...]:
    """One sentence for each cap that holds nodes back, and one about waves to come."""
    counts: dict[str, int] = {}
    for cut in capped.cuts:
        counts[cut.cap] = counts.get(cut.cap, 0) + 1
    if capped.later:
        counts[f"at most {MOST_IN_A_WAVE:,} nodes of requests at once"] = len(capped.later)
    return tuple(
        f"{count:,} {'node waits' if count == 1 else 'nodes wait'} for a later pass: {cap}"
        for cap, count in sorted(counts.items())
    )
