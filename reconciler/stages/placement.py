"""Places every chunk, and lets the checker judge where that is asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import ClassVar

from reconciler.model.placement import Placement
from reconciler.optimizer.place_in_mode import place_in_mode
from reconciler.placement.checker.violations import violations
from reconciler.placement.memory import Memory
from reconciler.placement.problem import Problem
from reconciler.plan.rejection import rejections
from reconciler.spending.month import Basis
from reconciler.stages.pods_first import PodMemories, no_room_findings, with_promised
from reconciler.stages.rules import Rules
from reconciler.stages.state import PassState


@dataclass(frozen=True, slots=True)
class Place:
    """memory: of the placement before, so that only what changed is worked out again. narrowed: the same where pending pods leave less
    of a limit."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    memory: Memory
    narrowed: Memory = field(default_factory=Memory)
    pods: PodMemories = field(default_factory=PodMemories)

    def run(self, state: PassState) -> PassState:
        latest = time.perf_counter() + self.rules.optimal_within.total_seconds()
        problem = Problem(
            state.prepared.room,
            node_pools=state.effective.node_pools,
            instance_types=state.instance_types,
            demands=state.demands,
            overlays=state.effective.node_overlays,
            options=state.prepared.options,
        )
        placement = place_in_mode(problem, memory=self.memory, seconds_left=lambda: latest - time.perf_counter())
        if not state.include_pending:
            narrower = with_promised(problem, placement, self.pods)
            if narrower is not problem:
                problem = narrower
                placement = place_in_mode(
                    problem, memory=self.narrowed, seconds_left=lambda: latest - time.perf_counter()
                )
        is_unchecked = self.rules.check_placement and not placement.checked
        broken = violations(problem, placement) if is_unchecked else ()
        crowding = no_room_findings(problem, placement, self.pods)
        return replace(
            state,
            placement=placement,
            basis=self._basis(state, placement),
            broken_rules=broken,
            prepared=replace(state.prepared, options=problem.options),
            findings=(*state.findings, *rejections(broken), *crowding),
        )

    def _basis(self, state: PassState, placement: Placement) -> Basis:
        return Basis(
            now=state.now,
            declared=state.effective,
            view=state.prepared.room,
            dialect=self.rules.dialect,
            instance_types=state.instance_types,
            options=state.prepared.options,
            demands=state.demands,
            placement=placement,
            memory=self.memory,
            booked_for=self.rules.requests.booked_for,
        )
