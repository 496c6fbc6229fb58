"""What existing nodes tell about planned ones: how many volumes these can attach, and which devices they will have.

No catalog says so. Karpenter judges volumes on existing nodes only, and by default ignores pods with resource claims (option
IgnoreDRARequests). kube-scheduler judges both once a node is up, so a node planned for more than it then has would be of no use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from reconciler.model.machines import Machine
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, InstanceType, NodeClaim, NodePool
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator
from reconciler.model.view import ClusterView
from reconciler.placement.nodes.arriving import is_initialized
from reconciler.placement.offers.pool_offers import Observed, PoolType


@dataclass(frozen=True, slots=True)
class SampleNode:
    """A node that is up, of a NodePool ("" for none) and an instance type."""

    name: str
    pool: str
    instance_type: str


def sample_nodes(view: ClusterView) -> list[SampleNode]:
    """Initialized nodes, by name. Others may not report yet all that they are going to have."""
    return [
        SampleNode(node.name, *_pool_type(machine))
        for machine in view.machines
        if (node := machine.node) is not None and is_initialized(node, machine.node_claim)
    ]


def pool_types_of(node_pools: Iterable[NodePool], instance_types: Iterable[InstanceType]) -> Iterator[PoolType]:
    names = sorted(item.name for item in instance_types)
    return ((pool, name) for pool in sorted(pool.name for pool in node_pools) for name in names)


def young_nodes(view: ClusterView) -> dict[str, PoolType]:
    """Nodes that are not initialized yet, by name."""
    return {
        node.name: _pool_type(machine)
        for machine in view.machines
        if (node := machine.node) is not None and not is_initialized(node, machine.node_claim)
    }


def with_least(view: ClusterView, observed: Observed, otherwise: Resources) -> tuple[NodeClaim, ...]:
    """NodeClaims that are launched and have no node yet get the least of what any of their instance types is seen to have.

    otherwise: for NodeClaims of whose types nothing is observed. A machine that has joined reports for itself.
    """
    coming = {machine.name for machine in view.machines if machine.node is None}
    return tuple(
        replace(claim, allocatable=claim.allocatable + _least(claim, observed, otherwise))
        if claim.allocatable and claim.name in coming
        else claim
        for claim in view.node_claims
    )


def _least(claim: NodeClaim, observed: Observed, otherwise: Resources) -> Resources:
    pool = claim.label(NODEPOOL_LABEL) or ""
    named = claim.label(INSTANCE_TYPE_LABEL)
    listed = [
        item.values for item in claim.requirements if item.key == INSTANCE_TYPE_LABEL and item.operator is Operator.IN
    ]
    names = [named] if named is not None else [name for values in listed[:1] for name in values]
    known = [observed[pool, name] for name in names if (pool, name) in observed]
    if not known:
        return otherwise
    return Resources.of((name, min(item.get(name) for item in known)) for name in known[0].names())


def _pool_type(machine: Machine) -> PoolType:
    return machine.node_pool, machine.label(INSTANCE_TYPE_LABEL) or ""
