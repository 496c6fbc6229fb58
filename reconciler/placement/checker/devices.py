"""Checks that pods are on nodes that have the devices they claim, or that nodes like them show that they will have. Used by
violations.

Devices are counted for sets of classes together: however classes overlap, all that ask for some of them need as many devices as
some of them select. Claims that cannot be counted are passed over: placement says of them that they are not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations

from reconciler.model.demand import Demand
from reconciler.model.devices import ClaimSpec, Device, DeviceClass, DeviceName, ResourceSlice
from reconciler.model.nodes import NODEPOOL_LABEL
from reconciler.model.pods import PodShape
from reconciler.model.view import ClusterView
from reconciler.placement.checker.examples import Examples, possible_types
from reconciler.placement.checker.sites import Site, Tenant


def device_violations(
    view: ClusterView, demands: Sequence[Demand], examples: Examples, sites: Sequence[Site]
) -> Iterable[str]:
    scene = _Scene(view, demands, examples)
    for site in sites:
        if not any(_claims_devices(tenant) for tenant in site.tenants):
            continue
        running: Counter[str] = Counter()
        minimum: Counter[str] = Counter()
        empty: Counter[str] = Counter()
        for claiming in filter(_claims_devices, site.tenants):
            tenant = replace(claiming, shape=scene.owning(claiming.shape))
            missing = list(scene.missing(tenant.shape))
            yield from (f"{site.name}: {what} is not there" for what in missing)
            if not missing:
                yield from scene.misplaced(site, tenant.shape)
                kind = running if tenant.pending else minimum if tenant.keeps_minimum else empty
                kind += scene.wanted(tenant)
        # What runs may be the very pods that a minimum is kept for.
        yield from scene.overcommitted(site, (running | minimum) + empty)


def _claims_devices(tenant: Tenant) -> bool:
    shape = tenant.shape
    return tenant.chunk and bool(shape.resource_claims or shape.resource_claim_templates or shape.generated_claims)


class _Scene:
    """Devices, claims and classes, by what they are looked up by."""

    def __init__(self, view: ClusterView, demands: Sequence[Demand], examples: Examples) -> None:
        devices = view.devices
        self._examples = examples
        self._nodes = {node.name for node in view.nodes}
        self._classes = {item.name: item for item in devices.classes}
        self._templates = {(item.namespace, item.name): item.spec for item in devices.templates}
        self._claims = {(item.namespace, item.name): item for item in devices.claims}
        self._slices = _counted(devices.slices)
        self._node_of: dict[DeviceName, str] = {}
        self._on_node: dict[str, set[DeviceName]] = {}
        self._odd: set[DeviceName] = set()
        """Devices that are not whole, or on no node."""
        for item in self._slices:
            for device in item.devices:
                name = _name(item, device)
                self._on_node.setdefault(self._node_of.setdefault(name, item.node), set()).add(name)
                if not (device.simple and item.node):
                    self._odd.add(name)
        self._taken = {device for claim in devices.claims for device in claim.allocated}
        shapes = [(self.owning(group.shape), group.count) for demand in demands for group in demand.groups]
        bound = [(pod.shape, 1) for pod in view.pods if pod.node_name is not None]
        self._users: Counter[tuple[str, str]] = Counter()
        for shape, count in (*shapes, *bound):
            self._users.update({(shape.namespace, name): count for name in shape.resource_claims})
        asked = {
            request.device_class for shape, _ in shapes for spec in self._specs(shape) for request in spec.requests
        }
        simple = {name for name in asked & self._classes.keys() if self._classes[name].is_simple}
        self._selected = {name: self._select(self._classes[name]) for name in simple}
        self._countable = {name for name in simple if self._can_count(name)}
        self._together: dict[tuple[str, ...], frozenset[DeviceName]] = {}
        self._known: dict[tuple[str, str, tuple[str, ...]], int] = {}

    def owning(self, shape: PodShape) -> PodShape:
        """Claims made for the pod among those it names; in the place of one that is gone or another's, its template."""
        for made in shape.generated_claims:
            claim = self._claims.get((shape.namespace, made.name))
            if claim is not None and claim.owner == made.owner:
                others = (name for name in shape.resource_claims if name != made.name)
                shape = replace(shape, resource_claims=(*others, made.name))
            else:
                shape = replace(shape, resource_claim_templates=(*shape.resource_claim_templates, made.template))
        return shape

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
            nodes = {self._node_of.get(device, "") for device in self._claims[shape.namespace, name].allocated}
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
            if spec.simple and all(request.device_class in self._countable for request in spec.requests):
                for request in spec.requests:
                    found[request.device_class] += request.count * tenant.count
        return found

    def _has_devices(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self._claims and bool(self._claims[namespace, name].allocated)

    def overcommitted(self, site: Site, wanted: Counter[str]) -> Iterable[str]:
        names = sorted(name for name in wanted if name in self._selected)
        for some in chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1)):
            count = sum(wanted[name] for name in some)
            here = self._free(site, some)
            if count > here:
                asked = f"{count} {'device' if count == 1 else 'devices'} of {_spoken(some)} {'is' if count == 1 else 'are'} asked for"
                yield f"{site.name}: {asked}, {here} {'is' if here == 1 else 'are'} free"

    def _free(self, site: Site, classes: tuple[str, ...]) -> int:
        """Devices that some of these classes select."""
        if classes not in self._together:
            self._together[classes] = frozenset[DeviceName]().union(*(self._selected[name] for name in classes))
        there = site.exists and site.name in self._nodes
        # What a node that is coming up publishes counts once a pool of it is whole.
        if there and (site.name in self._on_node or self._examples.is_up(site.name)):
            return len(self._on(site.name, classes) - self._taken)
        pool = site.labels.get(NODEPOOL_LABEL, "")
        return min((self._agreed(pool, kind, classes) for kind in possible_types(site)), default=0)

    def _agreed(self, pool: str, kind: str, classes: tuple[str, ...]) -> int:
        """How many of these devices all nodes of that NodePool and type have; none where they differ."""
        key = (pool, kind, classes)
        if key not in self._known:
            counts = {len(self._on(name, classes)) for name in self._examples.names(pool=pool, instance_type=kind)}
            self._known[key] = counts.pop() if len(counts) == 1 else 0
        return self._known[key]

    def _on(self, node: str, classes: tuple[str, ...]) -> frozenset[DeviceName]:
        return self._together[classes] & self._on_node.get(node, set())

    def _specs(self, shape: PodShape, *, without: Collection[str] = ()) -> Iterable[ClaimSpec]:
        """Of all templates, and of claims but for these."""
        names = [name for name in shape.resource_claims if name not in without]
        templates = (self._templates.get((shape.namespace, name)) for name in shape.resource_claim_templates)
        claims = (self._claims.get((shape.namespace, name)) for name in names)
        yield from (spec for spec in templates if spec is not None)
        yield from (claim.spec for claim in claims if claim is not None)

    def _can_count(self, name: str) -> bool:
        """Whether the class's devices are whole and on nodes, and no class that is asked for selects only some of them."""
        own = self._selected[name]
        return not own & self._odd and all(theirs == own or not theirs & own for theirs in self._selected.values())

    def _select(self, found: DeviceClass) -> frozenset[DeviceName]:
        return frozenset(
            _name(item, device)
            for item in self._slices
            for device in item.devices
            if found.selects(item.driver, device)
        )


def _name(item: ResourceSlice, device: Device) -> DeviceName:
    return (item.driver, item.pool, device.name)


def _counted(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    """Those of their pool's newest generation, where all of that is there."""
    generations: dict[tuple[str, str], Counter[int]] = {}
    for item in slices:
        generations.setdefault((item.driver, item.pool), Counter())[item.generation] += 1
    found = []
    for item in slices:
        counts = generations[item.driver, item.pool]
        if item.generation == max(counts) and counts[item.generation] >= item.slices:
            found.append(item)
    return found


def _spoken(names: Sequence[str]) -> str:
    return f"class {names[0]}" if len(names) == 1 else f"classes {' and '.join(names)}"
