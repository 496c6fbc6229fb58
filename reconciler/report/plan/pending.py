"""Pending pods in a plan, and pods of nodes that are being deleted: launches for them, prices, and pods without a place.

Only a plan made with `--include-pending` plans nodes for them; headroom itself never makes one, since Karpenter does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconciler.model.changes import DemandOutcome, NodeClaimCreation, PendingOutcome, Plan
from reconciler.model.placement import UnplacedReason
from reconciler.model.refs import POD_KIND
from reconciler.report.plan.words import MOST_ZONES, is_paid, launch_price, reason_words
from reconciler.report.words import counted, hourly, listed

MOST_NAMES = 3
"""The most pods to name in one row; the rest is counted."""


@dataclass(frozen=True, slots=True)
class PendingLaunch:
    """New nodes of one NodePool in the same zones. types: how many nodes by cheapest instance type. price: USD an hour of all
    together, None if any is unknown."""

    node_pool: str
    places: str
    capacity_types: tuple[str, ...]
    types: tuple[tuple[str, int], ...]
    pods: int
    price: float | None

    @property
    def nodes(self) -> int:
        return sum(count for _, count in self.types)

    @property
    def is_paid(self) -> bool:
        """Whether all of them are from reservations, which are paid for in any case."""
        return self.price is not None and is_paid(self.price, self.capacity_types)

    @property
    def size(self) -> str:
        """`4 nodes for 12 pods, $2.2000/h`."""
        price = "price not known" if self.price is None else launch_price(self.price, self.capacity_types, self.nodes)
        return f"{counted(self.nodes, 'node')} for {counted(self.pods, 'pod')}, {price}"

    @property
    def kinds(self) -> str:
        """`2 × m-16x and 2 × m-4x; on-demand in zone-a`."""
        return f"{listed(f'{count:,} × {name}' for name, count in self.types)}; {self.places}"


@dataclass(frozen=True, slots=True)
class LeavingNode:
    """A node that is being deleted, and where its pods could be placed."""

    node: str
    pods: PendingOutcome


@dataclass(frozen=True, slots=True)
class LeftOver:
    """Pods that could not be placed for the same reasons."""

    names: tuple[str, ...]
    unplaced: tuple[UnplacedReason, ...]

    @property
    def title(self) -> str:
        """`Pod/shop/a and Pod/shop/b`, the first few by name."""
        rest = len(self.names) - MOST_NAMES
        return listed([*self.names[:MOST_NAMES], *([f"{counted(rest, 'more pod')}"] if rest > 0 else [])])

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(reason_words(reason) for reason in self.unplaced)


def launches(plan: Plan) -> tuple[PendingLaunch, ...]:
    """New nodes that hold pending pods, by NodePool and place."""
    groups: dict[tuple[str, str], list[NodeClaimCreation]] = {}
    for creation in plan.node_claims.create:
        if _pods_on(creation):
            groups.setdefault((creation.planned.node_pool, _places(creation)), []).append(creation)
    return tuple(_launch(pool, places, members) for (pool, places), members in sorted(groups.items()))


def _pods_on(creation: NodeClaimCreation) -> int:
    return sum(holding.count for holding in creation.planned.holdings if holding.demand.kind == POD_KIND)


def _places(creation: NodeClaimCreation) -> str:
    planned = creation.planned
    zones = " or ".join(planned.zones) if len(planned.zones) <= MOST_ZONES else f"any of {len(planned.zones)} zones"
    return f"{' or '.join(planned.capacity_types)} in {zones}"


def _launch(pool: str, places: str, members: Iterable[NodeClaimCreation]) -> PendingLaunch:
    kinds: dict[str, int] = {}
    pods, price, known = 0, 0.0, True
    capacity_types: tuple[str, ...] = ()
    for creation in members:
        name = creation.planned.instance_types[0] if creation.planned.instance_types else "any type"
        kinds[name] = kinds.get(name, 0) + 1
        pods += _pods_on(creation)
        capacity_types = creation.planned.capacity_types
        price += creation.planned.price
        known = known and creation.planned.price_known
    types = tuple(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))
    return PendingLaunch(pool, places, capacity_types, types, pods, price if known else None)


def left_over(plan: Plan) -> tuple[LeftOver, ...]:
    """Pods without a place, grouped by equal reasons, the largest group first."""
    groups: dict[tuple[UnplacedReason, ...], list[str]] = {}
    for outcome in plan.demands:
        if outcome.demand.is_pending_pod and outcome.unplaced:
            groups.setdefault(outcome.unplaced_reasons, []).append(str(outcome.demand.ref))
    rows = [LeftOver(tuple(names), reasons) for reasons, names in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-len(row.names), row.names)))


def leaving_nodes(plan: Plan) -> tuple[LeavingNode, ...]:
    """Nodes being deleted whose pods need another place, by name, in a plan made with `--include-pending`."""
    by_node: dict[str, list[DemandOutcome]] = {}
    for outcome in plan.demands:
        if outcome.demand.leaves:
            by_node.setdefault(outcome.demand.leaves, []).append(outcome)
    return tuple(LeavingNode(node, PendingOutcome.of(outcomes)) for node, outcomes in sorted(by_node.items()))


def _whose(leaving: Sequence[LeavingNode]) -> str:
    """`2 pods of node-3, which is being deleted`, `9 pods of 2 nodes that are being deleted (node-3 and node-4)`."""
    pods = counted(sum(item.pods.pods for item in leaving), "pod")
    names = [item.node for item in leaving]
    if len(names) == 1:
        return f"{pods} of {names[0]}, which is being deleted"
    shown = listed(names, most=MOST_NAMES)
    return f"{pods} of {counted(len(names), 'node')} that are being deleted ({shown})"


def pending_words(plan: Plan) -> str:
    """One sentence about all pending pods and those of nodes being deleted; "" if there are none."""
    leaving = leaving_nodes(plan)
    waiting = [counted(plan.pending.pods, "pending pod")] if plan.pending.pods else []
    pending = sum((item.pods for item in leaving), plan.pending)
    if not pending.pods:
        return ""
    there = pending.placed_on_existing
    parts = ["1 fits an existing node" if there == 1 else f"{there:,} fit existing nodes"] if there else []
    if pending.placed_on_new:
        rows = launches(plan)
        nodes = counted(sum(row.nodes for row in rows), "new node")
        prices = [row.price for row in rows if row.price is not None]
        price = f" at {hourly(sum(prices))}" if len(prices) == len(rows) else ""
        if price and all(row.is_paid for row in rows):
            price = " at no further cost"
        parts.append(f"{pending.placed_on_new:,} would go on {nodes}{price}")
    if pending.unplaced:
        one = pending.unplaced == 1
        missing = "needs a node that does not exist yet" if one else "need nodes that do not exist yet"
        parts.append(f"{pending.unplaced:,} {'cannot be placed' if plan.include_pending else missing}")
    return f"{listed([*waiting, *([_whose(leaving)] if leaving else [])])}: {', '.join(parts)}"
