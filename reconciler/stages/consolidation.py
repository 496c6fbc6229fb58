"""Lets chunks leave a held node whose pods and chunks can be had for less. Two placements judge one node, and one node is left in a pass.

If none can be left, held nodes are opened to the pods of a node that they have room for beside their chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import ClassVar

from reconciler.demand.pods import demand_of_pod
from reconciler.model.departures import Departure
from reconciler.model.placement import Holding, Placement, PlannedNode
from reconciler.model.pods import Pod, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.memory import Memory
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.bins import Bin, all_bins
from reconciler.plan.cost import Prices
from reconciler.plan.holding.consolidation import (
    OPEN,
    PATIENCE,
    Candidate,
    ConsolidationRules,
    Savings,
    candidates,
    is_guest,
    is_left_by_chunks,
    pods_by_node,
    takes_no_chunks_room,
)
from reconciler.plan.holding.vacating import unchanged_since
from reconciler.plan.launching.caps import capped_nodes
from reconciler.stages.limits import used_by
from reconciler.stages.state import PassState, Rules
from reconciler.stages.vacating import problem_without

MOST_TRIALS = 3
"""Nodes that are judged in one pass, each by two placements. An unchanged cluster is not judged again."""
_TURN = timedelta(minutes=1)
"""How long the same nodes have their turn."""


@dataclass(frozen=True, slots=True)
class Consolidate:
    """memory: the placements of each trial in the last pass."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    memory: Memory

    def run(self, state: PassState) -> PassState:
        """The state with the placement that leaves a node, or else the same placement."""
        if state.placement.planned or not state.is_whole or state.settled or state.include_pending or not state.demands:
            return state
        watched = frozenset(demand.ref for demand in state.demands if not demand.holds_nodes)
        bins = all_bins(state.prepared.room, state.placement.occupied, watched)
        if any(item.pods or (item.chunks and (item.is_on_its_way or not item.says_what_it_holds)) for item in bins):
            return state  # chunks on the move settle first; that change starts another pass
        pods = pods_by_node(state.prepared.room)
        savings = Savings(self.rules.consolidation, state.instance_types, state.demands, pods)
        state, turns = self._candidates(state, bins, pods, is_left_by_chunks, savings.price_if_possible)
        for number, candidate in enumerate(turns[:MOST_TRIALS]):
            left = self._left(state, candidate, bins, self.memory.of("chunks elsewhere", number))
            if left is not None:
                return left
        return self._opened(state, bins, pods, savings)

    def _candidates(
        self,
        state: PassState,
        bins: Sequence[Bin],
        pods: Mapping[str, tuple[Pod, ...]],
        may_be_left: Callable[[Bin], bool],
        price_of: Callable[[Bin], float | None],
    ) -> tuple[PassState, list[Candidate]]:
        """Those that this pass judges, and the state in which another pass will look at those whose time has not come."""
        found = candidates(
            *(bins, state.effective.node_pools, state.prepared.room, state.cluster_now),
            staying=self._staying(state, bins),
            known=state.departures,
            price_of=lambda item: price_of(item) if may_be_left(item) else None,
            pods=pods,
        )
        if found.next_look is not None:
            look = Edge(found.next_look + state.view.clock_skew, "a node may be left for cheaper room")
            state = replace(state, edges=(*state.edges, look))
        return state, _turns([candidate for of_pool in found.by_pool for candidate in of_pool], state.cluster_now)

    def _opened(
        self, state: PassState, bins: Sequence[Bin], pods: Mapping[str, tuple[Pod, ...]], savings: Savings
    ) -> PassState:
        """The state in which held nodes are open to the pods of another node, or else the same state."""
        held = [item for item in bins if item.chunks and item.is_marked and item.is_tainted and not item.is_going]
        if not held:
            return state
        now = state.cluster_now
        state, turns = self._candidates(state, bins, pods, is_guest, savings.price)
        for number, candidate in enumerate(turns[:MOST_TRIALS]):
            names = _hosts(state, candidate, held, savings.shapes, self.memory.of("guests", number))
            hosts = [item for item in held if item.name in names]
            chunks = Resources.total(map(savings.chunks, hosts))
            movable = [pods.get(item.name, ()) for item in bins if is_guest(item) and item.name != candidate.bin.name]
            if hosts and takes_no_chunks_room(candidate, movable, hosts, chunks, state.prepared.room):
                name, until = candidate.bin.name, now + candidate.wait + OPEN
                admitted = Departure(name, now, until, candidate.price, admits=tuple(item.name for item in hosts))
                return replace(state, departures=(*state.departures, admitted))
        return state

    def _staying(self, state: PassState, bins: Sequence[Bin]) -> frozenset[str]:
        """Nodes whose chunks are on the move already, or must stay: those of bookings, of requests and of suspended buffers."""
        options = state.prepared.options
        requests = {demand.ref for demand in state.demands if demand.request is not None}
        booked = {item.name for item in bins if any(part.demand in requests for part in item.chunks)}
        return options.leaving | options.keeping | state.prepared.suspended | booked

    def _left(self, state: PassState, candidate: Candidate, bins: Sequence[Bin], memory: Memory) -> PassState | None:
        """The state in which the node's chunks have other room; None if that saves too little."""
        name = candidate.bin.name
        moved = _without_pods(state, candidate, bins, self.rules.consolidation, memory.of("pods elsewhere"))
        if moved is None:
            return None
        problem, trial = _without_chunks(state, candidate, bins, moved, memory)
        if trial.missing > state.placement.missing or not all(node.price_known for node in trial.planned):
            return None
        saved = candidate.price - moved.price - sum(node.price for node in trial.planned)
        if not self.rules.consolidation.is_worth(saved, candidate.price):
            return None
        if self.rules.check_placement and violations(problem, trial):
            return None
        trial = replace(trial, planned=(*trial.planned, *moved.made))
        if capped_nodes(trial.planned, state.demands, bins, Prices(state.instance_types), self.rules.caps).cuts:
            return None
        options = state.prepared.options
        now = state.cluster_now
        departure = Departure(name, now, now + candidate.wait + PATIENCE, saved)
        prepared = replace(state.prepared, options=replace(options, leaving=options.leaving | {name}))
        return replace(state, placement=trial, prepared=prepared, departures=(*state.departures, departure))


