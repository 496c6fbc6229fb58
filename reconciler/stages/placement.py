"""Places every chunk, and lets the checker judge where that is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.model.placement import Placement
from reconciler.optimizer.place_in_mode import place_in_mode
from reconciler.placement.checker.violations import violations
from reconciler.placement.memory import Memory
from reconciler.placement.problem import Problem
from reconciler.plan.bins import all_bins
from reconciler.plan.cost import Prices
from reconciler.plan.findings import rejections
from reconciler.plan.launching.caps import Cut, capped_nodes, refused_cuts, still_refused
from reconciler.spending.month import Basis
from reconciler.stages.limits import no_room_findings, with_promised
from reconciler.stages.state import PassState, Rules


@dataclass(frozen=True, slots=True)
class Place:
    """memory: the previous placements, so that only what changed is computed again."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    memory: Memory

    def run(self, state: PassState) -> PassState:
        latest = time.perf_counter() + self.rules.optimal_within.total_seconds()

        def seconds_left() -> float:
            return latest - time.perf_counter()

        problem = state.problem
        placement = place_in_mode(problem, memory=self.memory, seconds_left=seconds_left)
        if not state.include_pending:
            narrower = with_promised(problem, placement, self.memory)
            if narrower is not problem:
                problem = narrower
                placement = place_in_mode(
                    problem, memory=self.memory.of("limits narrowed by pods"), seconds_left=seconds_left
                )
        problem, placement = self._with_attempts(state, problem, placement, seconds_left)
        problem, placement, refused = self._without_refused(state, problem, placement, seconds_left)
        is_unchecked = self.rules.check_placement and not placement.checked
        broken = violations(problem, placement) if is_unchecked else ()
        crowding = no_room_findings(problem, placement, self.memory)
        options = state.prepared.options
        state = replace(
            state,
            demands=tuple(problem.demands),
            placement=placement,
            refused=refused,
            broken_rules=broken,
            prepared=replace(state.prepared, options=problem.options),
            findings=(*state.findings, *rejections(broken), *crowding),
        )
        booked = [item.request.booked_for for item in problem.demands if item.request is not None]
        booked_for = max(booked, default=self.rules.requests.booked_for)
        basis = Basis(
            *(state, state.prepared.room, self.rules.dialect, options, placement),
            memory=self.memory,
            booked_for=booked_for,
        )
        return replace(state, basis=basis)

    def _with_attempts(
        self, state: PassState, problem: Problem, placement: Placement, seconds_left: Callable[[], float]
    ) -> tuple[Problem, Placement]:
        """Places again where a request finds no room, with what only others leave alone: its attempts have waits of their own."""
        attempted = state.prepared.failed_in_attempts
        without = {item.demand for item in placement.unplaced}
        asking = {item.ref for item in problem.demands if item.whole and item.opens_nodes and item.ref in without}
        if not asking or attempted >= problem.options.back_offs:
            return problem, placement
        again = replace(problem, options=replace(problem.options, back_offs=attempted))
        found = place_in_mode(again, memory=self.memory.of("attempts of requests"), seconds_left=seconds_left)
        served = asking.difference(item.demand for item in found.unplaced)
        return (again, found) if served else (problem, placement)

    def _without_refused(
        self, state: PassState, problem: Problem, placement: Placement, seconds_left: Callable[[], float]
    ) -> tuple[Problem, Placement, tuple[Cut, ...]]:
        """Places again without new nodes for requests that are over a cap. Part of such a request would otherwise take room that others
        need."""
        whole = {demand.ref for demand in problem.demands if demand.whole and demand.opens_nodes}
        cuts: tuple[Cut, ...] = ()
        while any(holding.demand in whole for node in placement.planned for holding in node.holdings):
            bins = all_bins(state.view, placement.occupied)
            capped = capped_nodes(
                placement.planned, problem.demands, bins, Prices(state.instance_types), self.rules.caps
            )
            if not capped.refused:
                break
            cuts += refused_cuts(capped)
            demands = (
                replace(item, opens_nodes=False) if item.ref in capped.refused else item for item in problem.demands
            )
            problem = replace(problem, demands=tuple(demands))
            placement = place_in_mode(
                problem, memory=self.memory.of("without refused requests"), seconds_left=seconds_left
            )
        return problem, placement, still_refused(cuts, placement)
