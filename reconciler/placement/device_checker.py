"""Checks that pods are on nodes that have the devices they claim, or that nodes like them show that they will have. Used by checker;
shares nothing with the engine.

Devices are counted for sets of classes together: however classes overlap, all that ask for some of them need as many devices as
some of them select. Claims that cannot be counted are passed over: placement says of them that they are not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, combinations

from reconciler.model.demand import Demand
from reconciler.model.devices import ClaimSpec, Device, DeviceClass, DeviceName, ResourceSlice
from reconciler.model.nodes import NODEPOOL_LABEL
from reconciler.model.pods import PodShape
from reconciler.model.view import ClusterView
from reconciler.placement.checked_examples import is_up, names_up, possible_types
from reconciler.placement.checked_sites import Site, Tenant


def device_violations(view: ClusterView, demands: Sequence[Demand], sites: Sequence[Site]) -> Iterable[str]:
    scene = _Scene(view, demands)
    for site in sites:
        running: Counter[str] = Counter()
        minimum: Counter[str] = Counter()
        empty: Counter[str] = Counter()
        for tenant in site.tenants:
            if not tenant.chunk or not (tenant.shape.resource_claims or tenant.shape.resource_claim_templates):
                continue
            missing = list(scene.missing(tenant.shape))
            yield from (f"{site.name}: {what} is not there" for what in missing)
            if not missing:
                yield from scene.misplaced(site, tenant.shape)
                kind = running if tenant.pending else minimum if tenant.keeps_minimum else empty
                kind += scene.wanted(tenant)
        # What runs may be the very pods that a minimum is kept for.
        yield from scene.overcommitted(site, (running | minimum) + empty)


class _Scene:
    def __init__(self, view: ClusterView, demands: Sequence[Demand]) -> None:
        devices = view.devices
        self._view = view
        self._classes = {item.name: item for item in devices.classes}
        self._templates = {(item.namespace, item.name): item.spec for item in devices.templates}
        self._claims = {(item.namespace, item.name): item for item in devices.claims}
        self._slices = [item for item in devices.slices if _counts(item, devices.slices)]
        self._taken = {device for claim in devices.claims for device in claim.allocated}
        shapes = [(group.shape, group.count) for demand in demands for group in demand.groups]
        bound = [(pod.shape, 1) for pod in view.pods if pod.node_name is not None]
        self._users: Counter[tuple[str, str]] = Counter()
        for shape, count in (*shapes, *bound):
            self._users.update({(shape.namespace, name): count for name in shape.resource_claims})
        asked = {
            request.device_class for shape, _ in shapes for spec in self._specs(shape) for request in spec.requests
        }
        simple = {name for name in asked & self._classes.keys() if self._classes[name].is_simple}
        self._selected = {name: self._select(self._classes[name]) for name in simple}

    def missing(self, shape: PodShape) -> Iterable[str]:
        """What the pod waits for; it cannot be on any node."""
        for name in shape.resource_claim_templates:
            if (shape.namespace, name) not in self._templates:
                yield f"ResourceClaimTemplate {shape.namespace}/{name}"
        for name in shape.resource_claims:
            if (shape.namespace, name) not in self._claims:
                yield f"ResourceClaim {shape.namespace}/{name}"
        allocated = {name for name in shape.resource_claims if self._has_devices(shape.namespace, name)}
        for spec in self._specs(shape, without=allocated):
            for request in spec.requests if spec.simple else ():
                if request.device_class not in self._classes:
                    yield f"DeviceClass {request.device_class}"

    def misplaced(self, site: Site, shape: PodShape) -> Iterable[str]:
        """Claims whose devices are another node's; where they are is only known of those that are all one node's."""
        for name in shape.resource_claims:
            nodes = {self._node_of(device) for device in self._claims[shape.namespace, name].allocated}
            if len(nodes) == 1 and "" not in nodes and not (site.exists and site.name in nodes):
                yield f"{site.name}: the devices of claim {shape.namespace}/{name} are elsewhere"

    def wanted(self, tenant: Tenant) -> Counter[str]:
        shape = tenant.shape
        passed = {
            name
            for name in shape.resource_claims
            if self._has_devices(shape.namespace, name) or self._users[shape.namespace, name] > 1
        }
        found: Counter[str] = Counter()
        for spec in self._specs(shape, without=passed):
            if spec.simple and all(self._is_countable(request.device_class) for request in spec.requests):
                for request in spec.requests:
                    found[request.device_class] += request.count * tenant.count
        return found

    def _has_devices(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self._claims and bool(self._claims[namespace, name].allocated)

    def overcommitted(self, site: Site, wanted: Counter[str]) -> Iterable[str]:
        names = sorted(name for name in wanted if name in self._selected)
        for some in chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1)):
            count = sum(wanted[name] for name in some)
            here = self._free(site, frozenset(device for name in some for device in self._selected[name]))
            if count > here:
                yield f"{site.name}: {count} devices of {_spoken(some)} are asked for, {here} are free"

    def _free(self, site: Site, devices: frozenset[DeviceName]) -> int:
        node = next((item for item in self._view.nodes if site.exists and item.name == site.name), None)
        published = any(item.node == site.name for item in self._view.devices.slices)
        if node is not None and (published or is_up(self._view, node)):
            return self._on(node.name, devices - self._taken)
        pool = site.labels.get(NODEPOOL_LABEL, "")
        return min((self._agreed(pool, kind, devices) for kind in possible_types(site)), default=0)

    def _agreed(self, pool: str, kind: str, devices: frozenset[DeviceName]) -> int:
        """How many of these devices all nodes of that NodePool and type have; none where they differ."""
        counts = {self._on(name, devices) for name in names_up(self._view, pool=pool, instance_type=kind)}
        return counts.pop() if len(counts) == 1 else 0

    def _on(self, node: str, devices: frozenset[DeviceName]) -> int:
        return sum(self._node_of(device) == node for device in devices)

    def _specs(self, shape: PodShape, *, without: Collection[str] = ()) -> Iterable[ClaimSpec]:
        """Of all templates, and of claims but for these."""
        names = [name for name in shape.resource_claims if name not in without]
        templates = (self._templates.get((shape.namespace, name)) for name in shape.resource_claim_templates)
        claims = (self._claims.get((shape.namespace, name)) for name in names)
        yield from (spec for spec in templates if spec is not None)
        yield from (claim.spec for claim in claims if claim is not None)

    def _is_countable(self, name: str) -> bool:
        """Whether the class's devices are whole and on nodes, and no class that is asked for selects only some of them."""
        own = self._selected.get(name)
        if own is None or any(not self._is_plain(device) for device in own):
            return False
        return all(theirs == own or not theirs & own for theirs in self._selected.values())

    def _select(self, found: DeviceClass) -> frozenset[DeviceName]:
        return frozenset(
            _name(item, device)
            for item in self._slices
            for device in item.devices
            if found.selects(item.driver, device)
        )

    def _is_plain(self, name: DeviceName) -> bool:
        return all(
            device.simple and item.node
            for item in self._slices
            for device in item.devices
            if _name(item, device) == name
        )

    def _node_of(self, name: DeviceName) -> str:
        nodes = [item.node for item in self._slices for device in item.devices if _name(item, device) == name]
        return nodes[0] if nodes else ""


def _name(item: ResourceSlice, device: Device) -> DeviceName:
    return (item.driver, item.pool, device.name)


def _counts(item: ResourceSlice, slices: Sequence[ResourceSlice]) -> bool:
    """Whether it is of its pool's newest generation, and all of that is there."""
    pool = [other for other in slices if (other.driver, other.pool) == (item.driver, item.pool)]
    alike = [other for other in pool if other.generation == item.generation]
    newest = all(other.generation <= item.generation for other in pool)
    return newest and len(alike) >= item.slices


def _spoken(names: Sequence[str]) -> str:
    return f"class {names[0]}" if len(names) == 1 else f"classes {' and '.join(names)}"
