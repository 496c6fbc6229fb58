"""Caps on what one pass may make: what is beyond a cap is cut from the end of the demands' order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.placement import PlannedNode
from reconciler.model.refs import ObjectRef


@dataclass(frozen=True, slots=True)
class PlanCaps:
    """0 is no limit. price_per_hour: USD an hour of all nodes together; prune_share: of the inventory within an hour."""

    new_nodes_per_pass: int = 100
    price_per_hour: float = 0.0
    nodes_per_pool: int = 0
    prune_share: float = 0.25


BEYOND_A_CAP = "beyond a cap"


@dataclass(frozen=True, slots=True)
class Cut:
    """node is not made in this pass; why: in words, of a cap with its setting; cause: that in a few words.

    passing: the next pass may make it, without anything else being different.
    """

    node: PlannedNode
    why: str
    cause: str = BEYOND_A_CAP
    passing: bool = False

    @property
    def waits(self) -> str:
        """What becomes of the node, and why."""
        return f"{_fate(one=True, passing=self.passing)}: {self.why}"


@dataclass(frozen=True, slots=True)
class Capped:
    """kept in the planned order; cuts in the demands' order."""

    kept: tuple[PlannedNode, ...]
    cuts: tuple[Cut, ...] = ()


def within_caps(
    planned: Sequence[PlannedNode],
    caps: PlanCaps,
    *,
    order: Mapping[ObjectRef, int],
    price_now: float,
    nodes_now: Mapping[str, int],
) -> Capped:
    """order: place of each demand; price_now: USD an hour of the nodes there are; nodes_now: nodes by pool.

    A node beyond a cap of the whole pass ends it for all that come after, so that a demand of lower rank never gets what
    one of higher rank was refused; a full pool stops only its own nodes. Nodes that hold pending pods are let through:
    they are Karpenter's to make and are here only to be looked at.
    """
    made, price = 0, price_now
    nodes = dict(nodes_now)
    refused: dict[int, Cut] = {}
    end, passing = "", False
    for index in sorted(range(len(planned)), key=lambda place: (_rank(planned[place], order), place)):
        node = planned[index]
        if any(holding.demand.kind == "Pod" for holding in node.holdings):
            continue
        if not end and caps.new_nodes_per_pass and made >= caps.new_nodes_per_pass:
            end, passing = f"at most {_nodes(caps.new_nodes_per_pass)} made in a pass (caps.newNodesPerPass)", True
        if not end and caps.price_per_hour and price + node.price > caps.price_per_hour:
            end = f"at most ${caps.price_per_hour:,.2f} an hour for all nodes (caps.pricePerHour)"
        if end:
            refused[index] = Cut(node, end, passing=passing)
        elif caps.nodes_per_pool and nodes.get(node.node_pool, 0) >= caps.nodes_per_pool:
            most = f"at most {_nodes(caps.nodes_per_pool)} in NodePool {node.node_pool} (caps.nodesPerPool)"
            refused[index] = Cut(node, most)
        else:
            made, price = made + 1, price + node.price
            nodes[node.node_pool] = nodes.get(node.node_pool, 0) + 1
    kept = tuple(node for index, node in enumerate(planned) if index not in refused)
    return Capped(kept, tuple(refused.values()))


def _rank(node: PlannedNode, order: Mapping[ObjectRef, int]) -> int:
    return min((order.get(holding.demand, len(order)) for holding in node.holdings), default=len(order))


def cap_notes(cuts: Iterable[Cut]) -> tuple[str, ...]:
    """One for each cap that was met."""
    counts: dict[tuple[str, bool], int] = {}
    for cut in cuts:
        counts[cut.why, cut.passing] = counts.get((cut.why, cut.passing), 0) + 1
    return tuple(
        f"{_nodes(count)} {_fate(one=count == 1, passing=passing)}: {why}"
        for (why, passing), count in sorted(counts.items())
    )


def _fate(*, one: bool, passing: bool) -> str:
    if passing:
        return f"{'waits' if one else 'wait'} for a later pass"
    return f"{'is' if one else 'are'} not made"


def _nodes(count: int) -> str:
    return f"{count:,} {'node' if count == 1 else 'nodes'}"
