"""Limits of NodePools (filterByRemainingResources in Karpenter's pkg/controllers/provisioning/scheduling)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.machines import Machine
from reconciler.model.nodes import INSTANCE_TYPE_LABEL
from reconciler.model.placement import PlannedNode
from reconciler.model.quantity import Resources
from reconciler.placement.checker.indexed_problem import IndexedProblem


def limit_violations(problem: IndexedProblem, planned: Sequence[PlannedNode]) -> Iterable[str]:
    """Limits that are exceeded if each planned node becomes the largest type it lists. Only resources that it adds count."""
    added: dict[str, list[PlannedNode]] = {}
    for node in planned:
        added.setdefault(node.node_pool, []).append(node)
    for name, nodes in added.items():
        limits = problem.pools[name].limits
        if limits is None:
            continue
        largest = {names: _largest(problem, names) for names in {node.instance_types for node in nodes}}
        total = Resources.total(largest[node.instance_types] for node in nodes) + Resources.of({"nodes": len(nodes)})
        used = _used(problem, name)
        for resource, limit in limits:
            if total.get(resource) and used.get(resource) + total.get(resource) > limit:
                yield f"NodePool {name}: {resource} exceeds its limit of {limit}"


def _largest(problem: IndexedProblem, names: Iterable[str], least: Resources = Resources()) -> Resources:  # noqa: B008 - immutable
    """The largest amount of each resource, in `least` and among the known types."""
    for name in names:
        if name in problem.instance_types:
            least = least.at_least(problem.instance_types[name].capacity)
    return least


def _used(problem: IndexedProblem, pool: str) -> Resources:
    capacities = [_capacity(problem, item) for item in problem.cluster.machines if item.node_pool == pool]
    return Resources.total(capacities) + Resources.of({"nodes": len(capacities)})


def _capacity(problem: IndexedProblem, machine: Machine) -> Resources:
    """A machine's capacity. A node that is coming up may not report all of it yet. A NodeClaim counts as its largest type."""
    node, claim = machine.node, machine.node_claim
    capacity = (node.capacity if node else Resources()).at_least(claim.capacity if claim else Resources())
    named = machine.label(INSTANCE_TYPE_LABEL)
    asked = claim.requirements if claim and node is None else ()
    listed = next((item.values for item in asked if item.key == INSTANCE_TYPE_LABEL), ())
    return _largest(problem, listed if named is None else (named,), capacity)
