"""Where Karpenter would move the pods of a node that it consolidates, as placements tell, and which held nodes may be opened to them.

Karpenter moves pods to nodes that are there, but to none with a taint that they do not tolerate, such as held ones. Else it buys one node for
all of them (SingleNodeConsolidation in pkg/controllers/disruption). Where several are cheaper, headroom makes them first, and Karpenter finds
them there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import inf

from reconciler.demand.combine import demand_of_pod
from reconciler.model.nodes import node_ref
from reconciler.model.placement import Holding, Placement, PlannedNode
from reconciler.model.pods import Pod, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.remembered import Departure
from reconciler.model.view import ClusterView
from reconciler.placement.cache import Cache
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.bins import Bin
from reconciler.plan.cost import Prices
from reconciler.plan.holding.consolidation import OPEN, Candidate, ConsolidationRules, is_guest
from reconciler.stages.placement import used_by
from reconciler.stages.state import PassState

MOST_RISKS = 8
"""Other nodes that are judged by a placement each. Where there are more, no held node is opened."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The cluster once a node's pods have left it."""

    room: ClusterView
    price: float = 0.0
    """Of the nodes bought for them, USD an hour."""
    entered: frozenset[str] = frozenset()
    """The nodes that they come to."""
    made: tuple[PlannedNode, ...] = ()
    """Those that headroom makes for them."""
    promised: tuple[tuple[str, Resources], ...] = ()
    """What the bought nodes use of their NodePools' limits."""


def without_pods(
    state: PassState, candidate: Candidate, bins: Sequence[Bin], rules: ConsolidationRules, cache: Cache
) -> Moved | None:
    """The cluster once the node's pods have gone elsewhere; None if they cannot."""
    room = state.prepared.room
    if not candidate.pods:
        return Moved(room)
    held = {item.name for item in bins if item.is_held}
    problem = moving(state, candidate.pods, room, held | {candidate.bin.name}, most_price=candidate.price)
    answer = place(problem, cache=cache)
    made, one = answer.planned, _one_node(problem, candidate.pods, answer, cache)
    several, single = (sum(node.price for node in bought) for bought in (made, one))
    made = () if one and not rules.is_worth(single - several, candidate.price) else made
    if (
        answer.unplaced
        or (answer.planned and not candidate.replaceable)
        or not all(node.price_known for node in (*made, *one))
    ):
        return None
    there = arrived(candidate.pods, answer)
    left = node_ref(candidate.bin.name)
    rooms = tuple(replace(node, holdings=(Holding(left, 0, len(node.holdings)),)) for node in made)
    limited = {pool.name for pool in problem.node_pools if pool.limits is not None}
    promised = used_by(made or one, state.instance_types, limited)
    entered = frozenset(pod.node_name for pod in there if pod.node_name is not None)
    pods = (*problem.view.pods, *there)
    return Moved(replace(room, pods=pods), several if made else single, entered, rooms, promised)


def would_go(
    state: PassState, pods: Sequence[Pod], price: float, room: ClusterView, closed: AbstractSet[str], cache: Cache
) -> bool:
    """Whether Karpenter would remove the nodes of these pods, which cost so much, as their pods find room for less. closed: nodes to which
    the pods do not move, those nodes among them."""
    problem = moving(state, pods, room, closed, most_price=price)
    answer = place(problem, cache=cache)
    if answer.unplaced:
        return False
    one = _one_node(problem, pods, answer, cache)
    return not answer.planned or (bool(one) and sum(node.price for node in one) < price)


def moving(
    state: PassState, pods: Sequence[Pod], room: ClusterView, closed: AbstractSet[str], *, most_price: float | None
) -> Problem:
    """The pods as what is to be placed. closed: nodes that none of them comes to.

    most_price: of new nodes for them, USD an hour: dearer ones are of no use. None: no new nodes."""
    buys = most_price is not None
    going = {(pod.namespace, pod.name) for pod in pods}
    options = state.prepared.options
    return replace(
        state.problem,
        view=replace(room, pods=tuple(pod for pod in room.pods if (pod.namespace, pod.name) not in going)),
        demands=tuple(demand_of_pod(pod, room, opens_nodes=buys) for pod in pods),
        options=replace(
            options,
            include_pending=buys,
            leaving=options.leaving | closed,
            keeping=frozenset(),
            booked=(),
            most_price=most_price or 0,
            optimal=False,
        ),
    )


