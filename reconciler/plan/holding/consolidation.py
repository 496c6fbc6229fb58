"""Held nodes that chunks leave: placeholders for room that became free elsewhere, so that a warm node is not paid for twice, and nodes whose
pods and chunks can be had for less. And which chunks are on their way off one.

Room counts once it has been free for the `consolidateAfter` of the node's NodePool. Karpenter dates the last pod that came to a node or left
it on its NodeClaim (controllers/nodeclaim/podevents), and waits from there. No more placeholders are left at a time than the NodePool's Empty
budget lets Karpenter take. Whether the chunks fit elsewhere is for placement to say.

Karpenter does not consolidate a node that headroom protects. So headroom looks itself whether the node's pods and chunks can be had for
less. It then makes the cheaper room for the chunks and releases the node, and Karpenter moves the pods. The limits are Karpenter's own:
`consolidationPolicy`, `consolidateAfter` and the budgets for Underutilized and Empty. One node of a NodePool is left at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.model.changes import NodeClaimCreation
from reconciler.model.demand import Demand
from reconciler.model.launch_options import offering_labels, type_labels
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, InstanceType, NodePool, Offering
from reconciler.model.pods import Pod, why_not_evicted_now
from reconciler.model.quantity import Resources
from reconciler.model.refs import by_key
from reconciler.model.remembered import Departure, records_of, remembered
from reconciler.model.requirements import Requirement, allow
from reconciler.model.rules import PlacementRules
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, by_node_pool
from reconciler.plan.cost import Prices
from reconciler.plan.node_pools.disruption_budgets import EMPTY, UNDERUTILIZED, PoolState, allowed, pool_states

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
LEAST_WAIT = timedelta(seconds=10)
"""Karpenter dates pod events that are closer together only once, so younger room may be in use again already."""


def wait_of(pool: NodePool) -> timedelta | None:
    """How long room must have been free before chunks leave a node of this NodePool for it; None: they never do."""
    if pool.consolidate_after is None or pool.replicas is not None:
        return None
    return max(pool.consolidate_after, LEAST_WAIT)


def unchanged_since(item: Bin) -> datetime:
    """When a pod last came or went, or the node last became ready; long ago if that is not recorded."""
    claim, node = item.node_claim, item.node
    times = [
        None if claim is None else claim.last_pod_event,
        None if node is None else node.ready_changed,
        None if node is None else node.created,
    ]
    return max((time for time in times if time is not None), default=LONG_AGO)


def closed_to_chunks(bins: Iterable[Bin], since: datetime) -> frozenset[str]:
    """Names of bins that no more chunks come to: unused ones, those on their way, and those whose room has changed since then. Nor do they
    come to room that pods of a node which goes may need: Karpenter has counted on it."""
    draining = {item.node_pool for item in bins if item.is_going and item.in_use}
    return frozenset(
        item.name
        for item in bins
        if not (item.chunks or item.in_use)
        or item.is_on_its_way
        or unchanged_since(item) > since
        or (item.node_pool in draining and not (item.is_held and item.chunks))
    )


def with_starting_nodes(bins: Iterable[Bin]) -> frozenset[str]:
    """NodePools in which chunks wait for a node that is on its way. Others of their nodes are left once it is there."""
    return frozenset(item.node_pool for item in bins if item.chunks and item.is_on_its_way)


@dataclass(frozen=True, slots=True)
class Vacancy:
    """Placeholders of one NodePool that chunks may leave."""

    candidates: tuple[str, ...]
    """Their names, the dearest first."""
    most: int | None
    """How many at once; None: any number."""
    closed: frozenset[str]
    """Names of bins that take none of their chunks."""


def vacancies(
    bins: Sequence[Bin],
    node_pools: Iterable[NodePool],
    now: datetime,
    *,
    unavailable: Collection[str],
    price_of: Callable[[Bin], float | None],
) -> tuple[list[Vacancy], datetime | None]:
    """One for each NodePool, and when more room will have been free long enough.

    now: by the cluster's clock. unavailable: bins whose chunks are on the move already."""
    if any(item.pods for item in bins):
        return [], None  # they settle first; that change starts another pass
    starting = with_starting_nodes(bins)
    states = pool_states(bins)
    by_pool = by_node_pool(bins)
    elsewhere = [item for item in bins if item.chunks or item.in_use]
    found: list[Vacancy] = []
    looks: list[datetime] = []
    for pool in sorted(node_pools, key=lambda item: item.name):
        wait, own = wait_of(pool), by_pool.get(pool.name, [])
        # Only nodes on which nothing runs: a node with pods is paid for anyway.
        held = [item for item in own if is_left_by_chunks(item) and not item.in_use and item.name not in unavailable]
        if wait is None or not held or pool.name in starting:
            continue
        times = {item.name: unchanged_since(item) + wait for item in (*held, *elsewhere)}
        looks += [time for time in times.values() if time > now]
        rested = (item for item in held if times[item.name] <= now)
        names = tuple(item.name for item in sorted(rested, key=lambda item: (-(price_of(item) or 0.0), item.name)))
        most = _most(pool, own, states, now)
        if names and most != 0:
            found.append(Vacancy(names, most, closed_to_chunks(bins, now - wait)))
    return found, min(looks, default=None)


