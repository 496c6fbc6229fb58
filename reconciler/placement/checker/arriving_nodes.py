"""NodeClaims without a node so far: what each may become, and the least that will be allocatable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.machines import Machine
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, OPERATING_SYSTEM_LABEL, InstanceType, NodeClaim
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator
from reconciler.placement.checker.checked_node import CheckedNode
from reconciler.placement.checker.indexed_problem import IndexedProblem
from reconciler.placement.checker.labels import Values, decided, holds, united
from reconciler.placement.checker.offerings import labels_as_offered, labels_of, ways_to_buy
from reconciler.placement.checker.overlays import labels_for_overlays, overlaid_capacity

_Way = tuple[InstanceType, Mapping[str, str]]
"""Type and labels of a node that a NodeClaim may become."""


class ArrivingNodes:
    """The nodes that NodeClaims may become. NodeClaims that ask for the same are judged once."""

    def __init__(self, problem: IndexedProblem) -> None:
        self._problem = problem
        self._sold: dict[str, list[_Way]] = {}
        self._found: dict[tuple[object, ...], tuple[Sequence[_Way], Mapping[str, Values]]] = {}

    def node(self, machine: Machine, claim: NodeClaim) -> CheckedNode:
        """The NodeClaim as a node, whose open labels are undecided."""
        asked = {
            item.key: frozenset[str | None](item.values) for item in claim.requirements if item.operator is Operator.IN
        }
        _, possible = self._ways_and_labels(claim)
        labels = asked | dict(possible) | decided(_settled(claim))
        return CheckedNode(claim.name, labels, claim.taints, machine)

    def least_allocatable(self, node: CheckedNode, claim: NodeClaim) -> Resources:
        """The least allocatable amount of each resource among all nodes that it may become."""
        own = _settled(claim)
        ways, _ = self._ways_and_labels(claim)
        named = node.possible(INSTANCE_TYPE_LABEL)
        listed = next((item.values for item in claim.requirements if item.key == INSTANCE_TYPE_LABEL), ())
        names = set(named if len(named) == 1 else listed)
        types = [self._problem.instance_types[name] for name in names if name in self._problem.instance_types]
        if not types:
            return claim.requests
        there = [(instance_type, labels) for instance_type, labels in ways if instance_type.name in names]
        # Types that it names count even if they cannot be bought now, since it may already be launched.
        sold = {instance_type.name for instance_type, _ in there}
        there += [(one, labels_of(one) | own) for one in types if one.name not in sold]
        rooms = [one.allocatable + self._added(claim, one, labels) for one, labels in there]
        resources = {name for room in rooms for name in room.names()}
        return Resources.of({name: min(room.get(name) for room in rooms) for name in resources})

    def _added(self, claim: NodeClaim, instance_type: InstanceType, labels: Mapping[str, str]) -> Resources:
        pool = self._problem.pools.get(claim.label(NODEPOOL_LABEL) or "")
        if pool is None or not self._problem.overlays:
            return Resources()
        offered = {OPERATING_SYSTEM_LABEL}.union(*map(labels_as_offered, instance_type.offerings))
        as_bought = {key: value for key, value in labels.items() if key in offered}
        return overlaid_capacity(self._problem.overlays, labels_for_overlays(pool, instance_type) | as_bought)

    def _ways_and_labels(self, claim: NodeClaim) -> tuple[Sequence[_Way], Mapping[str, Values]]:
        key = (claim.labels, claim.requirements)
        if key not in self._found:
            ways = tuple(self._ways(claim))
            self._found[key] = ways, united(labels for _, labels in ways)
        return self._found[key]

    def _ways(self, claim: NodeClaim) -> Iterable[_Way]:
        """Everything that can be bought now and meets the NodeClaim's labels and requirements."""
        if (claim.label(NODEPOOL_LABEL) or "") not in self._problem.pools:
            return
        own = _settled(claim)
        asked = [item for item in claim.requirements if item.key not in own]
        by_name = [item for item in asked if item.key == INSTANCE_TYPE_LABEL]
        for name, instance_type in self._problem.instance_types.items():
            if own.get(INSTANCE_TYPE_LABEL, name) != name or not all(holds(item, name) for item in by_name):
                continue
            if name not in self._sold:
                self._sold[name] = [(instance_type, labels) for _, labels in ways_to_buy(instance_type)]
            for _, labels in self._sold[name]:
                settled = all(labels.get(key, value) == value for key, value in own.items())
                if settled and all(item.key not in labels or holds(item, labels[item.key]) for item in asked):
                    yield instance_type, {**labels, **own}


def _settled(claim: NodeClaim) -> dict[str, str]:
    """Labels that the node will certainly have: the NodeClaim's own, and those for which it allows one value."""
    single = (item for item in claim.requirements if item.operator is Operator.IN and len(item.values) == 1)
    return {item.key: item.values[0] for item in single} | dict(claim.labels)
