"""Makes the plan, here and nowhere else. Errors in the repository's templates are found here too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.manifests.reading import read_rendered
from reconciler.model.changes import Apply, Outcome, WriteResult
from reconciler.model.declared import located
from reconciler.plan.plan import make_plan
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
        facts = replace(state, price_source=self.catalog.source, replaced=state.prepared.options.leaving)
        templates = self.templates.of(state.tree.files)
        plan = make_plan(facts, self.rules)
        checked = checked_for_plan(plan, templates, read_rendered, state.effective.node_pools)
        if checked.unrendered:
            plan = make_plan(facts, self.rules, {ref: item.message for ref, item in checked.unrendered.items()})
        findings = located((*plan.findings, *checked.findings), state.repository.manifests)
        objects = tuple(replace(change, rendered=checked.balloons.get(change.ref)) for change in plan.objects)
        findings = tuple(sorted(findings, key=lambda finding: finding.sort_key))
        plan = replace(plan, objects=objects, findings=findings, waits=state.waits)
        outlook = None if state.outlook is None else replace(state.outlook, new_node_pools=plan.new_node_pools)
        refused = tuple(
            WriteResult(Apply(ref, {}), Outcome.REFUSED, failure.with_hint)
            for ref, failure in checked.unrendered.items()
        )
        return replace(state, plan=plan, templates=templates, outlook=outlook, unrendered=refused)
