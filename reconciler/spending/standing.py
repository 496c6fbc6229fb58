"""What stands at the end of a pass, and what it costs now. Computed only when somebody looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from reconciler.model.changes import NodeClaimCreation, Plan
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, InstanceType
from reconciler.model.quantity import CPU, MEMORY
from reconciler.model.refs import ObjectRef
from reconciler.model.spending import NodeState, StandingNode, StandingNodes
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin, all_bins
from reconciler.plan.cost import Prices
from reconciler.spending.steady import share_price

_Used = tuple[int, int]
"""CPU in millicores and memory in bytes."""


def standing_nodes(plan: Plan, view: ClusterView, instance_types: Sequence[InstanceType]) -> StandingNodes:
    """Nodes that the plan creates count as coming. plan: of a pass over this view."""
    prices, used = Prices(instance_types), _used(view)
    asked = {outcome.demand.ref: outcome.demand for outcome in plan.demands}
    per_hour: dict[ObjectRef, float] = {}
    bins = all_bins(view, plan.occupied)
    nodes = []
    for item in bins:
        price = prices.of(item)
        nodes.append(_node(item, price, used))
        if price is not None and item.is_placeholder and not (item.in_use or item.is_going):
            share_price(price, item.chunks, asked, per_hour)
    names = {item.name for item in bins}
    for creation in plan.node_claims.create:
        if creation.name in names:
            continue
        nodes.append(_planned(creation))
        if creation.planned.price_known:
            share_price(creation.planned.price, creation.planned.holdings, asked, per_hour)
    return StandingNodes(tuple(sorted(nodes, key=lambda node: (node.node_pool, node.name))), per_hour)


def _node(item: Bin, price: float | None, used: Mapping[str, _Used]) -> StandingNode:
    node, claim = item.node, item.claim
    cpu = memory = None
    if node is not None:
        millicores, size = used.get(node.name, (0, 0))
        cpu, memory = _share(millicores, node.allocatable.get(CPU)), _share(size, node.allocatable.get(MEMORY))
    return StandingNode(
        name=item.name,
        node_pool=item.node_pool,
        state=_state(item),
        instance_type=item.label(INSTANCE_TYPE_LABEL) or "",
        zone=item.label(ZONE_LABEL) or "",
        capacity_type=item.label(CAPACITY_TYPE_LABEL) or "",
        price=price,
        cpu=cpu,
        memory=memory,
        holdings=(*item.chunks, *item.watched),
        held=item.is_marked,
        drifted=claim is not None and claim.condition("Drifted") == "True",
        expires=_expiry(item),
    )


def _state(item: Bin) -> NodeState:
    if item.is_going:
        return NodeState.GOING
    if item.is_on_its_way:
        return NodeState.COMING
    return NodeState.READY if item.node is not None and item.node.ready else NodeState.NOT_READY


def _expiry(item: Bin) -> datetime | None:
    claim = item.claim
    if claim is None or claim.created is None or claim.expire_after is None:
        return None
    return claim.created + claim.expire_after


def _planned(creation: NodeClaimCreation) -> StandingNode:
    planned = creation.planned
    return StandingNode(
        name=creation.name,
        node_pool=planned.node_pool,
        state=NodeState.COMING,
        instance_type=planned.instance_types[0] if len(planned.instance_types) == 1 else "",
        zone=planned.zones[0] if len(planned.zones) == 1 else "",
        capacity_type=planned.capacity_types[0] if len(planned.capacity_types) == 1 else "",
        price=planned.price if planned.price_known else None,
        holdings=planned.holdings,
    )


def _used(view: ClusterView) -> dict[str, _Used]:
    """What pods request, by node. Pods share shapes, so that each shape is looked at once."""
    of_shape: dict[int, _Used] = {}
    used: dict[str, _Used] = {}
    for pod in view.pods:
        name = pod.node_name
        if name is None:
            continue
        size = of_shape.get(id(pod.shape))
        if size is None:
            size = of_shape[id(pod.shape)] = (pod.shape.requests.get(CPU), pod.shape.requests.get(MEMORY))
        before = used.get(name)
        used[name] = size if before is None else (before[0] + size[0], before[1] + size[1])
    return used


def _share(used: int, allocatable: int) -> float | None:
    return used / allocatable if allocatable else None
