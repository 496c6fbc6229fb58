"""Lets chunks leave a held node whose pods and chunks can be had for less. Two placements judge one node, and one node is left in a pass.

If none can be left, held nodes are opened to the pods of another node that they have room for beside their chunks, so that Karpenter can
consolidate that node. Karpenter knows nothing of chunks, and other nodes' pods may come there as well. So placements judge first whether the
chunks keep their room whichever nodes Karpenter consolidates, and judge again in each pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import ClassVar

from reconciler.model.departures import Departure
from reconciler.model.placement import Holding, Placement
from reconciler.model.pods import Pod, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Edge
from reconciler.model.view import ClusterView
from reconciler.placement.checker.violations import violations
from reconciler.placement.memory import Memory
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.bins import Bin, all_bins
from reconciler.plan.cost import Prices
from reconciler.plan.holding.consolidation import ALONE, OPEN, PATIENCE, Candidate, Savings, candidates, is_guest
from reconciler.plan.holding.vacating import closed_to_chunks, is_left_by_chunks, with_starting_nodes
from reconciler.plan.launching.caps import capped_nodes
from reconciler.stages.moved_pods import Moved, arrived, chunks_as_pods, moving, without_pods, would_go
from reconciler.stages.state import PassState, Rules
from reconciler.stages.vacating import problem_without, savings_of

MOST_TRIALS = 3
"""Nodes that are judged in one pass, each by two placements. An unchanged cluster is not judged again."""
MOST_RISKS = 8
"""Other nodes that are judged by a placement each. Where there are more, no held node is opened."""
_KEPT = 24
"""Placements of trials that are kept. One of 150,000 pods keeps the list of them, 1.2 MB."""
_TURN = timedelta(seconds=10)
"""How long the same nodes have their turn."""
_MOST_TURNS = 24
"""Nodes that have their turn one after the other without a change. The others wait for the next change or tick."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Held nodes that may be opened. pods: the running ones by node. shapes: of chunks, by demand and group."""

    state: PassState
    bins: Sequence[Bin]
    pods: Mapping[str, tuple[Pod, ...]]
    shapes: Mapping[tuple[ObjectRef, int], PodShape]
    memory: Memory

    def opened(self, guests: Iterable[Candidate]) -> PassState:
        """The state in which held nodes are open to the pods of one of these nodes, or else the same state."""
        held = [item for item in self.bins if item.chunks and item.is_marked and item.is_tainted and not item.is_going]
        for guest in guests if held else ():
            hosts = self._hosts(guest.bin, held)
            if hosts and self._chunks_keep_room(guest.bin, hosts):
                now = self.state.cluster_now
                names = tuple(item.name for item in hosts)
                admitted = Departure(guest.bin.name, now, now + guest.wait + OPEN, guest.price, admits=names)
                return replace(self.state, departures=(*self.state.departures, admitted))
        return self.state

    def judged_again(self) -> PassState:
        """The state in which held nodes are closed where other pods could take their chunks' room by now."""
        now, by_name = self.state.cluster_now, {item.name: item for item in self.bins}
        departures = []
        for known in self.state.departures:
            guest = by_name.get(known.node)
            is_open = bool(known.admits) and known.is_under_way(now) and guest is not None and not guest.is_going
            hosts = [by_name[name] for name in known.admits if name in by_name]
            safe = not is_open or guest is None or self._chunks_keep_room(guest, hosts)
            departures.append(known if safe else replace(known, until=now))
        return replace(self.state, departures=tuple(departures))

    def _hosts(self, guest: Bin, held: Sequence[Bin]) -> list[Bin]:
        """The held nodes that the guest's pods would come to if chunks were pods; none where its pods do not all find room."""
        room = self._with_chunks(self.state.prepared.room, held)
        answer = place(
            moving(self.state, self.pods[guest.name], room, {guest.name}, most_price=None), memory=self.memory
        )
        entered = {pod.node_name for pod in arrived(self.pods[guest.name], answer)}
        return [] if answer.unplaced else [item for item in held if item.name in entered]

    def _chunks_keep_room(self, guest: Bin, hosts: Sequence[Bin]) -> bool:
        """Whether no other node can go whose pods fit on the hosts, but not beside the chunks, the guest's pods and those of the others. Each is
        judged alone and all are judged together, since Karpenter may take several at once."""
        names = {item.name for item in hosts}
        others = {item.name for item in self.bins} - names
        room = self.state.prepared.room
        came = self._arrived(self.pods.get(guest.name, ()), self._with_chunks(room, hosts), others)
        full = self._with_chunks(_moved(room, guest.name, came), hosts)
        risks = []
        for item in self.bins:
            own = self.pods.get(item.name, ())
            if item.name == guest.name or not own or not is_guest(item):
                continue
            came = self._arrived(own, full, others)
            if len(came) == len(own):
                full = _moved(full, item.name, came)
            elif self._arrived(own, room, others):
                risks.append(item)
            if len(risks) > MOST_RISKS:
                return False
        closed = {item.name for item in self.bins if item.is_marked} - names
        return not any(self._would_go(some, closed, room) for some in (*([item] for item in risks), risks) if some)

    def _would_go(self, items: Sequence[Bin], closed: set[str], room: ClusterView) -> bool:
        prices = Prices(self.state.instance_types)
        pods = [pod for item in items for pod in self.pods[item.name]]
        price = sum(inf if (known := prices.of(item)) is None else known for item in items)
        away = closed | {item.name for item in items}
        return would_go(self.state, pods, price, room, away, self.memory)

    def _arrived(self, pods: Sequence[Pod], room: ClusterView, closed: set[str]) -> tuple[Pod, ...]:
        """Those of the pods that fit on nodes which are not closed to them."""
        return arrived(pods, place(moving(self.state, pods, room, closed, most_price=None), memory=self.memory))

    def _with_chunks(self, room: ClusterView, hosts: Iterable[Bin]) -> ClusterView:
        """The room in which the hosts' chunks are pods."""
        chunks = (pod for item in hosts for pod in chunks_as_pods(item.name, item.chunks, self.shapes))
        return replace(room, pods=(*room.pods, *chunks))


