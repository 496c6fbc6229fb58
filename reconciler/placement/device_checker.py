"""Checks that no node is asked for more devices than it has free. Used by checker; shares nothing with the engine.

Claims that cannot be counted are passed over: placement says of them that they are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.model.devices import ClaimSpec, DeviceClass
from reconciler.model.pods import PodShape
from reconciler.model.view import ClusterView
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
    return sum(
        found.selects(item.driver, device) and (item.driver, item.pool, device.name) not in taken
        for item in view.devices.slices
        if item.node == site.name and site.exists
        for device in item.devices
    )
