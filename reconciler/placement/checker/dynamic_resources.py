"""Dynamic resource allocation (kube-scheduler's plugin DynamicResources, KEP-4381): pods must be where their claimed devices are.

Devices are counted for every set of classes. However the classes overlap, the set's requests together must not exceed the devices
that any of them selects. Claims that cannot be counted are skipped: the placement reports them as not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations

from reconciler.model.devices import ClaimSpec, Device, DeviceName, Devices, ResourceClaim, ResourceSlice
from reconciler.model.pods import PodShape
from reconciler.placement.checker.checked_node import CheckedNode
from reconciler.placement.checker.indexed_problem import IndexedProblem
from reconciler.placement.checker.sample_nodes import SampleNodes, pools_and_types


def device_violations(problem: IndexedProblem, samples: SampleNodes, nodes: Sequence[CheckedNode]) -> Iterable[str]:
    claiming = [node for node in nodes if any(map(_claims_devices, node.shapes()))]
    if not claiming:
        return
    claims = _Claims(problem)
    inventory = _Inventory(problem.cluster.devices, claims.classes_asked(problem), samples)
    for node in claiming:
        running, minimum, empty = Counter[str](), Counter[str](), Counter[str]()
        for occupant in node.occupants:
            shape = claims.owned(occupant.shape)
            if not occupant.is_chunk or not _claims_devices(shape):
                continue
            missing = [f"{node.name}: {words} does not exist" for words in claims.missing(shape)]
            yield from missing
            if not missing:
                yield from inventory.misplaced(node, claims.named(shape))
                asked = inventory.countable(claims.unallocated(shape))
                total = running if occupant.is_pending else minimum if occupant.keeps_minimum else empty
                total.update({name: count * occupant.count for name, count in asked.items()})
        # Running pods may be the very ones that a minimum is kept for.
        yield from inventory.overcommitted(node, (running | minimum) + empty)


def _claims_devices(shape: PodShape) -> bool:
    return bool(shape.resource_claims or shape.resource_claim_templates or shape.generated_claims)


class _Claims:
    """ResourceClaims and templates, indexed."""

    def __init__(self, problem: IndexedProblem) -> None:
        devices = problem.cluster.devices
        self._classes = {item.name for item in devices.classes}
        self._templates = {(item.namespace, item.name): item.spec for item in devices.templates}
        self._claims = {(item.namespace, item.name): item for item in devices.claims}
        bound = [(pod.shape, 1) for pod in problem.cluster.pods if pod.node_name is not None]
        self._users = Counter[tuple[str, str]]()
        for shape, count in (*((self.owned(shape), count) for shape, count in problem.asked()), *bound):
            self._users.update({(shape.namespace, name): count for name in shape.resource_claims})

    def owned(self, shape: PodShape) -> PodShape:
        """The shape with claims made for the pod among those it names. For one that is gone or another pod's, the template counts."""
        for made in shape.generated_claims:
            claim = self._claims.get((shape.namespace, made.name))
            if claim is not None and claim.owner == made.owner:
                others = (name for name in shape.resource_claims if name != made.name)
                shape = replace(shape, resource_claims=(*others, made.name))
            else:
                shape = replace(shape, resource_claim_templates=(*shape.resource_claim_templates, made.template))
        return shape

    def classes_asked(self, problem: IndexedProblem) -> set[str]:
        specs = (spec for shape, _ in problem.asked() for spec in self._specs(self.owned(shape)))
        return {request.device_class for spec in specs for request in spec.requests}

    def missing(self, shape: PodShape) -> Iterable[str]:
        """Objects that the pod refers to but that do not exist. Until they do, it cannot be on any node."""
        for name in shape.resource_claim_templates:
            if (shape.namespace, name) not in self._templates:
                yield f"ResourceClaimTemplate {shape.namespace}/{name}"
        for name in shape.resource_claims:
            if (shape.namespace, name) not in self._claims:
                yield f"ResourceClaim {shape.namespace}/{name}"
        allocated = {claim.name for claim in self.named(shape) if claim.allocated}
        for spec in self._specs(shape, without=allocated):
            for request in spec.requests if spec.simple else ():
                if request.device_class not in self._classes:
                    yield f"DeviceClass {request.device_class}"

    def named(self, shape: PodShape) -> list[ResourceClaim]:
        found = (self._claims.get((shape.namespace, name)) for name in shape.resource_claims)
        return [claim for claim in found if claim is not None]

    def unallocated(self, shape: PodShape) -> Iterable[ClaimSpec]:
        """Claims without devices so far. A claim that several pods share is not judged."""
        shared = {name for name in shape.resource_claims if self._users[shape.namespace, name] > 1}
        allocated = {claim.name for claim in self.named(shape) if claim.allocated}
        return self._specs(shape, without=shared | allocated)

    def _specs(self, shape: PodShape, *, without: Collection[str] = ()) -> Iterable[ClaimSpec]:
        """The specs of all templates, and of all claims except these."""
        templates = (self._templates.get((shape.namespace, name)) for name in shape.resource_claim_templates)
        yield from (spec for spec in templates if spec is not None)
        yield from (claim.spec for claim in self.named(shape) if claim.name not in without)


