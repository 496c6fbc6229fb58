"""Where chunks are, by the topology labels of their demand's spread constraints and pod (anti-)affinity. The hostname is left out, since a
node's name says as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.changes import DomainCount, NodeClaimCreation
from reconciler.model.demand import Demand
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, NodeClaim
from reconciler.model.placement import Holding, PlannedNode
from reconciler.model.pods import PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Operator, Requirement
from reconciler.plan.bins import Bin


def topology_keys(demands: Iterable[Demand]) -> dict[ObjectRef, tuple[str, ...]]:
    """Of the demands that go by any label other than the hostname, sorted."""
    known: dict[int, frozenset[str]] = {}
    found = {}
    for demand in demands:
        keys: frozenset[str] = frozenset()
        for group in demand.groups:
            shape = group.shape
            if id(shape) not in known:
                known[id(shape)] = frozenset(_keys(shape)) - {HOSTNAME_LABEL}
            keys |= known[id(shape)]
        if keys:
            found[demand.ref] = tuple(sorted(keys))
    return found


def _keys(shape: PodShape) -> Iterable[str]:
    yield from (item.topology_key for item in shape.topology_spread)
    yield from (term.topology_key for term in (*shape.pod_affinity, *shape.pod_anti_affinity))
    yield from (item.term.topology_key for item in (*shape.preferred_pod_affinity, *shape.preferred_pod_anti_affinity))


def domain_counts(
    keys: Mapping[ObjectRef, tuple[str, ...]], bins: Iterable[Bin], created: Iterable[NodeClaimCreation]
) -> dict[ObjectRef, tuple[DomainCount, ...]]:
    """Chunks of each node with the node's value of each label, by demand. Existing nodes come first, by name, then new ones."""
    found: dict[ObjectRef, list[DomainCount]] = {}

    def add(name: str, holdings: Iterable[Holding], values_of: Mapping[str, tuple[str, ...]]) -> None:
        for holding in holdings:
            rows = found.setdefault(holding.demand, []) if holding.demand in keys else []
            rows += [
                DomainCount(name, key, values_of.get(key, ()), holding.count) for key in keys.get(holding.demand, ())
            ]

    if keys:
        for item in bins:
            holdings = (*item.chunks, *item.pods)
            if holdings:
                add(item.name, holdings, _values_of_bin(item))
        for creation in created:
            add(creation.name, creation.planned.holdings, _values_of_planned(creation.planned))
    return {demand: tuple(rows) for demand, rows in found.items()}


def _values_of_bin(item: Bin) -> Mapping[str, tuple[str, ...]]:
    """The node's labels, or the values that a NodeClaim on its way fixes or leaves open."""
    if item.node is not None:
        return {key: (value,) for key, value in item.node.labels}
    return {} if item.claim is None else _values_of_claim(item.claim)


def _values_of_claim(claim: NodeClaim) -> Mapping[str, tuple[str, ...]]:
    return {**_listed(claim.requirements), **{key: (value,) for key, value in claim.labels}}


def _values_of_planned(planned: PlannedNode) -> Mapping[str, tuple[str, ...]]:
    return {
        **_listed(planned.requirements),
        ZONE_LABEL: planned.zones,
        CAPACITY_TYPE_LABEL: planned.capacity_types,
        INSTANCE_TYPE_LABEL: planned.instance_types,
        **{key: (value,) for key, value in planned.labels},
    }


def _listed(requirements: Sequence[Requirement]) -> dict[str, tuple[str, ...]]:
    return {item.key: item.values for item in requirements if item.operator is Operator.IN}
