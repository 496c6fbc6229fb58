"""What capacity, schedules and budgets were over the last days, and will be over a span of time; what nodes stand at the end of a pass, and what
capacity costs (spending), in USD.

Every span is half-open, [start, end), in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Protocol, TypeVar

from reconciler.model.changes import BudgetOutcome
from reconciler.model.demand import REQUEST_KIND, Demand, Service
from reconciler.model.placement import Holding
from reconciler.model.quantity import PODS, Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Schedule, ScheduleOutcome

T = TypeVar("T")


def aligned(*rows: Sequence[tuple[datetime, datetime, T]]) -> Iterator[tuple[datetime, datetime, tuple[T, ...]]]:
    """Rows of spans cut wherever one of them changes, with the value of each row. All rows fill the same time without gaps."""
    positions = [0] * len(rows)
    for opens, closes in pairwise(sorted({edge for row in rows for start, end, _ in row for edge in (start, end)})):
        positions = [at + (row[at][1] <= opens) for at, row in zip(positions, rows, strict=True)]
        yield opens, closes, tuple(row[at][2] for at, row in zip(positions, rows, strict=True))


class _Span(Protocol):
    @property
    def start(self) -> datetime: ...

    @property
    def end(self) -> datetime: ...


S = TypeVar("S", bound=_Span)


def joined(spans: Iterable[S], worth: Callable[[S], object]) -> list[S]:
    """Neighbours of equal worth as one span, otherwise like the first of them. spans: dataclasses, in order."""
    result: list[S] = []
    for span in spans:
        if result and result[-1].end == span.start and worth(result[-1]) == worth(span):
            result[-1] = replace(result[-1], end=span.end)  # type: ignore[type-var]  # always a dataclass here
        else:
            result.append(span)
    return result


@dataclass(frozen=True, slots=True)
class ScheduleSpan:
    """One value of a schedule. behavior: the index in the spec of the active one; None if none is, and the default holds."""

    start: datetime
    end: datetime
    value: int
    behavior: int | None


@dataclass(frozen=True, slots=True)
class Collision:
    """Two behaviors of one schedule that are active at once: the first such time in the span. winner, loser: their indexes."""

    start: datetime
    end: datetime
    winner: int
    loser: int


@dataclass(frozen=True, slots=True)
class ScheduleTimeline:
    """One schedule over [start, end): spans fill it without gaps, and neighbours differ.

    outcome: at the instant for which the timeline was asked.
    """

    schedule: Schedule
    outcome: ScheduleOutcome
    start: datetime
    end: datetime
    spans: tuple[ScheduleSpan, ...]
    collisions: tuple[Collision, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetSpan:
    """A span in which one pool's budget for one reason does not change."""

    start: datetime
    end: datetime
    outcome: BudgetOutcome


@dataclass(frozen=True, slots=True)
class BudgetPieces:
    """One pool's budget for one reason over time: outcomes[i] from edges[i] to edges[i + 1], in microseconds since 1970 UTC.

    A year of two hundred pools has millions of pieces. As `BudgetSpan` objects they would take most of a report's time.
    """

    edges: list[int]
    outcomes: list[BudgetOutcome]


UNBOUNDED = 2**31 - 1
"""Karpenter's number of nodes where nothing bounds a reason; a budget this large counts as none."""


@dataclass(frozen=True, slots=True)
class BudgetCells:
    """Hour by hour, the fewest disruptions that one pool's budgets allow for one reason.

    allowed: nodes, one number an hour; `UNBOUNDED` where nothing bounds them. most: the most that they allow at any time.
    """

    node_pool: str
    reason: str
    allowed: tuple[int, ...]
    most: int


@dataclass(frozen=True, slots=True)
class DemandSpan:
    """What one buffer or static NodePool asks for. replicas: a buffer's chunks (None if it is not ready), or a pool's nodes. why: in
    words."""

    ref: ObjectRef
    start: datetime
    end: datetime
    replicas: int | None
    why: str


@dataclass(frozen=True, slots=True)
class CapacityTimeline:
    """All capacity over [start, end), as forecast at one instant. Each tuple is ordered by object, then by time."""

    start: datetime
    end: datetime
    demands: tuple[DemandSpan, ...] = ()
    schedules: tuple[ScheduleTimeline, ...] = ()
    budgets: tuple[BudgetSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class FillPoint:
    """What holds from `since` until the next point. wanted, ready: chunks. price: USD an hour of all nodes; 0 of one buffer's points.

    Of several passes that one point stands for: the one with the largest shortage, and the last price.
    """

    since: datetime
    wanted: int
    ready: int
    price: float = 0.0


@dataclass(frozen=True, slots=True)
class Refill:
    """A shortage that has ended. seconds: how long it lasted."""

    ended: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class BufferPast:
    """points: a point for each change, the oldest first. refills: the newest first."""

    points: tuple[FillPoint, ...] = ()
    refills: tuple[Refill, ...] = ()


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
    requests = [
        asked[item.demand].groups[item.group].shape.requests * item.count if item.demand in asked else Resources()
        for item in holdings
    ]
    totals = [(name, total) for name, total in Resources.total(requests) if name != PODS]
    chunks = sum(holding.count for holding in holdings)
    for holding, own in zip(holdings, requests, strict=True):
        if totals:
            part = sum(own.get(name) / total for name, total in totals) / len(totals)
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

    def shrunk_since(self, before: SteadyState) -> list[str]:
        """The NodePools that have fewer nodes than before."""
        none = PoolCost()
        return [name for name, cost in before.pools.items() if self.pools.get(name, none).nodes < cost.nodes]


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
