"""A price that no placement of given pods on new nodes can go below, by linear programming. Beside the bound of the product.

Nodes and pods may be split here: n_k nodes of kind k and x_ck pods of class c on them, both any number from zero up. Each
condition holds for every real placement when n and x are counted in it: all pods are placed; the pods on nodes of a kind
ask for no more than those nodes have, resource by resource; of pods that exclude each other by hostname no node takes two;
and no node takes more pods of one class than fit in it alone. Zones, spread and affinity are left out, and a node costs no
more than its cheapest offering, so a real placement has more to keep to and may cost more. The least price of this relaxed
problem is therefore at most the price of any real one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import highspy

from reconciler.model.nodes import HOSTNAME_LABEL, InstanceType
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources


@dataclass(frozen=True, slots=True)
class NodeKind:
    """What a node of this kind has for pods, and its least price in USD an hour."""

    room: Resources
    price: float


@dataclass(frozen=True, slots=True)
class PodClass:
    """Pods that are alike for the bound. clique: pods with an equal one exclude each other from a node; None: no such rule."""

    requests: Resources
    clique: PodShape | None


def node_kinds(
    instance_types: Iterable[InstanceType], *, operating_system: str, capacity_type: str, daemons: Resources
) -> tuple[NodeKind, ...]:
    """Kinds on offer, less the daemons that run on every node; equal ones once."""
    found = set()
    for kind in instance_types:
        prices = [item.price for item in kind.offerings if item.available and item.capacity_type == capacity_type]
        if prices and operating_system in kind.operating_systems:
            found.add(NodeKind(kind.allocatable - daemons, min(prices)))
    return tuple(sorted(found, key=lambda item: (item.price, item.room.amounts)))


def class_of(shape: PodShape) -> PodClass:
    labels = dict(shape.labels)
    exclusive = any(
        term.topology_key == HOSTNAME_LABEL
        and not term.namespaces
        and term.namespace_selector is None
        and term.selector is not None
        and term.selector.matches(labels)
        for term in shape.pod_anti_affinity
    )
    clique = PodShape(shape.namespace, labels=shape.labels, pod_anti_affinity=shape.pod_anti_affinity)
    return PodClass(shape.requests, clique if exclusive else None)


def lower_bound(shapes: Iterable[PodShape], kinds: Sequence[NodeKind]) -> float:
    """USD an hour. Raises `ValueError` when some pod fits no kind at all."""
    counts = Counter(class_of(shape) for shape in shapes)
    solver = highspy.Highs()  # type: ignore[no-untyped-call] # its constructor has no annotations
    solver.silent()
    nodes = [solver.addVariable(lb=0, obj=kind.price) for kind in kinds]
    placed: list[_Placed] = []
    for pod_class, count in counts.items():
        here = [
            _Placed(number, pod_class, solver.addVariable(lb=0))
            for number, kind in enumerate(kinds)
            if _most(pod_class.requests, kind.room)
        ]
        if not here:
            raise ValueError(f"{pod_class.requests.quantities()} fits nowhere")
        solver.addConstr(solver.qsum([item.pods for item in here]) == count)
        for item in here:
            solver.addConstr(item.pods <= _most(pod_class.requests, kinds[item.kind].room) * nodes[item.kind])
        placed += here
    for number, kind in enumerate(kinds):
        for terms in _limits(kind, [item for item in placed if item.kind == number]):
            solver.addConstr(solver.qsum(terms) <= nodes[number])
    solver.minimize()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise ValueError(f"the bound was not found: {solver.getModelStatus()}")
    return float(solver.getObjectiveValue())


@dataclass(frozen=True, slots=True)
class _Placed:
    """How many pods of a class go on nodes of a kind: one variable."""

    kind: int
    pod_class: PodClass
    pods: highspy.highs.highs_var


_Terms = list[highspy.highs.highs_linear_expression]


def _limits(kind: NodeKind, placed: Sequence[_Placed]) -> Iterable[_Terms]:
    """Sums that may come to one a node: shares of each resource, and pods of each clique."""
    for name, room in kind.room:
        yield [item.pods * (amount / room) for item in placed if (amount := item.pod_class.requests.get(name))]
    cliques = {item.pod_class.clique for item in placed if item.pod_class.clique is not None}
    for clique in sorted(cliques, key=repr):
        yield [item.pods * 1.0 for item in placed if item.pod_class.clique == clique]


def _most(requests: Resources, room: Resources) -> int:
    """How many pods of one size a node takes when it has nothing else."""
    return min(room.get(name) // amount for name, amount in requests if amount)
