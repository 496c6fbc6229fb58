"""Resource claims (DRA) as countable resources: how many devices of a class are asked for, and how many are free on a node.

Counting is exact under three conditions. A class selects by driver and plain attributes. Its devices are allocated whole, and
each belongs to one node. Two requested classes share all of their devices or none. All other claims are not judged: their pods find no
place, since nobody could promise them one.
A new node is expected to have as many devices as each node of its instance type in its NodePool, since no catalog says so. Where those
differ, or none is up, the number is not known, and no node is made for claims. Karpenter by default ignores pods with resource claims
(option IgnoreDRARequests). kube-scheduler judges them once a node is up, so a node planned for more than it then has would be of no use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from reconciler.model.attachments import ClaimSpec, Device, DeviceName, Devices, ResourceClaim, ResourceSlice
from reconciler.model.demand import Demand
from reconciler.model.nodes import INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, Node, NodeClaim
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement
from reconciler.model.view import ClusterView
from reconciler.placement.arrays import DEVICES
from reconciler.placement.batches import NODE_NAME_FIELD
from reconciler.placement.constraints.volumes import Attached, Obstacle, pool_types_of
from reconciler.placement.nodes.machines import is_initialized, with_more
from reconciler.placement.offers.pool_offers import Observed, PoolType

_NONE = Resources()


def with_devices(attached: Attached) -> Attached:
    """The same problem with claims expressed as resources too."""
    view, demands = attached.problem.view, attached.problem.demands
    demands, made = _with_own_claims(demands, view.devices)
    judge = _Judge(view, demands, made)
    judged = [demand.with_shapes(lambda group: judge.shape(group.shape)) for demand in demands]
    found, observed = replace(attached.problem, demands=judged), attached.observed
    if judge.counted:
        seen = judge.observed(view, pool_types_of(found))
        coming_up = {node.name: seen.get(pool_type) for node, pool_type, is_up in _nodes_of(view) if not is_up}
        nodes = tuple(judge.equipped(node, coming_up.get(node.name)) for node in view.nodes)
        claims = with_more(view, lambda claim: _least(claim, seen))
        found = replace(found, view=replace(view, nodes=nodes, node_claims=claims))
        observed = {**observed, **{key: observed.get(key, _NONE) + devices for key, devices in seen.items()}}
    return Attached(found, observed, attached.assumptions)


def _nodes_of(view: ClusterView) -> Iterable[tuple[Node, PoolType, bool]]:
    """Each with its NodePool and instance type ("" for none), and whether it is up. Others may not report yet all that they will have."""
    for machine in view.machines:
        if (node := machine.node) is not None:
            pool_type = machine.node_pool, machine.label(INSTANCE_TYPE_LABEL) or ""
            yield node, pool_type, is_initialized(node, machine.node_claim)


def _least(claim: NodeClaim, observed: Observed) -> Resources:
    """The least of what any of its instance types is seen to have."""
    pool, named = claim.label(NODEPOOL_LABEL) or "", claim.label(INSTANCE_TYPE_LABEL)
    listed = [
        item.values for item in claim.requirements if item.key == INSTANCE_TYPE_LABEL and item.operator is Operator.IN
    ]
    names = [named] if named is not None else [name for values in listed[:1] for name in values]
    known = [observed[pool, name] for name in names if (pool, name) in observed]
    return (
        Resources.of((name, min(item.get(name) for item in known)) for name in known[0].names())
        if known
        else Resources()
    )


def _with_own_claims(
    demands: Sequence[Demand], devices: Devices
) -> tuple[Sequence[Demand], dict[tuple[str, str], str]]:
    """The demands, with claims made from templates listed by name; and those templates, by the claims' namespace and name.

    Where the claim is missing, or belongs to another pod, Kubernetes makes it from the template, so the template counts. For a
    claim that exists kube-scheduler does not look at the template.
    """
    made: dict[tuple[str, str], str] = {}
    owners = {(item.namespace, item.name): item.owner for item in devices.claims}

    def resolved(shape: PodShape) -> PodShape:
        if not shape.generated_claims:
            return shape
        claims, templates = dict.fromkeys(shape.resource_claims), list(shape.resource_claim_templates)
        for item in shape.generated_claims:
            if owners.get((shape.namespace, item.name)) == item.owner:
                claims[item.name] = None
                made[shape.namespace, item.name] = item.template
            else:
                templates.append(item.template)
        return replace(
            shape, resource_claims=tuple(claims), resource_claim_templates=tuple(templates), generated_claims=()
        )

    return [demand.with_shapes(lambda group: resolved(group.shape)) for demand in demands], made


class _Judge:
    """counted: the classes that were counted."""

    def __init__(self, view: ClusterView, demands: Sequence[Demand], made: Mapping[tuple[str, str], str]) -> None:
        devices = view.devices
        self._made = made
        self._classes = {item.name: item for item in devices.classes}
        self._claims = {(item.namespace, item.name): item for item in devices.claims}
        self._templates = {(item.namespace, item.name): item.spec for item in devices.templates}
        self._slices = list(_in_force(devices))
        self._taken = {device for claim in devices.claims for device in claim.allocated}
        self._node_of = {_name(item, device): item.node for item in self._slices for device in item.devices}
        self._uncountable = {
            _name(item, device)
            for item in self._slices
            for device in item.devices
            if not device.simple or not item.node
        }
        self._users: dict[tuple[str, str], int] = {}
        shapes = [(group.shape, group.count) for demand in demands for group in demand.groups]
        for shape, count in (*shapes, *((pod.shape, 1) for pod in view.pods if pod.node_name is not None)):
            for name in shape.resource_claims:
                self._users[shape.namespace, name] = self._users.get((shape.namespace, name), 0) + count
        self._publishing = frozenset(self._node_of.values())
        self._selected: dict[str, frozenset[DeviceName]] = {}
        self._all: dict[str, Mapping[str, int]] = {}
        """By class, how many devices each node has, and how many of them are free."""
        self._free: dict[str, Mapping[str, int]] = {}
        self._used = {
            request.device_class for shape, _ in shapes for spec in self._specs(shape) for request in spec.requests
        }
        self.counted: set[str] = set()

    def _specs(self, shape: PodShape) -> Iterable[ClaimSpec]:
        for name in shape.resource_claim_templates:
            if (shape.namespace, name) in self._templates:
                yield self._templates[shape.namespace, name]
        for name in shape.resource_claims:
            if (shape.namespace, name) in self._claims:
                yield self._claims[shape.namespace, name].spec

    def shape(self, shape: PodShape) -> PodShape:
        """The shape with its claims turned into resources. A claim that cannot be judged keeps its pod off every node."""
        if not shape.claims_devices:
            return shape
        amounts: dict[str, int] = {}
        terms, places = shape.attachment_terms, list(shape.attachment_places)
        unclaimed = replace(shape, resource_claims=(), resource_claim_templates=())
        try:
            for what, asked in list(self._wanted(shape)):
                if isinstance(asked, ResourceClaim):
                    node = self._node_with(what, asked)
                    terms = _joined(terms, node)
                    places.append((what, _joined((), node)))
                else:
                    self._count(what, asked, amounts)
        except Obstacle as obstacle:
            return replace(unclaimed, obstacle=str(obstacle))
        requests = shape.requests + Resources.of(amounts)
        return replace(unclaimed, requests=requests, attachment_terms=terms, attachment_places=tuple(places))

    def _wanted(self, shape: PodShape) -> Iterable[tuple[str, ClaimSpec | ResourceClaim]]:
        """Name in full, and the claim if its devices are allocated, else its spec. Raises `Obstacle` where a claim or a template does
        not exist, or nobody knows which of several pods gets its devices."""
        for name in shape.resource_claim_templates:
            what = f"ResourceClaimTemplate/{shape.namespace}/{name}"
            yield what, self._with_classes(what, self._templates.get((shape.namespace, name)))
        for name in shape.resource_claims:
            claim = self._claims.get((shape.namespace, name))
            what = f"ResourceClaim/{shape.namespace}/{name}"
            if claim is not None and claim.allocated:
                yield what, claim
                continue
            spec = self._with_classes(what, None if claim is None else claim.spec)
            if self._users[shape.namespace, name] > 1:
                raise Obstacle(f"{what} is shared by several pods: which devices they get is not judged")
            template = self._made.get((shape.namespace, name))
            # The template stands for the claims of all of its pods, so that their shapes stay equal.
            yield what if template is None else f"ResourceClaimTemplate/{shape.namespace}/{template}", spec

    def _with_classes(self, what: str, spec: ClaimSpec | None) -> ClaimSpec:
        if spec is None:
            raise Obstacle(f"{what} does not exist")
        for request in spec.requests if spec.simple else ():
            if request.device_class not in self._classes:
                raise Obstacle(f"{what}: there is no DeviceClass {request.device_class}")
        return spec

    def _node_with(self, what: str, claim: ResourceClaim) -> str:
        nodes = {self._node_of.get(device, "") for device in claim.allocated}
        if len(nodes) != 1 or "" in nodes:
            raise Obstacle(f"{what} has devices of no one node: where its pods may be is not judged")
        return nodes.pop()

    def _count(self, what: str, spec: ClaimSpec, amounts: dict[str, int]) -> None:
        if not spec.simple:
            raise Obstacle(f"{what} asks for more than a number of devices: it is not judged")
        found = {request: self._counted_as(request.device_class) for request in spec.requests}
        for request, name in found.items():
            self.counted.add(name)
            amounts[DEVICES + name] = amounts.get(DEVICES + name, 0) + request.count

    def _counted_as(self, name: str) -> str:
        """The name under which the class's devices are counted: the first among classes that select the same devices."""
        own = self._select(name)
        alike = name
        for other in sorted(self._used & self._classes.keys()):
            theirs = self._selected_by(other) if self._classes[other].is_simple else None
            if theirs == own:
                alike = min(alike, other)
            elif theirs and own & theirs:
                raise Obstacle(f"DeviceClasses {name} and {other} share some of their devices: they are not judged")
        return alike

    def _select(self, name: str) -> frozenset[DeviceName]:
        """The class's devices. Raises `Obstacle` where they cannot be counted."""
        if not self._classes[name].is_simple:
            raise Obstacle(f"DeviceClass {name} selects by more than driver and attributes: it is not judged")
        own = self._selected_by(name)
        if own & self._uncountable:
            raise Obstacle(
                f"DeviceClass {name} has devices that are shared, tainted or no node's own: it is not judged"
            )
        return own

    def _selected_by(self, name: str) -> frozenset[DeviceName]:
        """The devices of a class that selects by driver and attributes alone."""
        if name not in self._selected:
            names = [
                _name(item, device)
                for item in self._slices
                for device in item.devices
                if self._classes[name].selects(item.driver, device)
            ]
            self._selected[name] = frozenset(names)
            self._all[name] = Counter(self._node_of[device] for device in names)
            self._free[name] = Counter(self._node_of[device] for device in names if device not in self._taken)
        return self._selected[name]

    def equipped(self, node: Node, to_come: Resources | None) -> Node:
        """The node with its free devices as resources. to_come: the devices expected on a node that is still coming up."""
        free = Resources.of((DEVICES + name, self._free[name].get(node.name, 0)) for name in self.counted)
        if to_come and node.name not in self._publishing:
            free = to_come
        return replace(node, allocatable=node.allocatable + free)

    def observed(self, view: ClusterView, pool_types: Iterable[PoolType]) -> Observed:
        """Devices by NodePool and instance type, where all nodes that are up have the same number of each class, free or not."""
        seen: dict[PoolType, set[Resources]] = {}
        for node, pool_type, is_up in _nodes_of(view):
            if is_up:
                every = Resources.of((DEVICES + name, self._all[name].get(node.name, 0)) for name in self.counted)
                seen.setdefault(pool_type, set()).add(every)
        return {pool_type: next(iter(seen[pool_type])) for pool_type in pool_types if len(seen.get(pool_type, ())) == 1}


def _name(item: ResourceSlice, device: Device) -> DeviceName:
    return (item.driver, item.pool, device.name)


def _in_force(devices: Devices) -> Iterable[ResourceSlice]:
    """The slices of each pool's newest generation, where that is complete."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for item in devices.slices:
        pools.setdefault((item.driver, item.pool), []).append(item)
    for members in pools.values():
        newest = max(item.generation for item in members)
        present = [item for item in members if item.generation == newest]
        if len(present) >= present[0].slices:
            yield from present


def _joined(terms: tuple[NodeSelectorTerm, ...], node: str) -> tuple[NodeSelectorTerm, ...]:
    here = Requirement(NODE_NAME_FIELD, Operator.IN, (node,))
    return tuple(replace(term, fields=(*term.fields, here)) for term in terms or (NodeSelectorTerm(),))