def arrived(pods: Sequence[Pod], answer: Placement) -> tuple[Pod, ...]:
    """The pods that come to an existing node, each with that node's name."""
    places = {
        (holding.demand.namespace, holding.demand.name): place.node
        for place in answer.occupied
        for holding in place.holdings
        if holding.demand.kind == POD_KIND and place.node is not None
    }
    return tuple(
        replace(pod, node_name=places[pod.namespace, pod.name]) for pod in pods if (pod.namespace, pod.name) in places
    )


def chunks_as_pods(
    node: str, holdings: Iterable[Holding], shapes: Mapping[tuple[ObjectRef, int], PodShape]
) -> tuple[Pod, ...]:
    """Pods on the node that are like these chunks."""
    return tuple(
        Pod(part.demand.namespace, f"{part.demand} {part.group} {number} on {node}", shape, node_name=node)
        for part in holdings
        if (shape := shapes.get((part.demand, part.group))) is not None
        for number in range(part.count)
    )


@dataclass(frozen=True, slots=True)
class Opening:
    """Held nodes that may be opened. pods: the running ones by node. shapes: of chunks, by demand and group."""

    state: PassState
    bins: Sequence[Bin]
    pods: Mapping[str, tuple[Pod, ...]]
    shapes: Mapping[tuple[ObjectRef, int], PodShape]
    cache: Cache

    def opened(self, guests: Iterable[Candidate]) -> PassState:
        """The state in which held nodes are open to the pods of one of these nodes, or else the same state."""
        held = [item for item in self.bins if item.chunks and item.is_held and item.is_tainted and not item.is_going]
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
            departures.append(known if safe else known.but(until=now))
        return replace(self.state, departures=tuple(departures))

    def _hosts(self, guest: Bin, held: Sequence[Bin]) -> list[Bin]:
        """The held nodes that the guest's pods would come to if chunks were pods; none where its pods do not all find room."""
        room = self._with_chunks(self.state.prepared.room, held)
        answer = place(moving(self.state, self.pods[guest.name], room, {guest.name}, most_price=None), cache=self.cache)
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
        closed = {item.name for item in self.bins if item.is_held} - names
        return not any(self._would_go(some, closed, room) for some in (*([item] for item in risks), risks) if some)

    def _would_go(self, items: Sequence[Bin], closed: set[str], room: ClusterView) -> bool:
        prices = Prices(self.state.instance_types)
        pods = [pod for item in items for pod in self.pods[item.name]]
        price = sum(inf if (known := prices.of(item)) is None else known for item in items)
        away = closed | {item.name for item in items}
        return would_go(self.state, pods, price, room, away, self.cache)

    def _arrived(self, pods: Sequence[Pod], room: ClusterView, closed: set[str]) -> tuple[Pod, ...]:
        """The pods that fit on nodes which are not in `closed`."""
        return arrived(pods, place(moving(self.state, pods, room, closed, most_price=None), cache=self.cache))

    def _with_chunks(self, room: ClusterView, hosts: Iterable[Bin]) -> ClusterView:
        """The room in which the hosts' chunks are pods."""
        chunks = (pod for item in hosts for pod in chunks_as_pods(item.name, item.chunks, self.shapes))
        return replace(room, pods=(*room.pods, *chunks))


def _moved(room: ClusterView, node: str, came: Iterable[Pod]) -> ClusterView:
    """The room once a node's pods have come elsewhere."""
    return replace(room, pods=(*(pod for pod in room.pods if pod.node_name != node), *came))


def _one_node(problem: Problem, moved: Sequence[Pod], answer: Placement, cache: Cache) -> tuple[PlannedNode, ...]:
    """The cheapest node that holds all pods that need new nodes, as a placement of one pod as large as all; () where none does.

    Pods that ask for different nodes, or have volumes or resource claims, are not judged. Rules between pods do not count: they run on one node now.
    """
    if len(answer.planned) <= 1:
        return answer.planned
    apart = {(holding.demand.namespace, holding.demand.name) for node in answer.planned for holding in node.holdings}
    pods = [pod for pod in moved if (pod.namespace, pod.name) in apart]
    kinds = {_on_its_own(pod.shape) for pod in pods}
    if len(kinds) != 1 or any(pod.shape.volume_claims or pod.shape.claims_devices for pod in pods):
        return ()
    requests = Resources.total(pod.shape.requests for pod in pods)
    together = demand_of_pod(
        replace(pods[0], shape=replace(kinds.pop(), requests=requests)), problem.view, opens_nodes=True
    )
    return place(replace(problem, demands=(together,)), cache=cache).planned


def _on_its_own(shape: PodShape) -> PodShape:
    """What a pod asks of its node alone."""
    return PodShape(
        "",
        node_selector=shape.node_selector,
        required_node_terms=shape.required_node_terms,
        tolerations=shape.tolerations,
    )