class _Inventory:
    """Devices by node and by the classes that select them."""

    def __init__(self, devices: Devices, asked: Collection[str], samples: SampleNodes) -> None:
        self._samples = samples
        self._taken = {device for claim in devices.claims for device in claim.allocated}
        self._node_of: dict[DeviceName, str] = {}
        self._on_node: dict[str, set[DeviceName]] = {}
        uncounted: set[DeviceName] = set()
        """Devices that are not allocated whole, or belong to no single node."""
        published = [(item, device) for item in _complete(devices.slices) for device in item.devices]
        for item, device in published:
            name = _name(item, device)
            self._on_node.setdefault(self._node_of.setdefault(name, item.node), set()).add(name)
            if not (device.simple and item.node):
                uncounted.add(name)
        self._selected = {
            found.name: frozenset(
                _name(item, device) for item, device in published if found.selects(item.driver, device)
            )
            for found in devices.classes
            if found.name in asked and found.is_simple
        }
        # If classes overlap only in part, nobody knows for which of them a device will be allocated.
        self._countable = {
            name
            for name, own in self._selected.items()
            if not own & uncounted and all(other == own or not other & own for other in self._selected.values())
        }

    def misplaced(self, node: CheckedNode, claims: Iterable[ResourceClaim]) -> Iterable[str]:
        """Claims whose devices belong to another node. That is known only if all of them belong to one node."""
        for claim in claims:
            nodes = {self._node_of.get(device, "") for device in claim.allocated}
            if len(nodes) == 1 and "" not in nodes and not (node.exists and node.name in nodes):
                yield f"{node.name}: the devices of claim {claim.namespace}/{claim.name} are elsewhere"

    def countable(self, specs: Iterable[ClaimSpec]) -> Counter[str]:
        """Requested devices by class, from specs in which everything can be counted."""
        found = Counter[str]()
        for spec in specs:
            if spec.simple and all(request.device_class in self._countable for request in spec.requests):
                for request in spec.requests:
                    found[request.device_class] += request.count
        return found

    def overcommitted(self, node: CheckedNode, asked: Counter[str]) -> Iterable[str]:
        names = sorted(asked)
        for some in chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1)):
            count = sum(asked[name] for name in some)
            free = self._free(node, some)
            if count > free:
                yield f"{node.name}: {count} devices of {' and '.join(some)} are asked for, {free} are free"

    def _free(self, node: CheckedNode, classes: Sequence[str]) -> int:
        """Free devices that any of these classes selects. On a node that is coming up a pool counts once all of its slices exist."""
        selected = frozenset[DeviceName]().union(*(self._selected[name] for name in classes))
        if node.exists and (node.name in self._on_node or self._samples.is_up(node.name)):
            return len(self._on(node.name, selected) - self._taken)
        return min(self._expected(pool, instance_type, selected) for pool, instance_type in pools_and_types(node))

    def _expected(self, pool: str, instance_type: str, selected: frozenset[DeviceName]) -> int:
        """How many of these devices each node of that NodePool and type has; 0 where they differ."""
        names = self._samples.names(pool=pool, instance_type=instance_type)
        counts = {len(self._on(name, selected)) for name in names}
        return counts.pop() if len(counts) == 1 else 0

    def _on(self, node: str, selected: frozenset[DeviceName]) -> frozenset[DeviceName]:
        return selected & self._on_node.get(node, set())


def _name(item: ResourceSlice, device: Device) -> DeviceName:
    return (item.driver, item.pool, device.name)


def _complete(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    """The slices of each pool's newest generation, where that is complete (dynamic-resource-allocation, structured.GatherPools)."""
    generations: dict[tuple[str, str], Counter[int]] = {}
    for item in slices:
        generations.setdefault((item.driver, item.pool), Counter())[item.generation] += 1
    found = []
    for item in slices:
        counts = generations[item.driver, item.pool]
        if item.generation == max(counts) and counts[item.generation] >= item.slices:
            found.append(item)
    return found