def is_left_by_chunks(item: Bin) -> bool:
    """Whether headroom holds it for chunks that may be elsewhere."""
    ready = item.node is not None and item.node.ready
    mine = bool(item.chunks) and item.is_held and not item.is_reserved
    return mine and ready and not (item.is_going or item.is_on_its_way or item.pods or item.watched)


def _most(pool: NodePool, own: Iterable[Bin], states: Mapping[str, PoolState], now: datetime) -> int | None:
    """Placeholders that were left before and that Karpenter has not taken yet use up the budget too."""
    budget = allowed(pool, EMPTY, states.get(pool.name, PoolState()), now)
    if budget is None:
        return None
    waiting = sum(not (item.chunks or item.in_use or item.is_going or item.is_protected) for item in own)
    return max(0, budget - waiting)


DEPARTURES_KEY = "departures"
NOTHING = Resources()
WHEN_EMPTY = "WhenEmpty"
PATIENCE = timedelta(minutes=30)
"""How long Karpenter may take, beyond `consolidateAfter`, to consolidate a node that chunks have left."""
BUSY = timedelta(minutes=10)
"""How long no other node of the NodePool is left meanwhile. By then a busy Karpenter has taken the node, or has other reasons."""
REST = timedelta(hours=24)
"""How long a node that Karpenter has not consolidated is not left again."""


class Savings:
    """What can be saved at most, by sums of requests alone."""

    def __init__(
        self,
        rules: PlacementRules,
        instance_types: Sequence[InstanceType],
        least: LeastPrices,
        demands: Iterable[Demand],
        pods: Mapping[str, tuple[Pod, ...]],
    ) -> None:
        """pods: the running ones by node, as of `pods_by_node`."""
        self._rules = rules
        self.pods = pods
        self._prices = Prices(instance_types)
        self._least = least
        self._requests: dict[str, Resources] = {}
        self.shapes = {
            (demand.ref, index): group.shape for demand in demands for index, group in enumerate(demand.groups)
        }

    def price(self, item: Bin) -> float | None:
        """The node's price if all of it may be saved."""
        price = self._prices.of(item)
        return price if price is not None and price > self._rules.least_saving(price) else None

    def price_if_possible(self, item: Bin, more: Resources = NOTHING) -> float | None:
        """The node's price if leaving the node may be worth it. more: requested there beside its pods and chunks."""
        price = self.price(item)
        if price is None:
            return None
        saved = price - self._least.of(self._used(item) + more)
        return price if saved > self._rules.least_saving(price) else None

    def could_fit(self, leaving: Bin, others: Iterable[Bin]) -> bool:
        """Whether the others could have room for the node's chunks, together and for each chunk on some node. Mostly they have not, which
        saves trying a placement."""
        free = [
            item.node.allocatable - self._used(item) for item in others if item.node is not None and item.node.ready
        ]
        asked = (self.shapes.get((part.demand, part.group)) for part in leaving.chunks)
        return self.chunks(leaving).fits(Resources.total(free)) and all(
            any(shape.requests.fits(room) for room in free) for shape in asked if shape is not None
        )

    def _used(self, item: Bin) -> Resources:
        known = self._requests.get(item.name)
        if known is None:
            pods = self.pods.get(item.name, ())
            known = Resources.total([self.chunks(item), *(pod.shape.requests for pod in pods)])
            self._requests[item.name] = known
        return known

    def chunks(self, item: Bin) -> Resources:
        known = ((self.shapes.get((part.demand, part.group)), part.count) for part in item.chunks)
        return Resources.total(shape.requests * count for shape, count in known if shape is not None)

    def are_too_large(self, bins: Iterable[Bin], more: Resources, node_pools: Iterable[NodePool]) -> frozenset[str]:
        """Nodes that would be left again if these chunks came there, or that Karpenter makes smaller as long as none come."""
        pools = {pool.name: pool for pool in node_pools if wait_of(pool) is not None}
        return frozenset(
            item.name
            for item in bins
            if (pool := pools.get(item.node_pool)) is not None
            and not (item.in_use and pool.consolidation_policy == WHEN_EMPTY)
            and self.price_if_possible(item, more) is not None
        )


