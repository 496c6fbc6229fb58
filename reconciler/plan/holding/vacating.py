"""Placeholders that chunks may leave for room that became free elsewhere, so that a warm node is not paid for twice.

Room counts once it has been free for the `consolidateAfter` of the placeholder's NodePool. Karpenter dates the last pod that came to a node
or left it on its NodeClaim (controllers/nodeclaim/podevents), and waits from there. Nothing is remembered here, so that a restart changes
nothing. No more placeholders are left at a time than its Empty budget lets Karpenter take. Whether the chunks fit elsewhere is for
placement to say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from reconciler.model.nodes import NodePool
from reconciler.plan.bins import Bin, by_node_pool
from reconciler.plan.node_pools.disruption_budgets import EMPTY, PoolState, allowed, pool_states

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