@dataclass(frozen=True, slots=True)
class Consolidate:
    """memory: the placements of the last trials."""

    phase: ClassVar[str] = "placement"

    rules: Rules
    memory: Memory

    def run(self, state: PassState) -> PassState:
        """The state with the placement that leaves a node, or else the same placement."""
        if not state.is_whole or state.settled or state.include_pending or not state.demands:
            return state
        if not state.placement.occupied and not state.departures:
            return state  # no node holds anything
        watched = frozenset(demand.ref for demand in state.demands if not demand.holds_nodes)
        bins = all_bins(state.prepared.room, state.placement.occupied, watched)
        savings = savings_of(state, self.rules.consolidation, self.memory)
        pods = savings.pods
        memory = self.memory.of("consolidating", answers=_KEPT)
        opening = Opening(state, bins, pods, savings.shapes, memory)
        state = opening.judged_again()
        settling = any(item.pods or (item.chunks and not item.says_what_it_holds) for item in bins)
        if state.placement.planned or settling:
            return state  # chunks on the move settle first; that change starts another pass
        starting = with_starting_nodes(bins)
        state, turns = self._candidates(state, bins, pods, is_left_by_chunks, savings.price_if_possible, starting)
        for candidate in turns:
            left = self._left(state, candidate, bins, savings, memory)
            if left is not None:
                return left
        if starting:
            return state
        state, guests = self._candidates(state, bins, pods, is_guest, savings.price)
        return replace(opening, state=state).opened(guests)

    def _candidates(
        self,
        state: PassState,
        bins: Sequence[Bin],
        pods: Mapping[str, tuple[Pod, ...]],
        may_be_left: Callable[[Bin], bool],
        price_of: Callable[[Bin], float | None],
        starting: frozenset[str] = frozenset(),
    ) -> tuple[PassState, list[Candidate]]:
        """Those that this pass judges, none of these NodePools, and the state in which another pass will look at those whose time has not come."""
        waiting, next_look = candidates(
            bins,
            (pool for pool in state.effective.node_pools if pool.name not in starting),
            *(state.prepared.room, state.cluster_now),
            staying=self._staying(state, bins),
            known=state.departures,
            price_of=lambda item: price_of(item) if may_be_left(item) else None,
            pods=pods,
        )
        looks = [] if next_look is None else [next_look]
        turn = int(state.cluster_now.timestamp() / _TURN.total_seconds())
        # As long as nothing changes, each has its turn once. No change would start the passes for that.
        seen = (tuple(item.bin.name for item in waiting), state.placement.occupied, state.prepared.room.pods)
        first = self.memory.once(f"first turn of {may_be_left.__name__}", seen, lambda: turn)
        if (MOST_TRIALS - 1) * (turn - first + 1) < min(len(waiting) - 1, _MOST_TURNS):
            looks.append(datetime.fromtimestamp((turn + 1) * _TURN.total_seconds(), UTC))
        if looks:
            look = Edge(min(looks) + state.view.clock_skew, "a node may be left for cheaper room")
            state = replace(state, edges=(*state.edges, look))
        # The dearest, and others in turn: a few dear nodes that cannot be had for less would keep all others from being judged.
        by_price = sorted(waiting, key=lambda item: (-item.price, item.bin.name))
        dearest, others = by_price[:1], by_price[1:]
        begin = turn * (MOST_TRIALS - 1) % max(1, len(others))
        return state, [*dearest, *(others[begin:] + others[:begin])[: MOST_TRIALS - 1]]

    def _staying(self, state: PassState, bins: Sequence[Bin]) -> frozenset[str]:
        """Nodes whose chunks are on the move already, or must stay: those of bookings, of requests and of suspended buffers, and for a minute
        those that have been opened."""
        options = state.prepared.options
        requests = {demand.ref for demand in state.demands if demand.request is not None}
        booked = {item.name for item in bins if any(part.demand in requests for part in item.chunks)}
        since = state.cluster_now - ALONE
        is_open = {name for item in state.departures if item.since <= since for name in item.admits}
        return options.leaving | (options.keeping - is_open) | state.prepared.suspended | booked

    def _left(
        self, state: PassState, candidate: Candidate, bins: Sequence[Bin], savings: Savings, memory: Memory
    ) -> PassState | None:
        """The state in which the node's chunks have other room; None if that saves too little."""
        name = candidate.bin.name
        moved = without_pods(state, candidate, bins, self.rules.consolidation, memory)
        if moved is None:
            return None
        problem, trial = self._without_chunks(state, candidate, bins, moved, savings, memory)
        if trial is None or (self.rules.check_placement and violations(problem, trial)):
            return None
        saved = candidate.price - moved.price - trial.price
        trial = replace(trial, planned=(*trial.planned, *moved.made))
        if capped_nodes(trial.planned, state.demands, bins, Prices(state.instance_types), self.rules.caps).cuts:
            return None
        options = state.prepared.options
        now = state.cluster_now
        departure = Departure(name, now, now + candidate.wait + PATIENCE, saved)
        prepared = replace(state.prepared, options=replace(options, leaving=options.leaving | {name}))
        known = (item for item in state.departures if name not in item.admits)
        return replace(state, placement=trial, prepared=prepared, departures=(*known, departure))

    def _without_chunks(
        self,
        state: PassState,
        candidate: Candidate,
        bins: Sequence[Bin],
        moved: Moved,
        savings: Savings,
        memory: Memory,
    ) -> tuple[Problem, Placement | None]:
        """Where the node's chunks go; None if that saves too little. Where that takes a new node, chunks of other nodes stay: those would
        go before the new one is there. Nor do chunks come to a node that would be left again."""
        # Once chunks were where the pods will come, that node would be held, and Karpenter moves no pod there.
        closed = closed_to_chunks(bins, state.cluster_now - candidate.wait) | moved.entered
        most_price = candidate.price - moved.price - self.rules.consolidation.least(candidate.price)
        stays = {item.node for item in state.departures if not item.is_under_way(state.cluster_now)}
        suspects = (
            savings.are_too_large(bins, savings.chunks(candidate.bin), state.effective.node_pools) - closed - stays
        )
        for _ in range(MOST_TRIALS):
            problem = problem_without(
                state, moved.room, bins, frozenset({candidate.bin.name}), closed, most_price=most_price
            )
            problem = replace(problem, options=replace(problem.options, promised=moved.promised))
            trial = place(problem, memory=memory)
            if trial.missing > state.placement.missing or trial.price >= most_price or not trial.price_known:
                break
            wrong = _emptied(candidate, bins, trial) if trial.planned else frozenset()
            suspected = [item for item in bins if item.name in suspects]
            wrong |= self._too_large(state, suspected, trial, moved, savings=savings, memory=memory)
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
        memory: Memory,
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
            most_price = price - self.rules.consolidation.least(price)
            everywhere = {machine.name for machine in moved.room.machines}
            answer = place(moving(state, pods, moved.room, everywhere, most_price=most_price), memory=memory)
            if answer.price < most_price and not answer.unplaced and answer.price_known:
                found.add(item.name)
        return frozenset(found)


def _moved(room: ClusterView, node: str, came: Iterable[Pod]) -> ClusterView:
    """The room once a node's pods have come elsewhere."""
    return replace(room, pods=(*(pod for pod in room.pods if pod.node_name != node), *came))


def _emptied(candidate: Candidate, bins: Sequence[Bin], trial: Placement) -> frozenset[str]:
    """Other nodes that have fewer chunks of a kind than before."""
    after = {item.node or item.node_claim: Counter(_counted(item.holdings)) for item in trial.occupied}
    others = (item for item in bins if item is not candidate.bin)
    return frozenset(item.name for item in others if Counter(_counted(item.chunks)) - after.get(item.name, Counter()))


def _counted(holdings: Iterable[Holding]) -> dict[tuple[ObjectRef, int], int]:
    return {(item.demand, item.group): item.count for item in holdings}
