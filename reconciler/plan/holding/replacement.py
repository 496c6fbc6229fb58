"""Nodes that chunks must leave (about to expire, or drifted), and nodes from which nothing moves for now (just not ready, or suspended).
And nodes that a change of NodePools makes drift, before it is merged.

All are computed before placement. Chunks that must leave go elsewhere first: placement must not use those bins, and the plan keeps them
protected until their replacement is there. Karpenter expires nodes whatever their annotations and budgets say
(controllers/nodeclaim/expiration), but does not disrupt a protected one for drift.

Chunks of a node that has just become not ready wait a while before other room is made, and do not count as provisioned. The node's own
condition says since when it is not ready. A node whose devices are gone for as short a time has them all the same: its device plugin is
starting anew. Nodes with chunks of suspended buffers stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from math import ceil

from reconciler.model import codes
from reconciler.model.changes import BudgetOutcome
from reconciler.model.findings import Finding
from reconciler.model.machines import Machine
from reconciler.model.nodes import ForetoldDrift, NodeClaimTemplate, NodePool, node_pool_ref
from reconciler.model.pods import why_not_evicted_now
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef, abridged
from reconciler.model.remembered import Moment, Record, remembered
from reconciler.model.timelines import MONTH, BudgetSpan
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, all_bins, by_node_pool
from reconciler.plan.node_pools.budget_timeline import budget_spans
from reconciler.plan.node_pools.disruption_budgets import DRIFTED, PoolState, outcome, pool_state, pool_states

EXPIRY_LEAD = timedelta(minutes=15)
"""At most this long before its expiry a node takes no more chunks. A replacement is there within minutes, or Karpenter gives up its launch
after 15."""
_SHARE_OF_LIFE = 4
_MOST_OF_LIFE = 2
_STEPS = 4
"""The placeholders of a pool are replaced in this many steps, each about as long as a launch."""
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Leaving:
    """Nodes that take no more chunks."""

    names: frozenset[str] = frozenset()
    """Of nodes, or of NodeClaims where there is no node yet."""
    findings: tuple[Finding, ...] = ()
    """One for each NodePool with drifted nodes that have to wait."""
    next_expiry: datetime | None = None
    """When the next held node comes near its expiry."""


def leaving_bins(
    view: ClusterView,
    node_pools: Iterable[NodePool],
    now: datetime,
    *,
    kept: Collection[str] = (),
    spared: Collection[str] = (),
) -> Leaving:
    """What chunks must leave, and which drifted nodes wait for their turn.

    now: by the cluster's clock.
    kept: names of nodes whose chunks stay in any case; spared: of nodes whose chunks stay despite drift.
    """
    bins = all_bins(view)
    names, next_expiry = _expiring([item for item in bins if item.name not in kept], now)
    states = pool_states(bins)
    by_pool = by_node_pool(
        item for item in bins if item.name not in kept and item.name not in spared and _has_drifted(item)
    )
    findings: list[Finding] = []
    for pool in node_pools:
        if pool.name in by_pool:
            drifting = _drifting(pool, by_pool[pool.name], states, view, now)
            names |= drifting.names
            findings += drifting.findings
    return Leaving(frozenset(names), tuple(findings), next_expiry)


def _expiring(bins: Iterable[Bin], now: datetime) -> tuple[set[str], datetime | None]:
    """Names of nodes that chunks leave before these expire: a few of each pool at a time, the oldest first. A wrong clock or `expireAfter` must never replace all at once.
    A node that is still on its way was made minutes ago, and is not replaced. Also says when the next held node is due."""
    names: set[str] = set()
    looks: list[datetime] = []
    for items in by_node_pool(bins).values():
        launch = max(filter(None, map(_launch_time, items)), default=timedelta(0))
        ends = {item.name: end for item in items if (end := _last_use(item, launch)) is not None}
        arrived = [item for item in items if item.is_held and not item.is_on_its_way]
        names.update(item.name for item in items if not item.is_held and item.name in ends and now >= ends[item.name])
        due = sorted((item for item in arrived if item.name in ends and now >= ends[item.name]), key=_age)
        names.update(item.name for item in due[: ceil(len(arrived) / _STEPS)])
        looks += [ends[item.name] for item in items if item.is_held and item.name in ends and now < ends[item.name]]
    return names, min(looks, default=None)


def _last_use(item: Bin, launch: timedelta) -> datetime | None:
    """From when on a node takes no more chunks, since it expires soon; None: it never expires. launch: how long one takes in its pool."""
    claim = item.node_claim
    if claim is None or claim.expire_after is None or claim.created is None:
        return None
    life = claim.expire_after
    lead = min(EXPIRY_LEAD, life / _MOST_OF_LIFE, max(life / _SHARE_OF_LIFE, (_STEPS + 1) * launch))
    end: datetime = claim.created + life - lead
    return end


def _launch_time(item: Bin) -> timedelta | None:
    claim = item.node_claim
    ready = None if claim is None else claim.since("Initialized")
    if claim is None or claim.created is None or ready is None or claim.condition("Initialized") != "True":
        return None
    return ready - claim.created


def _has_drifted(item: Bin) -> bool:
    return item.node_claim is not None and item.node_claim.condition("Drifted") == "True" and not item.is_going


def _drifting(
    pool: NodePool, drifted: Sequence[Bin], states: Mapping[str, PoolState], view: ClusterView, now: datetime
) -> Leaving:
    """Drifted nodes that headroom holds, as many at once as the Drifted budget allows. Also all that are not held: Karpenter may take those
    at any time, so chunks must not come to them.

    Nodes that were released and not yet taken by Karpenter use up the budget too. Otherwise all nodes would be released one by one,
    whatever the budget. A node that Karpenter cannot disrupt at present uses up nothing: Karpenter passes over it as well, and it might
    stay for months.
    """
    budget = outcome(pool, DRIFTED, states.get(pool.name, PoolState()), now)
    held = sorted((item for item in drifted if item.is_held), key=_age)
    free = [item for item in drifted if not item.is_held]
    if budget.budget == 0:
        return Leaving(findings=_waiting(pool, held, budget, ()))
    if budget.allowed is None:
        return Leaving(frozenset(item.name for item in drifted))
    blocked = _blocked({item.name: item for item in free}, view, now)
    first = [item.name for item in free if item.name not in blocked]
    turn = max(0, budget.allowed - len(first))
    names = {item.name for item in (*free, *held[:turn])}
    return Leaving(
        frozenset(names), _waiting(pool, held[turn:], budget, (*first, *(item.name for item in held[:turn])))
    )


def _blocked(free: Mapping[str, Bin], view: ClusterView, now: datetime) -> set[str]:
    """Nodes that Karpenter cannot disrupt for drift now: a person's do-not-disrupt, or a pod that may not be evicted.

    With terminationGracePeriod it does so whatever the pods say (pkg/controllers/disruption, eventual disruption class).
    """
    found = {name for name, item in free.items() if item.is_protected}
    asked = {
        name
        for name, item in free.items()
        if item.node_claim is not None and item.node_claim.termination_grace_period is None
    }
    budgets = view.pod_disruption_budgets
    return found.union(
        pod.node_name for pod in view.pods if pod.node_name in asked and why_not_evicted_now(pod, budgets, now)
    )


def _waiting(
    pool: NodePool, waiting: Sequence[Bin], budget: BudgetOutcome, first: Sequence[str]
) -> tuple[Finding, ...]:
    """Says which held nodes wait for their turn, since when they have drifted, and for what they wait."""
    if not waiting:
        return ()
    one = len(waiting) == 1
    nodes = abridged([f"{item.name}{_since(item)}" for item in waiting], _MOST_SHOWN)
    which = "node that has drifted waits" if one else "nodes that have drifted wait"
    goes = f"; before {'it' if one else 'them'} {'goes' if len(first) == 1 else 'go'} {abridged(sorted(first), _MOST_SHOWN)}"
    allows = f"It allows {budget.allowed or 0:,} now ({budget.why}){goes if first else ''}"
    message = f"{len(waiting):,} held {which} for the Drifted budget: {nodes}. {allows}"
    ref = node_pool_ref(pool.name)
    hint = "headroom replaces them as the budget allows; a larger budget for Drifted makes it quicker"
    return (codes.DRIFT_WAITS.finding(message, pool.position, ref, "spec.disruption.budgets", hint),)


def _since(item: Bin) -> str:
    time = None if item.node_claim is None else item.node_claim.since("Drifted")
    return "" if time is None else f" (since {time.astimezone(UTC):%Y-%m-%d %H:%M} UTC)"


def _age(item: Bin) -> tuple[str, str]:
    created = item.node_claim.created if item.node_claim is not None else None
    return ("" if created is None else created.isoformat(), item.name)


DEVICES_KEY = "missingDevices"


class MissingDevices(Record, frozen=True):
    """Of a held node. since: when a pass first saw it without devices that its NodeClaim has."""

    since: Moment


def briefly_not_ready(
    bins: Iterable[Bin],
    missing: Mapping[str, MissingDevices],
    now: datetime,
    grace: timedelta,
    *,
    for_ever: frozenset[str] = frozenset(),
) -> tuple[frozenset[str], datetime | None]:
    """The names of nodes whose chunks wait, and when the first of them has waited long enough. A node that has never been ready is on its
    way, and does not count here.

    missing: nodes whose devices are gone. now: by the cluster's clock. for_ever: names of nodes without a limit on the wait."""
    since = {name: item.since for name, item in missing.items()}
    since |= {item.name: at for item in bins if (at := _not_ready_since(item)) is not None}
    ends = {name: at + grace for name, at in since.items() if name not in for_ever and now < at + grace}
    return frozenset(ends) | since.keys() & for_ever, min(ends.values(), default=None)


