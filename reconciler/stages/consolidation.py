"""Lets chunks leave held nodes: placeholders for room that became free elsewhere, and nodes whose pods and chunks can be had for less.

Of placeholders a few placements are tried, and the last good one is kept. Of the others two placements judge one node, and one node is left
in a pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from reconciler.model.placement import Holding, Placement
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Departure
from reconciler.model.rules import PlacementRules
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView
from reconciler.placement.cache import Cache
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.bins import Bin, all_bins
from reconciler.plan.cost import Prices
from reconciler.plan.facts import rejections
from reconciler.plan.holding.consolidation import (
    PATIENCE,
    Candidate,
    LeastPrices,
    Savings,
    Vacancy,
    candidates,
    closed_to_chunks,
    is_left_by_chunks,
    pods_by_node,
    vacancies,
    with_starting_nodes,
)
from reconciler.plan.launching.caps import capped_nodes
from reconciler.stages.moved_pods import Moved, chunks_as_pods, moving, without_pods
from reconciler.stages.placement import broken_rules
from reconciler.stages.state import PassState, Rules

MOST_VACATED = 6
"""Placeholders that are tried in one pass. The next pass continues, since placeholders that chunks have left are released by then."""


@dataclass(frozen=True, slots=True)
class Vacate:
    """cache: the outcomes of the last trials, so that an unchanged cluster is not tried again."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    cache: Cache

    def run(self, state: PassState) -> PassState:
        """The state with the placement that leaves the most placeholders; the same state if none can be left."""
        if state.placement.planned or not state.placement.occupied or state.blocked:
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
            why = "chunks may move to room that has then been free for `consolidateAfter`"
            state = replace(state, edges=(*state.edges, Edge(next_look + state.view.clock_skew, why, is_routine=True)))
        savings = savings_of(state, self.rules.placement, self.cache)
        left: frozenset[str] = frozenset()
        trials = iter(range(MOST_VACATED))
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
            trial = place(problem, cache=self.cache.of("vacating", answers=MOST_VACATED))
            if trial.planned or trial.missing > state.placement.missing:
                continue  # a node would be made, or a chunk or pod would lose its place
            left |= {name}
            broken = broken_rules(problem, trial, self.rules)
            state = replace(
                state, placement=trial, broken_rules=broken, findings=(*state.findings, *rejections(broken))
            )
        return state, left


def savings_of(state: PassState, rules: PlacementRules, cache: Cache) -> Savings:
    pools = state.effective.node_pools
    sold = (state.instance_types, pools)
    least = cache.once("least prices", sold, lambda: LeastPrices(state.instance_types, pools))
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


MOST_TRIALS = 3
"""Nodes that are judged in one pass, each by two placements. An unchanged cluster is not judged again."""
_KEPT = 24
"""Placements of trials that are kept. One of 150,000 pods keeps the list of them, 1.2 MB."""
_TURN = timedelta(seconds=10)
"""How long the same nodes have their turn."""
_MOST_TURNS = 24
"""Nodes that have their turn one after the other without a change. The others wait for the next change or tick."""


