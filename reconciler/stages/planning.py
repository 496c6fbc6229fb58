"""Makes the plan, here and nowhere else. Errors in the repository's templates are found here too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.manifests.rendered import read_rendered
from reconciler.model.changes import Apply, Outcome, WriteResult
from reconciler.model.declared import located
from reconciler.plan.objects.objects import Owner
from reconciler.plan.plan import PlanInputs, make_plan
from reconciler.ports import Catalog
from reconciler.render.check import checked_for_plan
from reconciler.render.templates import TemplateSource
from reconciler.stages.rules import Rules
from reconciler.stages.state import PassState


@dataclass(frozen=True, slots=True)
class MakePlan:
    phase: ClassVar[str] = "plan"

    rules: Rules
    catalog: Catalog
    templates: TemplateSource

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
            refused=state.refused,
            removals_allowed=state.tree.removals_allowed,
            departures=state.prepared.departures,
            local_budgets=state.local_budgets,
            edges=state.edges,
            include_pending=state.include_pending,
            suspended=state.suspended,
            owner=Owner(self.rules.inventory.id, self.rules.inventory.words),
            drift=self.rules.drift,
            balloon_image=self.rules.balloon_image,
            requests=self.rules.requests,
        )
        templates = self.templates.of(state.tree.files)
        plan = make_plan(inputs)
        checked = checked_for_plan(plan, templates, read_rendered, state.effective.node_pools)
        if checked.unrendered:
            unrendered = {ref: failure.message for ref, failure in checked.unrendered.items()}
            plan = make_plan(replace(inputs, unrendered=unrendered))
        findings = located((*plan.findings, *checked.findings), state.repository.manifests)
        objects = tuple(replace(change, rendered=checked.balloons.get(change.ref)) for change in plan.objects)
        plan = replace(plan, objects=objects, findings=tuple(sorted(findings, key=lambda finding: finding.sort_key)))
        outlook = None if state.outlook is None else replace(state.outlook, new_node_pools=plan.new_node_pools)
        refused = tuple(
            WriteResult(Apply(ref, {}), Outcome.REFUSED, failure.with_hint)
            for ref, failure in checked.unrendered.items()
        )
        return replace(state, plan=plan, templates=templates, outlook=outlook, unrendered=refused)