def _turns(found: Sequence[Candidate], now: datetime) -> list[Candidate]:
    """Those that this pass judges: the dearest, and others whose turn the time of day decides. Otherwise a few dear nodes that cannot be
    had for less would keep all others from being judged."""
    by_price = sorted(found, key=lambda item: -item.price)
    turn = int(now.timestamp() / _TURN.total_seconds())
    others = sorted(by_price[1:], key=lambda item: sha256(f"{turn} {item.bin.name}".encode()).digest())
    return [*by_price[:1], *others][:MOST_TRIALS]


def _hosts(
    state: PassState,
    candidate: Candidate,
    held: Sequence[Bin],
    shapes: Mapping[tuple[ObjectRef, int], PodShape],
    memory: Memory,
) -> frozenset[str]:
    """The held nodes that the candidate's pods would come to if chunks were pods; none where its pods do not all find room."""
    room, options = state.prepared.room, state.prepared.options
    going = {(pod.namespace, pod.name) for pod in candidate.pods}
    chunks = [
        Pod(part.demand.namespace, f"{part.demand} {part.group} {number} on {item.name}", shape, node_name=item.name)
        for item in held
        for part in item.chunks
        if (shape := shapes.get((part.demand, part.group))) is not None
        for number in range(part.count)
    ]
    staying = [pod for pod in room.pods if (pod.namespace, pod.name) not in going]
    problem = replace(
        state.problem,
        view=replace(room, pods=(*staying, *chunks)),
        demands=tuple(demand_of_pod(pod, room, opens_nodes=False) for pod in candidate.pods),
        options=replace(options, leaving=options.leaving | {candidate.bin.name}, booked=(), optimal=False),
    )
    answer = place(problem, memory=memory)
    if answer.unplaced:
        return frozenset()
    return frozenset(place.node for place in answer.occupied if place.node is not None and place.holdings)


@dataclass(frozen=True, slots=True)
class _Moved:
    """The cluster once a node's pods have left it. price: of the nodes bought for them, USD an hour. entered: the nodes that they come to.
    made: those that headroom makes for them. promised: what the bought nodes use of their NodePools' limits."""

    room: ClusterView
    price: float = 0.0
    entered: frozenset[str] = frozenset()
    made: tuple[PlannedNode, ...] = ()
    promised: tuple[tuple[str, Resources], ...] = ()