@dataclass(frozen=True, slots=True)
class Consolidate:
    """cache: the placements of the last trials."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    cache: Cache

    def run(self, state: PassState) -> PassState:
        """The state with the placement that leaves a node, or else the same placement."""
        if state.blocked or state.settled or state.include_pending or not state.demands:
            return state
        if not state.placement.occupied:
            return state  # no node holds anything
        watched = frozenset(demand.ref for demand in state.demands if not demand.holds_nodes)
        bins = all_bins(state.prepared.room, state.placement.occupied, watched)
        savings = savings_of(state, self.rules.placement, self.cache)
        cache = self.cache.of("consolidating", answers=_KEPT)
        settling = any(item.pods or (item.chunks and not item.says_what_it_holds) for item in bins)
        if state.placement.planned or settling:
            return state  # chunks on the move settle first; that change starts another pass
        state, turns = self._candidates(state, bins, savings)
        for candidate in turns:
            left = self._left(state, candidate, bins, savings, cache)
            if left is not None:
                return left
        return state

    def _candidates(self, state: PassState, bins: Sequence[Bin], savings: Savings) -> tuple[PassState, list[Candidate]]:
        """The nodes that this pass judges, and the state with an edge at which another pass looks at those whose time has not come."""
        starting = with_starting_nodes(bins)
        waiting, next_look = candidates(
            bins,
            (pool for pool in state.effective.node_pools if pool.name not in starting),
            state.prepared.room,
            state.cluster_now,
            staying=self._staying(state, bins),
            known=state.departures,
            price_of=lambda item: savings.price_if_possible(item) if is_left_by_chunks(item) else None,
            pods=savings.pods,
        )
        looks = [] if next_look is None else [next_look]
        turn = int(state.cluster_now.timestamp() / _TURN.total_seconds())
        # As long as nothing changes, each has its turn once. No change would start the passes for that.
        seen = (tuple(item.bin.name for item in waiting), state.placement.occupied, state.prepared.room.pods)
        first = self.cache.once("first turn", seen, lambda: turn)
        if (MOST_TRIALS - 1) * (turn - first + 1) < min(len(waiting) - 1, _MOST_TURNS):
            looks.append(datetime.fromtimestamp((turn + 1) * _TURN.total_seconds(), UTC))
        if looks:
            look = Edge(min(looks) + state.view.clock_skew, "a node may be left for cheaper room", is_routine=True)
            state = replace(state, edges=(*state.edges, look))
        # The dearest, and others in turn: a few dear nodes that cannot be had for less would keep all others from being judged.
        by_price = sorted(waiting, key=lambda item: (-item.price, item.bin.name))
        dearest, others = by_price[:1], by_price[1:]
        begin = turn * (MOST_TRIALS - 1) % max(1, len(others))
        return state, [*dearest, *(others[begin:] + others[:begin])[: MOST_TRIALS - 1]]

    def _staying(self, state: PassState, bins: Sequence[Bin]) -> frozenset[str]:
        """Nodes whose chunks are on the move already, or must stay: those of bookings, of requests and of suspended buffers."""
        options = state.prepared.options
        requests = {demand.ref for demand in state.demands if demand.request is not None}
        booked = {item.name for item in bins if any(part.demand in requests for part in item.chunks)}
        return options.leaving | options.keeping | state.prepared.suspended | booked

    def _left(
        self, state: PassState, candidate: Candidate, bins: Sequence[Bin], savings: Savings, cache: Cache
    ) -> PassState | None:
        """The state in which the node's chunks have other room; None if that saves too little."""
        name = candidate.bin.name
        moved = without_pods(state, candidate, bins, self.rules.placement, cache)
        if moved is None:
            return None
        problem, trial = self._without_chunks(state, candidate, bins, moved, savings, cache)
        if trial is None or broken_rules(problem, trial, self.rules):
            return None
        saved = candidate.price - moved.price - trial.price
        trial = replace(trial, planned=(*trial.planned, *moved.made))
        if capped_nodes(trial.planned, state.demands, bins, Prices(state.instance_types), self.rules.caps).cuts:
            return None
        options = state.prepared.options
        now = state.cluster_now
        departure = Departure(name, now, now + candidate.wait + PATIENCE, saved)
        prepared = replace(state.prepared, options=replace(options, leaving=options.leaving | {name}))
        return replace(state, placement=trial, prepared=prepared, departures=(*state.departures, departure))

    def _without_chunks(
        self,
        state: PassState,
        candidate: Candidate,
        bins: Sequence[Bin],
        moved: Moved,
        savings: Savings,
        cache: Cache,
    ) -> tuple[Problem, Placement | None]:
        """Where the node's chunks go; None if that saves too little. Where that takes a new node, chunks of other nodes stay: those would
        go before the new one is there. Nor do chunks come to a node that would be left again."""
        # Once chunks were where the pods will come, that node would be held, and Karpenter moves no pod there.
        closed = closed_to_chunks(bins, state.cluster_now - candidate.wait) | moved.entered
        most_price = candidate.price - moved.price - self.rules.placement.least_saving(candidate.price)
        stays = {item.node for item in state.departures if not item.is_under_way(state.cluster_now)}
        suspects = (
            savings.are_too_large(bins, savings.chunks(candidate.bin), state.effective.node_pools) - closed - stays
        )
        for _ in range(MOST_TRIALS):
            problem = problem_without(
                state, moved.room, bins, frozenset({candidate.bin.name}), closed, most_price=most_price
            )
            problem = replace(problem, options=replace(problem.options, promised=moved.promised))
            trial = place(problem, cache=cache)
            if trial.missing > state.placement.missing or trial.price >= most_price or not trial.price_known:
                break
            wrong = _emptied(candidate, bins, trial) if trial.planned else frozenset()
            suspected = [item for item in bins if item.name in suspects]
            wrong |= self._too_large(state, suspected, trial, moved, savings=savings, cache=cache)
            if not wrong:
                return problem, trial
            closed |= wrong
        return problem, None

    def _too_large(
        self,
        state: PassState,
        suspects: Sequence[Bin],
        trial: Placement,
        moved: Moved,
        *,
        savings: Savings,
        cache: Cache,
    ) -> frozenset[str]:
        """Nodes that chunks come to and that would be left again: new nodes for what is there then cost so much less."""
        coming = {item.node: item.holdings for item in trial.occupied}
        found = set()
        for item in suspects:
            before, after = Counter(_counted(item.chunks)), Counter(_counted(coming.get(item.name, ())))
            price = savings.price(item)
            if price is None or not after - before:
                continue
            pods = [pod for pod in moved.room.pods if pod.node_name == item.name and not pod.is_daemon]
            pods += chunks_as_pods(item.name, coming[item.name], savings.shapes)
            most_price = price - self.rules.placement.least_saving(price)
            everywhere = {machine.name for machine in moved.room.machines}
            answer = place(moving(state, pods, moved.room, everywhere, most_price=most_price), cache=cache)
            if answer.price < most_price and not answer.unplaced and answer.price_known:
                found.add(item.name)
        return frozenset(found)


def _emptied(candidate: Candidate, bins: Sequence[Bin], trial: Placement) -> frozenset[str]:
    """Other nodes that have fewer chunks of a kind than before."""
    after = {item.node or item.node_claim: Counter(_counted(item.holdings)) for item in trial.occupied}
    others = (item for item in bins if item is not candidate.bin)
    return frozenset(item.name for item in others if Counter(_counted(item.chunks)) - after.get(item.name, Counter()))


def _counted(holdings: Iterable[Holding]) -> dict[tuple[ObjectRef, int], int]:
    return {(item.demand, item.group): item.count for item in holdings}
