"""Makes the plan, here and nowhere else, and says when the next pass must be made even if nothing happens.

Errors in the repository's templates are found here too. A pass is due when schedules ask for something else, or when something happens that
the last plan waits for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from reconciler.demand.schedules import NextEdges
from reconciler.manifests.local_budgets import next_renewal
from reconciler.manifests.repository.reading import read_rendered
from reconciler.model.changes import Apply, Outcome, WriteResult
from reconciler.model.declared import Declared, located
from reconciler.model.schedules import Edge
from reconciler.outlook import Outlook
from reconciler.plan.plan import make_plan
from reconciler.ports import Catalog
from reconciler.render.check import checked_for_plan
from reconciler.render.templates import TemplateSource
from reconciler.stages.state import PassState, Rules


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


class UpcomingEdges:
    """Keeps what the last pass knew about coming edges, even if one of its later stages failed."""

    def __init__(self) -> None:
        self.outlook: Outlook | None = None
        """None until a pass has got that far."""
        self._of_schedules = NextEdges()
        self._due: tuple[Edge, ...] = ()

    def remember(self, state: PassState) -> None:
        """Takes over what a pass knows so far. What it does not know yet stays as in the previous pass."""
        self.outlook = state.outlook or self.outlook
        self._due = self._due if state.plan is None else state.plan.edges

    def first(self, after: datetime, repository: Declared | None) -> Edge | None:
        """The first edge after an instant. repository: its documents as last read; budgets in local time must be compiled again by then."""
        of_schedules = None if self.outlook is None else self._of_schedules.first(self.outlook.facts.effective, after)
        edges = [] if of_schedules is None else [of_schedules]
        edges += [edge for edge in self._due if edge.at > after][:1]
        renewal = None if repository is None else next_renewal(repository, after)
        if renewal is not None:
            edges.append(Edge(renewal, "disruption budgets in local time are due to be compiled into UTC again"))
        return min(edges, key=lambda edge: edge.at, default=None)
