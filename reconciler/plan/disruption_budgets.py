"""How many nodes of a pool may be disrupted at once, by Karpenter's rules (seed 003). Used by hold and replacement.

Budgets with a schedule count as open all the time: what they forbid, they forbid always, so that this errs on the side
of disrupting less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.model.nodes import DISRUPTED_TAINT, INITIALIZED_LABEL, DisruptionBudget, NodePool
from reconciler.plan.bins import Bin

EMPTY = "Empty"
DRIFTED = "Drifted"
_DEFAULT = (DisruptionBudget(),)
_HUNDRED = 100


@dataclass(frozen=True, slots=True)
class PoolState:
    """total: nodes that count; disrupting and not_ready: those that already use up every reason's budget, each once."""

    total: int
    disrupting: int
    not_ready: int


def pool_state(pool: str, bins: Iterable[Bin]) -> PoolState:
    """Counts as Karpenter's disruption controller does: initialized nodes whose instance is not terminating already."""
    total = disrupting = not_ready = 0
    for item in bins:
        if item.node_pool != pool or item.node is None or item.claim is None:
            continue
        if item.node.label(INITIALIZED_LABEL) != "true" or item.claim.condition("InstanceTerminating") == "True":
            continue
        total += 1
        tainted = any(taint.key == DISRUPTED_TAINT for taint in item.node.taints)
        if item.claim.deleting or tainted:
            disrupting += 1
        elif not item.node.ready:
            not_ready += 1
    return PoolState(total, disrupting, not_ready)


def allowed(pool: NodePool, reason: str, state: PoolState) -> int | None:
    """How many more nodes may be disrupted for this reason; None: any number."""
    budgets = _DEFAULT if pool.budgets is None else pool.budgets
    limits = [
        _limit(budget.nodes, state.total) for budget in budgets if budget.reasons is None or reason in budget.reasons
    ]
    if not limits:
        return None
    return max(0, min(limits) - state.disrupting - state.not_ready)


def _limit(nodes: str, total: int) -> int:
    """A count, or a share rounded up; what cannot be read allows nothing."""
    text = nodes.strip()
    number = text.removesuffix("%")
    if not number.isdecimal():
        return 0
    return -(-total * int(number) // _HUNDRED) if text.endswith("%") else int(number)