def departures(view: ClusterView, now: datetime) -> tuple[Departure, ...]:
    """Departures that the inventory remembers, as long as their node is there. If a NodeClaim made for the chunks has vanished, they stay. Once
    another pod has come to the node, Karpenter is not expected to take the node any more, and it counts like any other."""
    left = remembered(view.inventory.records, DEPARTURES_KEY, Departure)
    machines = {machine.name: machine for machine in view.machines}
    claims = {claim.name for claim in view.node_claims}
    pods = pods_by_node(view) if left else {}
    found = []
    for name, known in sorted(left.items()):
        machine = machines.get(name)
        if machine is None or now >= known.until + REST:
            continue
        failed = machine.is_held and "NodeClaim" not in view.unread and not claims.issuperset(known.claims)
        came = any(pod.created is not None and pod.created > known.since for pod in pods.get(name, ()))
        if not failed and (machine.is_held or not came):
            found.append(known)
    return tuple(found)


def with_claims(
    known: Iterable[Departure], created: Iterable[NodeClaimCreation], now: datetime
) -> tuple[Departure, ...]:
    """The departures that begin now with the NodeClaims made for them in this pass."""
    claims = tuple(sorted(item.name for item in created))
    for_pods = by_key((item.planned.holdings[0].demand.name, item.name) for item in created)
    return tuple(
        item if item.since != now else item.but(claims=claims, rooms=tuple(sorted(for_pods.get(item.node, ()))))
        for item in known
    )


