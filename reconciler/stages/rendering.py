"""Turns the plan into writes: objects from templates, and statuses that have changed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from reconciler.manifests.reading import read_rendered
from reconciler.model.errors import Stalled
from reconciler.render.templates import TemplateSource
from reconciler.render.writes import render_writes
from reconciler.report.words import counted
from reconciler.stages.state import PassState
from reconciler.summary.statuses import SettledStatuses, status_writes


@dataclass(frozen=True, slots=True)
class Render:
    phase: ClassVar[str] = "render"

    templates: TemplateSource
    settled: SettledStatuses = field(default_factory=SettledStatuses)

    def run(self, state: PassState) -> PassState:
        """Raises `Stalled` when the checker rejects the placement: nothing of it may be written. Nothing is rendered while suspended."""
        if state.suspended:
            return state
        if state.broken_rules:
            raise Stalled(
                f"the placement breaks {counted(len(state.broken_rules), 'rule')}, the first: {state.broken_rules[0]}; nothing is applied",
                reason="PlacementRejected",
                hint="this is a defect of headroom: report it with the snapshot that `headroom snapshot` makes",
            )
        plan = state.required_plan
        rendered = render_writes(
            plan,
            view=state.view,
            node_pools={pool.name: pool for pool in state.effective.node_pools},
            templates=state.templates or self.templates.of(state.tree.files),
            read_document=read_rendered,
        )
        statuses = status_writes(plan, state.view, state.now, self.settled)
        return replace(state, writes=(*rendered.writes, *statuses), unrendered=(*state.unrendered, *rendered.failures))
