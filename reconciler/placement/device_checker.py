"""Checks that no node is asked for more devices than it has free, or than nodes like it show that it will have. Used by checker; shares nothing with the engine.

Claims that cannot be counted are passed over: placement says of them that they are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.devices import ClaimSpec, DeviceClass
from reconciler.model.nodes import NODEPOOL_LABEL
from reconciler.model.pods import PodShape
from reconciler.model.view import ClusterView
from reconciler.placement.checked_examples import is_up, names_up, possible_types
from reconciler.placement.checked_sites import Site


def device_violations(view: ClusterView, sites: Sequence[Site]) -> Iterable[str]:
    """Class by class: devices of other classes may be the same ones, which only makes fewer of them free."""
    classes = {item.name: item for item in view.devices.classes if item.is_simple}
    taken = {device for claim in view.devices.claims for device in claim.allocated}
    for site in sites:
        wanted: dict[str, int] = {}
        for tenant in site.tenants:
            for spec in _specs(view, tenant.shape) if tenant.chunk else ():
                for request in spec.requests if spec.simple else ():
                    wanted[request.device_class] = wanted.get(request.device_class, 0) + request.count * tenant.count
        for name, count in sorted(wanted.items()):
            if name in classes and _is_countable(view, classes[name]):
                free = _free(view, site, classes[name], taken)
                if count > free:
                    yield f"{site.name}: {count} devices of class {name} are asked for, {free} are free"


def _specs(view: ClusterView, shape: PodShape) -> Iterable[ClaimSpec]:
    for template in view.devices.templates:
        for name in shape.resource_claim_templates:
            if (template.namespace, template.name) == (shape.namespace, name):
                yield template.spec


def _is_countable(view: ClusterView, found: DeviceClass) -> bool:
    return all(
        device.simple and item.node
        for item in view.devices.slices
        for device in item.devices
        if found.selects(item.driver, device)
    )


def _free(view: ClusterView, site: Site, found: DeviceClass, taken: set[tuple[str, str, str]]) -> int:
    node = next((item for item in view.nodes if site.exists and item.name == site.name), None)
    published = any(item.node == site.name for item in view.devices.slices)
    if node is not None and (published or is_up(view, node)):
        return _devices(view, node.name, found, taken)
    pool = site.labels.get(NODEPOOL_LABEL, "")
    return min((_agreed(view, pool, kind, found) for kind in possible_types(site)), default=0)


def _agreed(view: ClusterView, pool: str, kind: str, found: DeviceClass) -> int:
    """How many devices all nodes of that NodePool and type have; none where they differ."""
    counts = {_devices(view, name, found, set()) for name in names_up(view, pool=pool, instance_type=kind)}
    return counts.pop() if len(counts) == 1 else 0


def _devices(view: ClusterView, node: str, found: DeviceClass, taken: set[tuple[str, str, str]]) -> int:
    return sum(
        found.selects(item.driver, device) and (item.driver, item.pool, device.name) not in taken
        for item in view.devices.slices
        if item.node == node
        for device in item.devices
    )