def _not_ready_since(item: Bin) -> datetime | None:
    node = item.node
    if node is None or node.ready or node.ready_changed is None or not item.is_held:
        return None
    return None if item.is_going or item.is_on_its_way or node.unschedulable else node.ready_changed


def missing_devices(view: ClusterView, now: datetime) -> dict[str, MissingDevices]:
    """By name of a held node: what the inventory remembers of devices that are gone.

    The kubelet reports no device from the moment when its plugin stops. The API server does not tell since when. Where no inventory is
    written, as while headroom is suspended, the wait does not end.
    """
    before = remembered(view.inventory.records, DEVICES_KEY, MissingDevices)
    return {item.name: before.get(item.name, MissingDevices(now)) for item in view.machines if _missing(item)}


def with_devices(view: ClusterView, names: Collection[str]) -> ClusterView:
    """The view in which these nodes still have the devices that are gone."""
    whole = {
        item.node.name: replace(item.node, allocatable=item.node.allocatable + Resources.of(_missing(item)))
        for item in view.machines
        if item.name in names and item.node is not None
    }
    return replace(view, nodes=tuple(whole.get(node.name, node) for node in view.nodes)) if whole else view


def _missing(item: Machine) -> list[tuple[str, int]]:
    node, claim = item.node, item.node_claim
    if node is None or claim is None or not item.is_held or not item.is_initialized:
        return []
    return [(name, amount) for name, amount in claim.allocatable if "/" in name and not node.allocatable.get(name)]


