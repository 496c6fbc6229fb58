"""Says which pods may have to wait although their buffers are full: kube-scheduler need not bind pods as chunks are placed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from reconciler.model.findings import Finding
from reconciler.model.placement import Placement
from reconciler.model.surge import Wait
from reconciler.placement.memory import Memory
from reconciler.placement.problem import Problem
from reconciler.placement.surge.rehearsal import Rehearsal
from reconciler.plan.bins import all_bins
from reconciler.plan.codes import PODS_MAY_WAIT
from reconciler.plan.launching.names import creations
from reconciler.stages.state import PassState


@dataclass(frozen=True, slots=True)
class Rehearse:
    """memory: the waits of the pass before, so that an unchanged cluster costs nothing."""

    phase: ClassVar[str] = "placement"

    memory: Memory = field(default_factory=Memory)

    def run(self, state: PassState) -> PassState:
        problem = state.problem
        view = problem.view
        seen = (view.nodes, view.node_claims, view.pods, view.daemon_sets, view.namespaces, state.placement)
        inputs = (*seen, problem.demands, problem.node_pools, problem.instance_types)
        waits = self.memory.once("waits", inputs, lambda: _waits(problem, state.placement))
        sources = {demand.ref: demand.source for demand in state.demands}
        findings = [
            Finding(
                *(PODS_MAY_WAIT.name, PODS_MAY_WAIT.severity, wait.words, sources.get(wait.demand), wait.demand),
                hint=f"headroom explain {wait.demand} --surge prints the order",
            )
            for wait in waits
        ]
        return replace(state, waits=waits, findings=(*state.findings, *findings))


def _waits(problem: Problem, placement: Placement) -> tuple[Wait, ...]:
    names = [item.name for item in creations(placement.planned, (claim.name for claim in problem.view.node_claims))]
    return Rehearsal(problem, placement, names, _closed(problem, placement)).waits()


def _closed(problem: Problem, placement: Placement) -> frozenset[str]:
    """The names of bins that have, or will have, the taint of held nodes."""
    watched = frozenset(demand.ref for demand in problem.demands if not demand.holds_nodes)
    bins = all_bins(problem.view, placement.occupied, watched)
    return frozenset(item.name for item in bins if item.chunks and item.is_karpenters and not item.is_reserved)
