"""Nodes that chunks must leave: about to expire, or drifted. Their chunks go elsewhere first, then they are released.

Computed before placement, which must not use these bins. The plan keeps them protected until their replacement is there. Karpenter expires
nodes whatever their annotations and budgets say (controllers/nodeclaim/expiration), but does not disrupt a protected one for drift.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from math import ceil

from reconciler.model.nodes import NodePool
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, all_bins, by_node_pool
from reconciler.plan.node_pools.disruption_budgets import DRIFTED, PoolState, outcome, pool_states

EXPIRY_LEAD = timedelta(minutes=15)
"""How long before its expiry a node takes no more chunks. A replacement is there within minutes, or Karpenter gives up its launch after
15."""
_SHARE_OF_LIFE = 4
_STEPS = 4
"""The placeholders of a pool are replaced in so many steps, each about as long as a launch."""


def unavailable_bins(
    view: ClusterView,
    node_pools: Iterable[NodePool],
    now: datetime,
    *,
    kept: Collection[str] = (),
    spared: Collection[str] = (),
) -> frozenset[str]:
    """Names of nodes (of NodeClaims, where there is no node yet) that must hold no chunks from now on.

    now: by the cluster's clock. If that is in doubt, nodes count as young as they may be. By a clock that is ahead, each replacement would
    be due for replacement at once, without end.
    kept: names of nodes whose chunks stay in any case; spared: of nodes whose chunks stay despite drift.
    """
    bins = all_bins(view)
    names = _expiring([item for item in bins if item.name not in kept], now - view.clock_doubt)
    states = pool_states(bins)
    by_pool = by_node_pool(item for item in bins if item.name not in kept and item.name not in spared)
    for pool in node_pools:
        names |= _drifting(pool, by_pool.get(pool.name, ()), states, now)
    return frozenset(names)


def _expiring(bins: Iterable[Bin], now: datetime) -> set[str]:
    """Of nodes with chunks, a few of each pool at a time, the oldest first. A wrong clock or `expireAfter` must never replace all at once.
    A node that is still on its way was made minutes ago, and is not replaced."""
    held: dict[str, list[Bin]] = {}
    names = set()
    for item in bins:
        if item.is_marked:
            held.setdefault(item.node_pool, []).append(item)
        elif _expires_soon(item, now):
            names.add(item.name)
    for items in held.values():
        arrived = [item for item in items if not item.is_on_its_way]
        step = ceil(len(arrived) / _STEPS)
        due = sorted((item for item in arrived if _expires_soon(item, now)), key=_age)
        names.update(item.name for item in due[:step])
    return names


def _expires_soon(item: Bin, now: datetime) -> bool:
    claim = item.claim
    if claim is None or claim.expire_after is None or claim.created is None:
        return False
    lead = min(EXPIRY_LEAD, claim.expire_after / _SHARE_OF_LIFE)
    return now >= claim.created + claim.expire_after - lead


def _drifting(pool: NodePool, bins: Iterable[Bin], states: Mapping[str, PoolState], now: datetime) -> set[str]:
    """Drifted nodes that headroom holds, as many at once as the Drifted budget allows. Also all that are not held: Karpenter may take those
    at any time, so chunks must not come to them.

    Nodes that were released and not yet taken by Karpenter use up the budget too. Otherwise all nodes would be released one by one,
    whatever the budget.
    """
    drifted = [
        item
        for item in bins
        if item.claim is not None and item.claim.condition("Drifted") == "True" and not item.is_going
    ]
    if not drifted:
        return set()
    found = outcome(pool, DRIFTED, states.get(pool.name, PoolState()), now)
    held = sorted((item for item in drifted if item.is_marked), key=_age)
    free = {item.name for item in drifted if not item.is_marked}
    if found.budget == 0:
        return set()
    if found.allowed is None:
        return free | {item.name for item in held}
    return free | {item.name for item in held[: max(0, found.allowed - len(free))]}


def _age(item: Bin) -> tuple[str, str]:
    created = item.claim.created if item.claim is not None else None
    return ("" if created is None else created.isoformat(), item.name)
