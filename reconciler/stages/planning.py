"""Makes the plan: the one place where it is made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.plan.plan import PlanInputs, make_plan
from reconciler.ports import Catalog
from reconciler.stages.rules import Rules
from reconciler.stages.state import PassState


@dataclass(frozen=True, slots=True)
class MakePlan:
    phase: ClassVar[str] = "plan"

    rules: Rules
    catalog: Catalog

    def run(self, state: PassState) -> PassState:
        inputs = PlanInputs(
            revision=state.tree.revision,
            now=state.now,
            view=state.view,
            declared=state.repository,
            live=state.live,
            demands=state.demands,
            placement=state.placement,
            node_pools=state.effective.node_pools,
            schedules=state.effective.schedules,
            instance_types=state.instance_types,
            price_source=self.catalog.source,
            caps=self.rules.caps,
            findings=state.findings,
            blocked=state.tree.reasons_to_keep,
            replaced=state.prepared.options.leaving,
            launches=state.prepared.launches,
            local_budgets=state.local_budgets,
            include_pending=state.include_pending,
            suspended=self.rules.suspend,
            applyset_id=self.rules.inventory.id,
            drift=self.rules.drift,
        )
        return replace(state, plan=make_plan(inputs))
