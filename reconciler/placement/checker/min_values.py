"""minValues of NodePools (Karpenter's InstanceTypes.SatisfiesMinValues, pkg/cloudprovider/types.go).

Karpenter counts values before it narrows a NodeClaim to a capacity reservation. So for reserved capacity every value counts that
the NodePool could have had.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from reconciler.model.nodes import CAPACITY_TYPE_LABEL, OPERATING_SYSTEM_LABEL, InstanceType, NodePool
from reconciler.model.placement import PlannedNode
from reconciler.model.requirements import Operator
from reconciler.placement.checker.indexed_problem import IndexedProblem
from reconciler.placement.checker.labels import holds, stable_label
from reconciler.placement.checker.offerings import (
    RESERVED,
    labels_as_offered,
    labels_of,
    offerings_for,
    systems_for,
    ways_to_buy,
)

_Labels = set[tuple[str, str]]


def min_values_violations(problem: IndexedProblem, planned: PlannedNode) -> Iterable[str]:
    """Minimums (minValues) that a planned node does not meet. Only labels of the types count, not those that the NodePool adds."""
    pool = problem.pools[planned.node_pool]
    minimums = {item.key: item.min_values for item in pool.template.requirements if item.min_values is not None}
    if not minimums:
        return
    for item in planned.requirements:
        if item.operator is Operator.IN and len(item.values) < (item.min_values or 0):
            yield f"asks for {item.min_values} values of {item.key} and lists {len(item.values)}: the API server refuses it"
    has = _listed(problem, planned)
    if planned.capacity_types == (RESERVED,):
        has.update(*(_open_to(problem, pool, one) for one in problem.instance_types.values()))
    elif CAPACITY_TYPE_LABEL in minimums:
        listed = [_open_to(problem, pool, problem.instance_types[name]) for name in planned.instance_types]
        has |= {(CAPACITY_TYPE_LABEL, RESERVED)}.intersection(set[tuple[str, str]]().union(*listed))
    for key, least in minimums.items():
        left = sum(name == stable_label(key) for name, _ in has)
        if left < least:
            yield f"minValues of {key} is {least}, {left} are left"


def _listed(problem: IndexedProblem, planned: PlannedNode) -> _Labels:
    has: _Labels = set()
    for name, zone, capacity_type in product(planned.instance_types, planned.zones, planned.capacity_types):
        instance_type = problem.instance_types[name]
        has.update(labels_of(instance_type).items())
        has.update((OPERATING_SYSTEM_LABEL, system) for system in systems_for(planned, instance_type))
        for offering in offerings_for(planned, instance_type, zone, capacity_type):
            has.update(labels_as_offered(offering).items())
    return has


def _open_to(problem: IndexedProblem, pool: NodePool, instance_type: InstanceType) -> _Labels:
    """The type's labels, for every way in which the NodePool may buy it."""
    found: _Labels = set()
    for offering, labels in ways_to_buy(instance_type):
        asked = [item for item in pool.template.requirements if item.key in labels]
        backed_off = (instance_type.name, offering.zone, offering.capacity_type) in problem.options.back_offs
        if not backed_off and all(holds(item, labels[item.key]) for item in asked):
            found |= labels.items()
    return found
