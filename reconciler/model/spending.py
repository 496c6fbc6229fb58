"""What nodes stand at the end of a pass, and what capacity costs over a span of time, in USD.

Every span is half-open, [start, end), in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.model.demand import REQUEST_KIND, Demand, Service
from reconciler.model.placement import Holding
from reconciler.model.quantity import PODS, Resources
from reconciler.model.refs import ObjectRef


class NodeState(StrEnum):
    """How far a node is, in the words that people are shown."""

    READY = "ready"
    NOT_READY = "not ready"
    COMING = "coming"
    GOING = "going"


@dataclass(frozen=True, slots=True)
class StandingNode:
    """A node, or a NodeClaim whose node is on its way.

    price: USD an hour, None where unknown. cpu, memory: the shares of its allocatable amounts that its pods request, None while it has
    none. held: whether headroom protects it from disruption. expires: when Karpenter replaces it because of its age, None for never.
    """

    name: str
    node_pool: str
    state: NodeState
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: float | None = None
    cpu: float | None = None
    memory: float | None = None
    holdings: tuple[Holding, ...] = ()
    held: bool = False
    drifted: bool = False
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class StandingNodes:
    """nodes: by NodePool and name. per_hour: what each demand costs, in USD an hour: its part of the nodes that only hold chunks."""

    nodes: tuple[StandingNode, ...] = ()
    per_hour: Mapping[ObjectRef, float] = field(default_factory=dict)


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


SAMPLE_PRICES = "sample prices: invented for Karpenter's KWOK provider, and no cloud's"
"""How the source of such prices begins."""
MONTH = timedelta(days=30)
"""How far cost forecasts look ahead."""

HOURS_PER_MONTH = 730
"""A twelfth of a year, to turn a price an hour into one a month. Costs over 30 days, with schedules, are over 720 hours."""
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PoolCost:
    """One NodePool in a steady state. per_hour: USD."""

    nodes: int = 0
    per_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class DemandCost:
    """One demand in a steady state. per_hour: USD, its share of nodes that exist for chunks alone, whoever makes them.

    chunk: what one chunk requests; nothing where chunks differ. facts: how its size was computed, one fact each.
    """

    service: Service = field(default_factory=Service)
    per_hour: float = 0.0
    chunk: Resources = field(default_factory=Resources)
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The cost once the cluster has settled on what is asked for. per_hour: USD of all nodes with a known price. unpriced: how
    many have none. is_mean: it stands for several states that were not placed, so its demands are not known."""

    per_hour: float = 0.0
    nodes: int = 0
    unpriced: int = 0
    pools: Mapping[str, PoolCost] = field(default_factory=dict)
    demands: Mapping[ObjectRef, DemandCost] = field(default_factory=dict)
    is_mean: bool = False


@dataclass(frozen=True, slots=True)
class WindowCost:
    """What the followers of one schedule cost while it has one value. hours: for how long it has that value within the span.

    value: replicas. None stands for any value above 0, for followers that exist only then.
    """

    schedule: ObjectRef
    value: int | None
    hours: float
    cost: float


@dataclass(frozen=True, slots=True)
class CostSpan:
    """A span in which nothing that is asked for changes."""

    start: datetime
    end: datetime
    state: SteadyState

    @property
    def hours(self) -> float:
        """How long it lasts."""
        return (self.end - self.start) / HOUR


@dataclass(frozen=True, slots=True)
class Spending:
    """spans: they fill [start, end), and neighbours differ. windows: by schedule, the highest value first. notes: assumptions."""

    start: datetime
    end: datetime
    spans: tuple[CostSpan, ...]
    windows: tuple[WindowCost, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """USD over the whole span."""
        return sum(span.state.per_hour * span.hours for span in self.spans)

    def of_pools(self) -> dict[str, float]:
        """USD over the whole span by NodePool; "" for nodes of none."""
        totals: dict[str, float] = {}
        for span in self.spans:
            for name, pool in span.state.pools.items():
                totals[name] = totals.get(name, 0.0) + pool.per_hour * span.hours
        return totals

    def per_hour_of(self, request: ObjectRef) -> float | None:
        """USD an hour while the request's pods run; None for what is no request, or is not served."""
        if request.kind != REQUEST_KIND:
            return None
        prices = (span.state.demands[request].per_hour for span in self.spans if request in span.state.demands)
        return max(prices, default=0.0) or None

    def of_demands(self) -> dict[ObjectRef, tuple[float, float]]:
        """USD over the whole span by demand, and chunk-hours."""
        totals: dict[ObjectRef, tuple[float, float]] = {}
        for span in self.spans:
            for ref, demand in span.state.demands.items():
                cost, chunk_hours = totals.get(ref, (0.0, 0.0))
                served = demand.service.served
                totals[ref] = (cost + demand.per_hour * span.hours, chunk_hours + served * span.hours)
        return totals
