"""A quick check by requests alone whether a node's chunks could fit elsewhere. It mostly says no, which saves trying a placement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reconciler.model.demand import Demand
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.plan.bins import Bin


def could_fit_elsewhere(
    name: str, bins: Sequence[Bin], demands: Iterable[Demand], view: ClusterView, closed: Collection[str]
) -> bool:
    """Whether the other open bins have room for this one's chunks, together and for each chunk on some bin. closed: bins that take no
    chunks."""
    leaving = next((item for item in bins if item.name == name), None)
    if leaving is None:
        return False
    shapes = {
        (demand.ref, index): group.shape.requests for demand in demands for index, group in enumerate(demand.groups)
    }
    asked = [shapes.get((holding.demand, holding.group), Resources()) for holding in leaving.chunks]
    wanted = Resources.total(request * holding.count for request, holding in zip(asked, leaving.chunks, strict=True))
    free = _free_room([item for item in bins if item.name != name and item.name not in closed], shapes, view)
    together = Resources.total(free)
    return wanted.fits(together) and all(any(request.fits(room) for room in free) for request in asked)


def _free_room(
    bins: Sequence[Bin], shapes: dict[tuple[ObjectRef, int], Resources], view: ClusterView
) -> list[Resources]:
    names = {item.node.name for item in bins if item.node is not None}
    used: dict[str, list[Resources]] = {}
    for pod in view.pods:
        if pod.node_name in names:
            used.setdefault(pod.node_name or "", []).append(pod.shape.requests)
    rooms = []
    for item in bins:
        if item.node is None or not item.node.ready:
            continue
        held = (shapes.get((part.demand, part.group), Resources()) * part.count for part in item.chunks)
        rooms.append(item.node.allocatable - Resources.total((*used.get(item.node.name, ()), *held)))
    return rooms
