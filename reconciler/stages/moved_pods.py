"""Where Karpenter would move the pods of a node that it consolidates, as placements tell.

Karpenter moves pods to nodes that are there, but to none with a taint that they do not tolerate, such as held ones. Else it buys one node for
all of them (SingleNodeConsolidation in pkg/controllers/disruption). Where several are cheaper, headroom makes them first, and Karpenter finds
them there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from reconciler.demand.combine import demand_of_pod
from reconciler.model.nodes import node_ref
from reconciler.model.placement import Holding, Placement, PlannedNode
from reconciler.model.pods import Pod, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.rules import PlacementRules
from reconciler.model.view import ClusterView
from reconciler.placement.cache import Cache
from reconciler.placement.place import place
from reconciler.placement.problem import Problem
from reconciler.plan.bins import Bin
from reconciler.plan.holding.consolidation import Candidate
from reconciler.stages.placement import used_by
from reconciler.stages.state import PassState


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
    state: PassState, candidate: Candidate, bins: Sequence[Bin], rules: PlacementRules, cache: Cache
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
    made = () if one and single - several <= rules.least_saving(candidate.price) else made
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


def moving(
    state: PassState, pods: Sequence[Pod], room: ClusterView, closed: AbstractSet[str], *, most_price: float
) -> Problem:
    """The pods as what is to be placed. closed: nodes that none of them comes to. most_price: new nodes that cost more are of no use, USD an
    hour."""
    going = {(pod.namespace, pod.name) for pod in pods}
    options = state.prepared.options
    return replace(
        state.problem,
        view=replace(room, pods=tuple(pod for pod in room.pods if (pod.namespace, pod.name) not in going)),
        demands=tuple(demand_of_pod(pod, room, opens_nodes=True) for pod in pods),
        options=replace(
            options,
            include_pending=True,
            leaving=options.leaving | closed,
            keeping=frozenset(),
            booked=(),
            most_price=most_price,
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
    return PodShape(
        "",
        node_selector=shape.node_selector,
        required_node_terms=shape.required_node_terms,
        tolerations=shape.tolerations,
    )
