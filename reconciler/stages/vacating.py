"""Lets chunks leave placeholders for room that became free elsewhere. A few placements are tried, and the last good one is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import ClassVar

from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.memory import Memory
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.bins import Bin, all_bins
from reconciler.plan.cost import Prices
from reconciler.plan.findings import rejections
from reconciler.plan.holding.consolidation import ConsolidationRules, LeastPrices, Savings, pods_by_node
from reconciler.plan.holding.vacating import Vacancy, vacancies
from reconciler.stages.state import PassState, Rules

MOST_TRIALS = 6
"""Trials in one pass. The next pass continues, since placeholders that chunks have left are released by then."""


@dataclass(frozen=True, slots=True)
class Vacate:
    """memory: the outcomes of the last trials, so that an unchanged cluster is not tried again."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    memory: Memory

    def run(self, state: PassState) -> PassState:
        """The state with the placement that leaves the most placeholders; the same state if none can be left."""
        if state.placement.planned or not state.placement.occupied or not state.is_whole:
            return state
        bins = all_bins(state.prepared.room, state.placement.occupied)
        found, next_look = vacancies(
            bins,
            state.effective.node_pools,
            state.cluster_now,
            unavailable=state.prepared.options.leaving | state.prepared.options.keeping | state.prepared.suspended,
            price_of=Prices(state.instance_types).of,
        )
        if next_look is not None:
            why = "chunks may move to room that is free for `consolidateAfter` by then"
            state = replace(state, edges=(*state.edges, Edge(next_look + state.view.clock_skew, why)))
        savings = savings_of(state, self.rules.consolidation, self.memory)
        left: frozenset[str] = frozenset()
        trials = iter(range(MOST_TRIALS))
        for vacancy in found:
            state, left = self._leave(state, vacancy, bins, left, trials=trials, savings=savings)
        return state

    def _leave(
        self,
        state: PassState,
        vacancy: Vacancy,
        bins: Sequence[Bin],
        left: frozenset[str],
        *,
        trials: Iterator[int],
        savings: Savings,
    ) -> tuple[PassState, frozenset[str]]:
        """Leaves as many of one NodePool's placeholders as it may and can. left: placeholders of other NodePools that are left already."""
        before = len(left)
        for name in vacancy.candidates:
            if vacancy.most is not None and len(left) - before >= vacancy.most:
                break
            leaving = next(item for item in bins if item.name == name)
            away = vacancy.closed | left | {name}
            if not savings.could_fit(leaving, (item for item in bins if item.name not in away)):
                continue
            more = savings.chunks(leaving)
            closed = vacancy.closed | savings.are_too_large(bins, more, state.effective.node_pools)
            if next(trials, None) is None:
                break
            problem = problem_without(state, state.prepared.room, bins, left | {name}, closed - {name}, most_price=0)
            trial = place(problem, memory=self.memory.of("vacating", answers=MOST_TRIALS))
            if trial.planned or trial.missing > state.placement.missing:
                continue  # a node would be made, or a chunk or pod would lose its place
            left |= {name}
            broken = violations(problem, trial) if self.rules.check_placement else ()
            state = replace(
                state, placement=trial, broken_rules=broken, findings=(*state.findings, *rejections(broken))
            )
        return state, left


def savings_of(state: PassState, rules: ConsolidationRules, memory: Memory) -> Savings:
    pools = state.effective.node_pools
    sold = (state.instance_types, pools)
    least = memory.once("least prices", sold, lambda: LeastPrices(state.instance_types, pools))
    return Savings(rules, state.instance_types, least, state.demands, pods_by_node(state.prepared.room))


def problem_without(
    state: PassState,
    room: ClusterView,
    bins: Sequence[Bin],
    left: frozenset[str],
    closed: AbstractSet[str],
    *,
    most_price: float,
) -> Problem:
    """The problem in which chunks leave some bins, and closed ones take no more. Closed bins keep the chunks that they have; those without
    chunks are left out altogether. most_price: new nodes that cost more are of no use, USD an hour."""
    keeping = frozenset(item.name for item in bins if item.chunks and item.name in closed)
    options = state.prepared.options
    return replace(
        state.problem,
        view=room,
        options=replace(
            options,
            leaving=options.leaving | left | (closed - keeping),
            keeping=(options.keeping | keeping) - left,
            most_price=most_price,
            optimal=False,
        ),
    )
