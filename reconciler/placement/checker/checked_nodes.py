"""What the checker judges: the problem as the rules need it, and nodes with all of their pods and chunks.

Nodes of the cluster are taken as they will be once they are up: NodeClaims without a node, and nodes that are not initialized yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.model.buffers import Recreation
from reconciler.model.demand import Demand
from reconciler.model.machines import Machine
from reconciler.model.nodes import (
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    NOT_READY_TAINTS,
    STABLE_LABELS,
    InstanceType,
    NodeClaim,
    stable_label,
)
from reconciler.model.placement import Holding
from reconciler.model.pods import Pod, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Taint, listed_values
from reconciler.placement.checker.offerings import (
    ABSENT,
    CheckedCatalog,
    Values,
    decided,
    in_order,
    labels_for_overlays,
    overlaid_capacity,
    settled,
    united,
)
from reconciler.placement.problem import Problem


class IndexedProblem:
    """The problem with its indices. overlays: the heaviest first."""

    def __init__(self, problem: Problem) -> None:
        self.cluster, self.options = problem.view, problem.options
        self.pools = {pool.name: pool for pool in problem.node_pools}
        self.instance_types = {instance_type.name: instance_type for instance_type in problem.instance_types}
        self.demands = {demand.ref: demand for demand in problem.demands}
        self.overlays = in_order(problem.overlays)
        self.catalog = CheckedCatalog(problem.instance_types)
        self.arriving: dict[tuple[object, ...], Mapping[str, Values]] = {}
        """Labels of the nodes that NodeClaims may become. NodeClaims that ask for the same are judged once."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A bound pod, or `count` chunks of a demand (pod None).

    opens_none: whether they are pending pods that no node is made for. These are bound before any planned node comes up.
    keeps_minimum: whether running pods may fill their room (Buffers API proposal, recreation KeepMinimum).
    """

    shape: PodShape
    count: int = 1
    pod: Pod | None = None
    demand: Demand | None = None

    @property
    def is_chunk(self) -> bool:
        return self.demand is not None

    @property
    def is_pending(self) -> bool:
        return self.demand is not None and self.demand.is_pending_pod

    @property
    def opens_none(self) -> bool:
        return self.demand is not None and self.demand.is_pending_pod and not self.demand.opens_nodes

    @property
    def keeps_minimum(self) -> bool:
        return self.demand is not None and self.demand.recreation is Recreation.KEEP_MINIMUM

    @property
    def is_leaving(self) -> bool:
        return self.pod is not None and self.pod.deleting


@dataclass(slots=True)
class CheckedNode:
    """A node with its occupants. machine: what it is in the cluster, None for a planned node."""

    name: str
    labels: Mapping[str, Values]
    taints: tuple[Taint, ...] = ()
    machine: Machine | None = None
    occupants: list[Occupant] = field(default_factory=list)

    @property
    def exists(self) -> bool:
        return self.machine is not None and self.machine.node is not None

    @property
    def is_planned(self) -> bool:
        return self.machine is None

    def values(self, key: str) -> Values:
        """The values of a label. On a planned node the older spellings of keys are read as the stable ones."""
        if key in self.labels or self.exists:
            return self.labels.get(key, ABSENT)
        return self.labels.get(stable_label(key), ABSENT)

    def possible(self, key: str) -> list[str]:
        """The values that the label may get, sorted."""
        return sorted(value for value in self.values(key) if value is not None)

    def shapes(self) -> Iterable[PodShape]:
        """The shapes of its chunks, each object once."""
        return {id(item.shape): item.shape for item in self.occupants if item.is_chunk}.values()

    def hold(self, demands: Mapping[ObjectRef, Demand], holdings: Iterable[Holding]) -> None:
        """Adds chunks to the node."""
        for item in holdings:
            demand = demands[item.demand]
            self.occupants.append(Occupant(demand.groups[item.group].shape, item.count, demand=demand))


def nodes_there(problem: IndexedProblem) -> list[CheckedNode]:
    """Existing nodes and arriving NodeClaims, with the pods bound to them."""
    found: dict[str | None, CheckedNode] = {}
    coming = []
    for machine in problem.cluster.machines:
        if machine.node is not None:
            labels = _labels(problem, machine)
            found[machine.name] = CheckedNode(machine.name, labels, _lasting_taints(problem, machine), machine)
        elif machine.node_claim is not None:
            coming.append(_arriving(problem, machine, machine.node_claim))
    for pod in problem.cluster.pods:
        if pod.node_name in found:
            found[pod.node_name].occupants.append(Occupant(pod.shape, pod=pod))
    return [*found.values(), *coming]


def _labels(problem: IndexedProblem, machine: Machine) -> dict[str, Values]:
    """A node's labels. Until it is registered, they include those that it will get."""
    labels, claim = decided(machine.labels), machine.node_claim
    if claim is None or not machine.awaits_registration:
        return labels
    labels = {**_arriving(problem, machine, claim).labels, **labels}
    older = {key: labels[stable] for key, stable in STABLE_LABELS.items() if stable in labels}
    return older | labels


def _lasting_taints(problem: IndexedProblem, machine: Machine) -> tuple[Taint, ...]:
    waited_for = machine.is_initialized and machine.name in problem.options.keeping
    taints = machine.lasting_taints(problem.pools)
    return tuple(taint for taint in taints if not (waited_for and taint.key in NOT_READY_TAINTS))


def _arriving(problem: IndexedProblem, machine: Machine, claim: NodeClaim) -> CheckedNode:
    """The NodeClaim as a node, whose open labels are undecided."""
    key = (claim.labels, claim.requirements)
    if key not in problem.arriving:
        own = settled(*key)
        listed = listed_values(claim.requirements)
        asked = {name: frozenset[str | None](values) for name, values in listed.items()}
        ways = problem.catalog.ways(*key) if claim.label(NODEPOOL_LABEL) in problem.pools else ()
        problem.arriving[key] = asked | united({**way.labels, **own} for way in ways) | decided(own)
    return CheckedNode(claim.name, problem.arriving[key], claim.taints, machine)


def allocatable(problem: IndexedProblem, checked: CheckedNode, machine: Machine) -> Resources:
    """A machine's allocatable; of a NodeClaim that was not launched yet, the least of each resource among all that it may become."""
    claim = machine.node_claim
    if machine.node is not None or claim is None or claim.allocatable:
        return machine.allocatable
    named = checked.possible(INSTANCE_TYPE_LABEL)
    listed = next((item.values for item in claim.requirements if item.key == INSTANCE_TYPE_LABEL), ())
    names = named if len(named) == 1 else listed
    types = [problem.instance_types[name] for name in names if name in problem.instance_types]
    rooms = [each.allocatable + added for each in types for added in _added(problem, claim, each)]
    return Resources.least(rooms) if rooms else claim.requests


def _added(problem: IndexedProblem, claim: NodeClaim, instance_type: InstanceType) -> list[Resources]:
    """What overlays add to the type, for each way in which it may be bought."""
    pool = problem.pools.get(claim.label(NODEPOOL_LABEL) or "")
    if pool is None or not problem.overlays:
        return [Resources()]
    asked = (*claim.labels, (INSTANCE_TYPE_LABEL, instance_type.name)), claim.requirements
    # Types that it names count even if they cannot be bought now, since it may already be launched.
    ways = [*problem.catalog.ways(*asked)] or [*problem.catalog.ways(*asked, in_stock=False)]
    labels = [labels_for_overlays(pool, way.labels) for way in ways]
    return [overlaid_capacity(problem.overlays, each) for each in labels] or [Resources()]
