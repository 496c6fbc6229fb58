"""The cost of one state once the cluster has settled: demands are placed, and nodes that hold nothing are gone.

And what stands at the end of a pass, and what it costs now: computed only when somebody looks.

Caps on what one pass may make do not count, since later passes make the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from reconciler.model.changes import NodeClaimCreation, Plan, StaticPoolChange
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand, service_of
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, InstanceType
from reconciler.model.placement import Placement, UnplacedReason
from reconciler.model.quantity import CPU, MEMORY, Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.timelines import (
    DemandCost,
    NodeState,
    PoolCost,
    StandingNode,
    StandingNodes,
    SteadyState,
    share_price,
)
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, all_bins, standing_by_pool
from reconciler.plan.cost import Prices
from reconciler.plan.node_pools.static_pools import cheapest_admitted, leaving, nodes_after


@dataclass(slots=True)
class _Account:
    """Sums of one state. nodes, unpriced: counts. prices: USD an hour."""

    nodes: dict[str, int] = field(default_factory=dict)
    prices: dict[str, float] = field(default_factory=dict)
    demands: dict[ObjectRef, float] = field(default_factory=dict)
    unpriced: int = 0

    def add(self, pool: str, price: float | None, nodes: int = 1) -> None:
        self.nodes[pool] = self.nodes.get(pool, 0) + nodes
        if price is None:
            self.unpriced += nodes
        else:
            self.prices[pool] = self.prices.get(pool, 0.0) + price * nodes


class Accountant:
    """Prices placements on one cluster. What states have in common is computed once."""

    def __init__(self, view: ClusterView, instance_types: Sequence[InstanceType]) -> None:
        self._view = view
        self._instance_types = instance_types
        self._prices = Prices(instance_types)
        self._static: dict[str, float | None] = {}

    def steady_state(self, declared: Declared, demands: Iterable[Demand], placement: Placement) -> SteadyState:
        asked = {demand.ref: demand for demand in demands if demand.leaves or not demand.is_pending_pod}
        account = _Account()
        bins = all_bins(self._view, placement.occupied)
        gone = self._shrunk(declared, bins, account)
        for item in bins:
            if item.is_going or item.name in gone:
                continue
            if item.is_placeholder and not (item.in_use or item.chunks or item.pods):
                continue
            price = self._prices.of(item)
            account.add(item.node_pool, price)
            if price is not None and item.is_placeholder and not item.in_use:
                share_price(price, (*item.chunks, *item.pods), asked, account.demands)
        for planned in placement.planned:
            if any(holding.demand not in asked for holding in planned.holdings):
                continue  # Karpenter makes nodes for pending pods, with or without these manifests
            price = planned.price if planned.price_known else None
            account.add(planned.node_pool, price)
            if price is not None:
                share_price(price, planned.holdings, asked, account.demands)
        return SteadyState(
            per_hour=sum(account.prices.values()),
            nodes=sum(account.nodes.values()),
            unpriced=account.unpriced,
            pools={
                name: PoolCost(count, account.prices.get(name, 0.0)) for name, count in sorted(account.nodes.items())
            },
            demands=_demand_costs(asked, placement, account.demands),
        )

    def _shrunk(self, declared: Declared, bins: Sequence[Bin], account: _Account) -> frozenset[str]:
        """The names of bins that static NodePools lose. What they gain is added to the account."""
        there = standing_by_pool(bins)
        gone: frozenset[str] = frozenset()
        for pool in declared.node_pools:
            if pool.replicas is None:
                continue
            before = there[pool.name]
            after = nodes_after(pool, before, pool.replicas)
            if after < before:
                gone |= leaving(StaticPoolChange(pool.name, before, after), bins)
            elif after > before:
                if pool.name not in self._static:
                    self._static[pool.name] = cheapest_admitted(pool, self._instance_types)[1]
                account.add(pool.name, self._static[pool.name], after - before)
        return gone


def _demand_costs(
    asked: Mapping[ObjectRef, Demand], placement: Placement, shares: Mapping[ObjectRef, float]
) -> dict[ObjectRef, DemandCost]:
    placed: Counter[ObjectRef] = Counter()
    bins = chain((item.holdings for item in placement.occupied), (item.holdings for item in placement.planned))
    for holding in chain.from_iterable(bins):
        placed[holding.demand] += holding.count
    reasons: dict[ObjectRef, list[UnplacedReason]] = {}
    for rest in placement.unplaced:
        reasons.setdefault(rest.demand, []).extend(rest.reasons)
    costs = {}
    for ref, demand in sorted((ref, demand) for ref, demand in asked.items() if not demand.leaves):
        standing = demand.balloons + sum(placed[pod] for pod in demand.waiting_balloons)
        service = service_of(demand, placed[ref] + standing, reasons.get(ref, ()))
        sizes = {group.shape.requests for group in demand.groups}
        chunk = next(iter(sizes)) if len(sizes) == 1 else Resources()
        costs[ref] = DemandCost(service, shares.get(ref, 0.0), chunk, demand.explanation)
    return costs


_Used = tuple[int, int]
"""CPU in millicores and memory in bytes."""


def standing_nodes(plan: Plan, view: ClusterView, instance_types: Sequence[InstanceType]) -> StandingNodes:
    """Nodes that the plan creates count as coming. plan: of a pass over this view."""
    prices, used = Prices(instance_types), _used(view)
    asked = {outcome.demand.ref: outcome.demand for outcome in plan.demands}
    per_hour: dict[ObjectRef, float] = {}
    bins = all_bins(view, plan.occupied)
    nodes = []
    for item in bins:
        price = prices.of(item)
        nodes.append(_node(item, price, used))
        if price is not None and item.is_placeholder and not (item.in_use or item.is_going):
            share_price(price, item.chunks, asked, per_hour)
    names = {item.name for item in bins}
    for creation in plan.node_claims.create:
        if creation.name in names:
            continue
        nodes.append(_planned(creation))
        if creation.planned.price_known:
            share_price(creation.planned.price, creation.planned.holdings, asked, per_hour)
    return StandingNodes(tuple(sorted(nodes, key=lambda node: (node.node_pool, node.name))), per_hour)


def _node(item: Bin, price: float | None, used: Mapping[str, _Used]) -> StandingNode:
    node, claim = item.node, item.node_claim
    cpu = memory = None
    if node is not None:
        millicores, size = used.get(node.name, (0, 0))
        cpu, memory = _share(millicores, node.allocatable.get(CPU)), _share(size, node.allocatable.get(MEMORY))
    return StandingNode(
        name=item.name,
        node_pool=item.node_pool,
        state=_state(item),
        instance_type=item.label(INSTANCE_TYPE_LABEL) or "",
        zone=item.label(ZONE_LABEL) or "",
        capacity_type=item.label(CAPACITY_TYPE_LABEL) or "",
        price=price,
        cpu=cpu,
        memory=memory,
        holdings=(*item.chunks, *item.watched),
        held=item.is_held,
        drifted=claim is not None and claim.condition("Drifted") == "True",
        expires=None if claim is None else claim.expires,
    )


def _state(item: Bin) -> NodeState:
    if item.is_going:
        return NodeState.GOING
    if item.is_on_its_way:
        return NodeState.COMING
    return NodeState.READY if item.node is not None and item.node.ready else NodeState.NOT_READY


def _planned(creation: NodeClaimCreation) -> StandingNode:
    planned = creation.planned
    return StandingNode(
        name=creation.name,
        node_pool=planned.node_pool,
        state=NodeState.COMING,
        instance_type=planned.instance_types[0] if len(planned.instance_types) == 1 else "",
        zone=planned.zones[0] if len(planned.zones) == 1 else "",
        capacity_type=planned.capacity_types[0] if len(planned.capacity_types) == 1 else "",
        price=planned.price if planned.price_known else None,
        holdings=planned.holdings,
    )


def _used(view: ClusterView) -> dict[str, _Used]:
    """What pods request, by node."""
    used: dict[str, _Used] = {}
    for pod in view.pods:
        if pod.node_name is not None:
            cpu, memory = used.get(pod.node_name, (0, 0))
            requests = pod.shape.requests
            used[pod.node_name] = cpu + requests.get(CPU), memory + requests.get(MEMORY)
    return used


def _share(used: int, allocatable: int) -> float | None:
    return used / allocatable if allocatable else None
