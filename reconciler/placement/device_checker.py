"""Checks that no node is asked for more devices than it has free. Used by checker; shares nothing with the engine.

Claims that cannot be counted are passed over: placement says of them that they are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.devices import ClaimSpec, DeviceClass, DeviceName, ResourceSlice
from reconciler.model.view import ClusterView
from reconciler.placement.checked_sites import Site


def device_violations(view: ClusterView, sites: Sequence[Site]) -> Iterable[str]:
    """Class by class: devices of other classes may be the same ones, which only makes fewer of them free."""
    specs: dict[tuple[str, str], list[ClaimSpec]] = {}
    for template in view.devices.templates:
        specs.setdefault((template.namespace, template.name), []).append(template.spec)
    countable = {item.name: item for item in view.devices.classes if item.is_simple and _is_countable(view, item)}
    taken = {device for claim in view.devices.claims for device in claim.allocated}
    on_node: dict[str, list[ResourceSlice]] = {}
    for part in view.devices.slices:
        on_node.setdefault(part.node, []).append(part)
    for site in sites if countable and specs else ():
        there = on_node.get(site.name, []) if site.exists else []
        for name, count in sorted(_wanted(site, specs).items()):
            if name in countable:
                free = _free(there, countable[name], taken)
                if count > free:
                    yield f"{site.name}: {count} devices of class {name} are asked for, {free} are free"


def _wanted(site: Site, specs: Mapping[tuple[str, str], Sequence[ClaimSpec]]) -> dict[str, int]:
    """Devices that chunks ask for, by class."""
    wanted: dict[str, int] = {}
    for tenant in site.tenants:
        for template in tenant.shape.resource_claim_templates if tenant.chunk else ():
            for spec in specs.get((tenant.shape.namespace, template), ()):
                for request in spec.requests if spec.simple else ():
                    wanted[request.device_class] = wanted.get(request.device_class, 0) + request.count * tenant.count
    return wanted


def _is_countable(view: ClusterView, found: DeviceClass) -> bool:
    return all(
        device.simple and item.node
        for item in view.devices.slices
        for device in item.devices
        if found.selects(item.driver, device)
    )


def _free(there: Sequence[ResourceSlice], found: DeviceClass, taken: set[DeviceName]) -> int:
    return sum(
        found.selects(item.driver, device) and (item.driver, item.pool, device.name) not in taken
        for item in there
        for device in item.devices
    )
