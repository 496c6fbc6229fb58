"""Which nodes a change of NodePools makes drift, before it is merged, and how many at a time Karpenter may then replace.

Karpenter 1.14 finds a node drifted for two reasons that a NodePool gives. One is another hash of `spec.template` than its NodeClaim was
made with: of everything but requirements, lists as sets. The other is that its NodeClaim's labels do not satisfy the requirements.
A provider's own reasons, such as another image, are not foretold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime

from reconciler.model.nodes import ForetoldDrift, NodeClaimTemplate, NodePool
from reconciler.model.spending import MONTH
from reconciler.model.timelines import BudgetSpan
from reconciler.plan.bins import Bin
from reconciler.plan.node_pools.budget_timeline import budget_spans
from reconciler.plan.node_pools.disruption_budgets import DRIFTED, PoolState, pool_state

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
        own = [item for item in bins if item.node_pool == pool.name and item.claim is not None and not item.is_going]
        fresh = [item for item in own if item.claim is not None and item.claim.condition("Drifted") != "True"]
        changed = list(_changed(old.template, pool.template))
        drifting = fresh if changed else [item for item in fresh if _misses(pool, item) and not _misses(old, item)]
        if drifting:
            first, opened = _budgets(pool, pool_state(pool.name, bins), now)
            why = changed or [f"{_BY_LABELS} of {key}" for key in _missed(pool, drifting)]
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
    claim = item.claim
    return [
        each.key for each in pool.template.requirements if claim is not None and not each.holds(claim.label(each.key))
    ]


def _missed(pool: NodePool, drifting: Iterable[Bin]) -> list[str]:
    return list(dict.fromkeys(key for item in drifting for key in _misses(pool, item)))