def _without_pods(
    state: PassState, candidate: Candidate, bins: Sequence[Bin], rules: ConsolidationRules, memory: Memory
) -> _Moved | None:
    """The cluster once Karpenter has consolidated the node's pods; None if it cannot.

    Karpenter moves pods to nodes that are there, but to none with a taint that they do not tolerate, such as held ones. Else it buys one
    node for all of them (SingleNodeConsolidation in pkg/controllers/disruption). Where several are cheaper, headroom makes them first, and
    Karpenter finds them there.
    """
    room = state.prepared.room
    if not candidate.pods:
        return _Moved(room)
    going = {(pod.namespace, pod.name) for pod in candidate.pods}
    staying = tuple(pod for pod in room.pods if (pod.namespace, pod.name) not in going)
    held = {item.name for item in bins if item.is_marked}
    options = state.prepared.options
    problem = replace(
        state.problem,
        view=replace(room, pods=staying),
        demands=tuple(demand_of_pod(pod, room, opens_nodes=True) for pod in candidate.pods),
        options=replace(
            options,
            include_pending=True,
            leaving=options.leaving | held | {candidate.bin.name},
            booked=(),
            optimal=False,
        ),
    )
    answer = place(problem, memory=memory)
    made, one = answer.planned, answer.planned
    if len(made) > 1:
        apart = {(holding.demand.namespace, holding.demand.name) for node in made for holding in node.holdings}
        one = _one_node(problem, [pod for pod in candidate.pods if (pod.namespace, pod.name) in apart])
    several, single = (sum(node.price for node in bought) for bought in (made, one))
    made = () if one and not rules.is_worth(single - several, candidate.price) else made
    if (
        answer.unplaced
        or (answer.planned and not candidate.replaceable)
        or not all(node.price_known for node in (*made, *one))
    ):
        return None
    places = {
        (holding.demand.namespace, holding.demand.name): place.node
        for place in answer.occupied
        for holding in place.holdings
        if holding.demand.kind == POD_KIND
    }
    there = tuple(
        replace(pod, node_name=places[pod.namespace, pod.name])
        for pod in candidate.pods
        if places.get((pod.namespace, pod.name)) is not None
    )
    entered = frozenset(filter(None, places.values()))
    left = ObjectRef("", "Node", "", candidate.bin.name)
    rooms = tuple(replace(node, holdings=(Holding(left, 0, len(node.holdings)),)) for node in made)
    limited = {pool.name for pool in problem.node_pools if pool.limits is not None}
    promised = used_by(made or one, state.instance_types, limited)
    return _Moved(replace(room, pods=(*staying, *there)), several if made else single, entered, rooms, promised)


def _without_chunks(
    state: PassState, candidate: Candidate, bins: Sequence[Bin], moved: _Moved, memory: Memory
) -> tuple[Problem, Placement]:
    """Where the node's chunks go. Chunks of other nodes stay, since those nodes would go before the new one is there."""
    closed = _closed(candidate, bins, state.cluster_now, moved.entered)
    problem = _promising(moved, problem_without(state, moved.room, bins, frozenset({candidate.bin.name}), closed))
    trial = place(problem, memory=memory)
    after = {item.node or item.node_claim: set(item.holdings) for item in trial.occupied}
    emptied = {
        item.name
        for item in bins
        if item is not candidate.bin and not after.get(item.name, set()).issuperset(item.chunks)
    }
    if trial.planned and emptied:
        closed = closed | emptied
        problem = _promising(moved, problem_without(state, moved.room, bins, frozenset({candidate.bin.name}), closed))
        trial = place(problem, memory=Memory())
    return problem, trial


def _promising(moved: _Moved, problem: Problem) -> Problem:
    return replace(problem, options=replace(problem.options, promised=moved.promised))


def _one_node(problem: Problem, pods: Sequence[Pod]) -> tuple[PlannedNode, ...]:
    """The cheapest node that holds all of the pods, as a placement of one pod as large as all; () where none does.

    Pods that ask for different nodes, or have volumes or devices, are not judged. Rules between pods do not count: they run on one node now.
    """
    kinds = {_on_its_own(pod.shape) for pod in pods}
    if len(kinds) != 1 or any(pod.shape.volume_claims or pod.shape.resource_claims for pod in pods):
        return ()
    requests = Resources.total(pod.shape.requests for pod in pods)
    together = demand_of_pod(
        replace(pods[0], shape=replace(kinds.pop(), requests=requests)), problem.view, opens_nodes=True
    )
    return place(replace(problem, demands=(together,)), memory=Memory()).planned


def _on_its_own(shape: PodShape) -> PodShape:
    """What a pod asks of its node alone."""
    return PodShape(
        "",
        node_selector=shape.node_selector,
        required_node_terms=shape.required_node_terms,
        tolerations=shape.tolerations,
    )


def _closed(candidate: Candidate, bins: Sequence[Bin], now: datetime, entered: frozenset[str]) -> frozenset[str]:
    """Bins that take no more chunks: those whose room has changed lately, and those that the pods will come to (entered). Once chunks were
    there, the latter would be held, and Karpenter moves no pod to them."""
    rested = now - candidate.wait
    unused = (item for item in bins if not (item.chunks or item.in_use) or unchanged_since(item) > rested)
    return entered.union(item.name for item in unused)
