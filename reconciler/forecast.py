"""What the declared capacity costs over the coming 30 days, in addition to the plan of one pass.

A pass is planned for an instant. What schedules ask for later is placed and priced here, state by state.
"""

from __future__ import annotations

from reconciler.cycle import Cycle
from reconciler.model.changes import Action
from reconciler.model.spending import Spending
from reconciler.spending.month import is_steady, spending
from reconciler.stages.state import PassResult


def forecast(cycle: Cycle, result: PassResult, *, thorough: bool) -> Spending | None:
    """The forecast; None if no price is known. Unless thorough, also None if it needs more placements than that of the pass."""
    basis = result.basis
    if basis is None or not basis.facts.instance_types:
        return None
    deletes = any(change.action is Action.DELETE for change in result.required_plan.objects)
    if not thorough:
        return None if deletes or not is_steady(basis) else spending(basis)
    if deletes:
        # Objects that are no longer declared count in this pass, but not after it.
        basis = cycle.plan(tree=result.tree, settled=True).basis or basis
    return spending(basis)
