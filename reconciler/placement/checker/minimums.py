"""What a NodePool with minValues may buy of each type, for nodes of capacity reservations. Used by planned_nodes.

Karpenter counts values before it narrows a NodeClaim to a reservation, so they are counted of all that the pool could have had.
"""

from __future__ import annotations

from reconciler.model.nodes import (
    ARCHITECTURE_LABEL,
    INSTANCE_TYPE_LABEL,
    OPERATING_SYSTEM_LABEL,
    InstanceType,
    NodePool,
)
from reconciler.placement.checker.nodes import Scene
from reconciler.placement.checker.sites import Site, holds, label_of, labels_as_offered

LabelSet = set[tuple[str, str]]


def labels_open_to(scene: Scene, pool: NodePool, kind: InstanceType) -> LabelSet:
    """Labels that the type comes with, as whatever the pool may buy it."""
    found: LabelSet = set()
    for offering in kind.offerings:
        left = offering.capacity_type != "reserved" or offering.reservation_capacity
        backed_off = (kind.name, offering.zone, offering.capacity_type) in scene.back_offs
        if not offering.available or not left or backed_off:
            continue
        for system in kind.operating_systems:
            own = {
                INSTANCE_TYPE_LABEL: kind.name,
                ARCHITECTURE_LABEL: kind.architecture,
                OPERATING_SYSTEM_LABEL: system,
            }
            labels = dict(kind.labels) | own | labels_as_offered(offering)
            site = Site("", labels, (), exists=False)
            known = [item for item in pool.template.requirements if item.key in labels]
            if all(holds(item, label_of(site, item.key)) for item in known):
                found |= labels.items()
    return found
