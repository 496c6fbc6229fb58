"""The cost of one state once the cluster has settled: demands are placed, and nodes that hold nothing are gone.

Caps on what one pass may make do not count, since later passes make the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from reconciler.model.changes import StaticPoolChange
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand, service_of
from reconciler.model.nodes import InstanceType
from reconciler.model.placement import Holding, Placement, UnplacedReason
from reconciler.model.quantity import PODS, Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.spending import DemandCost, PoolCost, SteadyState
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, all_bins
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
        self._empty: tuple[Bin, ...] | None = None

    def steady_state(self, declared: Declared, demands: Iterable[Demand], placement: Placement) -> SteadyState:
        asked = {demand.ref: demand for demand in demands if demand.leaves or not demand.is_pending_pod}
        account = _Account()
        bins = self._bins(placement)
        gone = self._shrunk(declared, bins, account)
        for item in bins:
            if item.is_going or item.name in gone:
                continue
            if item.is_placeholder and not (item.in_use or item.chunks or item.pods):
                continue
            price = self._prices.of(item)
            account.add(item.node_pool, price)
            if price is not None and item.is_placeholder and not item.in_use:
                share_price(price, item.chunks, asked, account.demands)
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

    def _bins(self, placement: Placement) -> list[Bin]:
        """Every bin of the cluster, with what the placement puts on it."""
        if self._empty is None:
            self._empty = all_bins(self._view)
        held = {
            (place.node is not None, place.node or place.node_claim): place.holdings for place in placement.occupied
        }
        bins = []
        for item in self._empty:
            on_node = () if item.node is None else held.get((True, item.node.name), ())
            on_claim = () if item.claim is None else held.get((False, item.claim.name), ())
            holdings = (*on_node, *on_claim)
            bins.append(replace(item, chunks=holdings) if holdings else item)
        return bins

    def _shrunk(self, declared: Declared, bins: Sequence[Bin], account: _Account) -> frozenset[str]:
        """The names of bins that static NodePools lose. What they gain is added to the account."""
        there: dict[str, int] = {}
        for item in bins:
            if not item.is_going:
                there[item.node_pool] = there.get(item.node_pool, 0) + 1
        gone: frozenset[str] = frozenset()
        for pool in declared.node_pools:
            if pool.replicas is None:
                continue
            before = there.get(pool.name, 0)
            after = nodes_after(pool, before, pool.replicas)
            if after < before:
                gone |= leaving(StaticPoolChange(pool.name, before, after), bins)
            elif after > before:
                if pool.name not in self._static:
                    self._static[pool.name] = cheapest_admitted(pool, self._instance_types)[1]
                account.add(pool.name, self._static[pool.name], after - before)
        return gone


def share_price(
    price: float, holdings: Sequence[Holding], asked: Mapping[ObjectRef, Demand], shares: dict[ObjectRef, float]
) -> None:
    """Divides a node's price among its chunks by their requests: the mean of their shares of each resource."""
    amounts = []
    for holding in holdings:
        demand = asked.get(holding.demand)
        requests = {} if demand is None else dict((demand.groups[holding.group].shape.requests * holding.count).amounts)
        amounts.append({name: float(amount) for name, amount in requests.items() if name != PODS})
    totals: dict[str, float] = {}
    for own in amounts:
        for name, amount in own.items():
            totals[name] = totals.get(name, 0.0) + amount
    counted = [name for name, total in totals.items() if total > 0]
    chunks = sum(holding.count for holding in holdings)
    for holding, own in zip(holdings, amounts, strict=True):
        if counted:
            part = sum(own.get(name, 0.0) / totals[name] for name in counted) / len(counted)
        else:
            part = holding.count / chunks if chunks else 0.0
        shares[holding.demand] = shares.get(holding.demand, 0.0) + price * part


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