def departure_records(known: Iterable[Departure]) -> dict[str, Any]:
    """What the inventory remembers: nothing while no chunks leave."""
    return records_of(DEPARTURES_KEY, {item.node: item.but(saves=round(item.saves, 6)) for item in known})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A held node that may be worth leaving."""

    bin: Bin
    price: float
    """USD an hour."""
    pods: tuple[Pod, ...]
    """Those that Karpenter would have to move."""
    replaceable: bool
    """Whether Karpenter may buy another node for them. It replaces no spot node by a spot node (SpotToSpotConsolidation is off by default)."""
    wait: timedelta
    """How long its NodePool wants it unchanged."""


def candidates(
    bins: Sequence[Bin],
    node_pools: Iterable[NodePool],
    view: ClusterView,
    now: datetime,
    *,
    staying: Collection[str],
    known: Sequence[Departure],
    price_of: Callable[[Bin], float | None],
    pods: Mapping[str, tuple[Pod, ...]],
) -> tuple[list[Candidate], datetime | None]:
    """Nodes that may be left, and that Karpenter may consolidate then. Also when another node will have been unchanged for long enough.

    now: by the cluster's clock. staying: nodes that must not be left. known: departures that are under way or have failed lately. price_of: a
    node's price if the node may be left, and leaving it may be worth it. pods: as of `pods_by_node`.
    """
    busy = {item.node: min(item.until, item.since + BUSY) for item in known}
    tried = {item.node for item in known}.union(staying)
    states = pool_states(bins)
    found: list[Candidate] = []
    looks: list[datetime] = []
    by_pool = by_node_pool(bins)
    for pool in sorted(node_pools, key=lambda item: item.name):
        own, wait = by_pool.get(pool.name, []), wait_of(pool)
        if wait is None:
            continue
        free = max((busy.get(item.name, now) for item in own), default=now)
        if free > now:
            looks.append(free)
            continue
        before = len(found)
        for item in own:
            running = pods.get(item.name, ())
            price = None if item.name in tried else price_of(item)
            if price is None or not _karpenter_may(pool, running, view, states.get(pool.name, PoolState()), now):
                continue
            rested = unchanged_since(item) + wait
            if rested > now:
                looks.append(rested)
                continue
            spot = any(side.label(CAPACITY_TYPE_LABEL) == "spot" for side in item.sides)
            found.append(Candidate(item, price, running, not spot, wait))
        if len(found) > before:  # what they need may be room that has not rested yet
            looks += [rested for item in own if (rested := unchanged_since(item) + wait) > now]
    return found, min(looks, default=None)


def rooms(bins: Iterable[Bin], known: Iterable[Departure], now: datetime) -> frozenset[str]:
    """Names of the nodes that are made for the pods of a node that chunks leave. Until these have come they hold nothing."""
    claims = {name for item in known if item.is_under_way(now) for name in item.rooms}
    return frozenset(item.name for item in bins if item.node_claim is not None and item.node_claim.name in claims)


def _karpenter_may(pool: NodePool, running: Sequence[Pod], view: ClusterView, state: PoolState, now: datetime) -> bool:
    """Whether Karpenter would consolidate the node once it is released: by policy, by budget, and by its pods."""
    if running and pool.consolidation_policy == WHEN_EMPTY:
        return False
    if allowed(pool, UNDERUTILIZED if running else EMPTY, state, now) == 0:
        return False
    return not any(why_not_evicted_now(pod, view.pod_disruption_budgets, now) for pod in running)


def pods_by_node(view: ClusterView) -> dict[str, tuple[Pod, ...]]:
    """The running pods of each node, without daemons, which every node has."""
    found = by_key((pod.node_name, pod) for pod in view.pods if pod.node_name is not None and not pod.is_daemon)
    return {name: tuple(pods) for name, pods in found.items()}


def is_serving(item: Bin, known: Iterable[Departure]) -> bool:
    """Whether chunks that leave the node could still be used there: no pod has come or gone since."""
    return any(each.node == item.name and unchanged_since(item) <= each.since for each in known)


class LeastPrices:
    """For each resource the least that one unit of it costs where a NodePool may buy it, in USD an hour. No mix of nodes has the resource
    for less. Offerings that no NodePool may buy do not count: next to spot prices each on-demand node would look too large."""

    def __init__(self, instance_types: Iterable[InstanceType], node_pools: Iterable[NodePool]) -> None:
        self._by_unit: dict[str, float] = {}
        wanted = {pool.template.requirements for pool in node_pools}
        for kind in instance_types:
            prices = [
                offering.price
                for offering in kind.offerings
                if offering.available and offering.price_known and _is_sold(kind, offering, wanted)
            ]
            for name, amount in kind.allocatable if prices else ():
                if amount > 0:
                    price = min(prices) / amount
                    self._by_unit[name] = min(price, self._by_unit.get(name, price))

    def of(self, requests: Resources) -> float:
        return max((self._by_unit.get(name, 0.0) * amount for name, amount in requests), default=0.0)


def _is_sold(kind: InstanceType, offering: Offering, wanted: Collection[tuple[Requirement, ...]]) -> bool:
    """Whether the requirements of some NodePool allow it."""
    labels = type_labels(kind) | offering_labels(offering)
    return any(allow(needs, labels) for needs in wanted)
