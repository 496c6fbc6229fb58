"""A catalog of the types of the cluster's nodes, without prices.

It has only zones and capacity types that were launched before, so every placeholder can be launched. Nodes of one type may differ, as
by firmware or kubelet settings. The least of each amount counts, since a new node may have no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from reconciler.manifests.instance_types import is_sample
from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    OPERATING_SYSTEM_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    InstanceType,
    Labels,
    Node,
    Offering,
)
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.timelines import SAMPLE_PRICES
from reconciler.model.view import ClusterView

_TYPE_LABELS = (INSTANCE_TYPE_LABEL, ARCHITECTURE_LABEL, OPERATING_SYSTEM_LABEL, REGION_LABEL)
_TYPE_LABEL_PARTS = ("/instance-", "/sku-")
"""Parts of the names of labels that belong to a type: `karpenter.k8s.aws/instance-family`, `karpenter.azure.com/sku-cpu`."""


class ObservedCatalog:
    """The types of the view's nodes; every price is unknown."""

    @property
    def source(self) -> str:
        return "nodes seen in the cluster; their prices are not known"

    def instance_types(self, view: ClusterView) -> tuple[InstanceType, ...]:
        return observed_instance_types(view.nodes)


class ClusterCatalog:
    """The catalog of a snapshot or of the embedded cluster; without one, the types of its nodes."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._observed = ObservedCatalog()
        self._catalog: tuple[InstanceType, ...] = ()
        self._is_sample = False

    @property
    def source(self) -> str:
        if not self._catalog:
            return self._observed.source
        return (
            f"{SAMPLE_PRICES} (the catalog of {self._cluster})"
            if self._is_sample
            else f"the catalog of {self._cluster}, undated"
        )

    def instance_types(self, view: ClusterView) -> tuple[InstanceType, ...]:
        if view.catalog is not self._catalog:
            self._catalog, self._is_sample = view.catalog, is_sample(view.catalog)
        return view.catalog or self._observed.instance_types(view)


def observed_instance_types(nodes: Iterable[Node]) -> tuple[InstanceType, ...]:
    """One type for each value of the instance-type label, sorted by name.

    Left out: nodes being deleted, and nodes without a type, zone, architecture or capacity.
    """
    telling = [node for node in nodes if _is_telling(node)]
    telling.sort(key=lambda node: (node.label(INSTANCE_TYPE_LABEL) or "", node.name))
    return tuple(
        _instance_type(name or "", list(group))
        for name, group in groupby(telling, key=lambda node: node.label(INSTANCE_TYPE_LABEL))
    )


def _is_telling(node: Node) -> bool:
    return bool(
        not node.deleting
        and node.label(INSTANCE_TYPE_LABEL)
        and node.label(ARCHITECTURE_LABEL)
        and node.label(ZONE_LABEL)
        and node.allocatable
    )


def _instance_type(name: str, nodes: Sequence[Node]) -> InstanceType:
    # A node that has just joined lacks labels that Karpenter copies to it, and devices that are reported late.
    nodes = [
        node for node in nodes if node.label(INITIALIZED_LABEL) == "true" or not node.label(NODEPOOL_LABEL)
    ] or nodes
    capacity = Resources.least(node.capacity or node.allocatable for node in nodes)
    allocatable = Resources.least(node.allocatable for node in nodes)
    # A node from outside Karpenter has no capacity type: it counts as on-demand.
    seen = {(node.label(ZONE_LABEL) or "", node.label(CAPACITY_TYPE_LABEL) or "on-demand") for node in nodes}
    systems = {node.label(OPERATING_SYSTEM_LABEL) or "linux" for node in nodes}
    return InstanceType(
        name=name,
        architecture=nodes[0].label(ARCHITECTURE_LABEL) or "",
        operating_systems=tuple(sorted(systems)),
        capacity=capacity,
        overhead=Resources.of((key, max(amount, 0)) for key, amount in capacity - allocatable),
        offerings=tuple(offering(zone, capacity_type) for zone, capacity_type in sorted(seen)),
        labels=_shared_labels(nodes),
    )


def offering(zone: str, capacity_type: str, *, price: float | None = None, available: bool = True) -> Offering:
    """An offering of one zone and capacity type. price: USD an hour, None where unknown."""
    return Offering(
        zone=zone,
        capacity_type=capacity_type,
        price=price or 0.0,
        available=available,
        requirements=(
            Requirement(CAPACITY_TYPE_LABEL, Operator.IN, (capacity_type,)),
            Requirement(ZONE_LABEL, Operator.IN, (zone,)),
        ),
        price_known=price is not None,
    )


def _shared_labels(nodes: Sequence[Node]) -> Labels:
    shared = set(nodes[0].labels).intersection(*(node.labels for node in nodes[1:]))
    return tuple(
        sorted(
            (key, value)
            for key, value in shared
            if key in _TYPE_LABELS or any(part in key for part in _TYPE_LABEL_PARTS)
        )
    )