def suspended_bins(view: ClusterView, suspended: Collection[ObjectRef]) -> tuple[frozenset[str], frozenset[str]]:
    """Names of nodes (of NodeClaims, where there is no node yet): those that hold chunks of suspended buffers, and those that hold nothing
    else."""
    names = {str(ref) for ref in suspended}
    held = {item.name: item.holders for item in view.machines if item.is_held} if names else {}
    some = frozenset(name for name, demands in held.items() if not names.isdisjoint(demands))
    return some, frozenset(name for name in some if held[name] <= names)


_BY_LABELS = "requirements"


def foretold_drift(
    before: Iterable[NodePool], after: Iterable[NodePool], bins: Sequence[Bin], now: datetime
) -> tuple[ForetoldDrift, ...]:
    """For each NodePool of which nodes would drift. bins: all of the cluster. Nodes that have drifted already are left out."""
    known = {pool.name: pool for pool in before}
    found = []
    for pool in after:
        old = known.get(pool.name)
        if old is None or old.template == pool.template:
            continue
        own = [
            item for item in bins if item.node_pool == pool.name and item.node_claim is not None and not item.is_going
        ]
        fresh = [item for item in own if item.node_claim is not None and item.node_claim.condition("Drifted") != "True"]
        changed = list(_changed(old.template, pool.template))
        drifting = fresh if changed else [item for item in fresh if _misses(pool, item) and not _misses(old, item)]
        if drifting:
            first, opened = _budgets(pool, pool_state(pool.name, bins), now)
            missed = dict.fromkeys(key for item in drifting for key in _misses(pool, item))
            why = changed or [f"{_BY_LABELS} of {key}" for key in missed]
            found.append(
                ForetoldDrift(
                    pool.name,
                    tuple(why),
                    tuple(sorted(item.name for item in drifting)),
                    len(own),
                    opened.outcome.budget,
                    first.outcome.why,
                    None if opened is first else opened.start,
                )
            )
    return tuple(found)


def _budgets(pool: NodePool, state: PoolState, now: datetime) -> tuple[BudgetSpan, BudgetSpan]:
    """The budget of the present, and the first that allows any; the present one if none does within the 30 days."""
    spans = budget_spans(pool, DRIFTED, state, now, now + MONTH)
    return spans[0], next((span for span in spans if span.outcome.budget != 0), spans[0])


def _changed(before: NodeClaimTemplate, after: NodeClaimTemplate) -> Iterator[str]:
    """The hashed fields that differ, as in the manifest."""
    for each in fields(NodeClaimTemplate):
        old, new = getattr(before, each.name), getattr(after, each.name)
        if each.name != _BY_LABELS and (frozenset(old) != frozenset(new) if isinstance(old, tuple) else old != new):
            yield _SPELT.get(each.name, each.name)


_SPELT = {
    "startup_taints": "startupTaints",
    "node_class": "nodeClassRef",
    "expire_after": "expireAfter",
    "termination_grace_period": "terminationGracePeriod",
}


def _misses(pool: NodePool, item: Bin) -> list[str]:
    """The keys of the requirements that the node's labels do not satisfy."""
    claim = item.node_claim
    return [
        each.key for each in pool.template.requirements if claim is not None and not each.holds(claim.label(each.key))
    ]
