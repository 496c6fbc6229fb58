"""What the checker judges: the problem as the rules need it, and nodes with all of their pods and chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.model.buffers import Recreation
from reconciler.model.demand import Demand
from reconciler.model.machines import Machine
from reconciler.model.nodes import INITIALIZED_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL
from reconciler.model.placement import Holding
from reconciler.model.pods import Pod, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Taint
from reconciler.placement.checker.offerings import ABSENT, Values, stable_label, valid_overlays
from reconciler.placement.problem import Problem


class IndexedProblem:
    """The problem with its indices. overlays: those in force, the heaviest first."""

    def __init__(self, problem: Problem) -> None:
        self.cluster, self.options = problem.view, problem.options
        self.pools = {pool.name: pool for pool in problem.node_pools}
        self.instance_types = {instance_type.name: instance_type for instance_type in problem.instance_types}
        self.demands = {demand.ref: demand for demand in problem.demands}
        self.overlays = valid_overlays(problem.overlays, self.pools.values(), self.instance_types.values())

    def asked(self) -> list[tuple[PodShape, int]]:
        """The shapes of all demands, each with its number of chunks."""
        return [(group.shape, group.count) for demand in self.demands.values() for group in demand.groups]


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

    def pools_and_types(self) -> Iterable[tuple[str, str]]:
        """The pairs of NodePool and instance type that the node may have, "" for none."""
        pools, types = self.values(NODEPOOL_LABEL), self.values(INSTANCE_TYPE_LABEL)
        return ((pool or "", instance_type or "") for pool in pools for instance_type in types)

    def hold(self, demands: Mapping[ObjectRef, Demand], holdings: Iterable[Holding]) -> None:
        """Adds chunks to the node."""
        for item in holdings:
            demand = demands[item.demand]
            self.occupants.append(Occupant(demand.groups[item.group].shape, item.count, demand=demand))


def is_initialized(machine: Machine) -> bool:
    """Whether the node is complete. A node that Karpenter did not make is, from the start."""
    node, claim = machine.node, machine.node_claim
    if node is None:
        return False
    managed = claim is not None or node.label(NODEPOOL_LABEL) is not None
    said = claim is not None and claim.condition("Initialized") == "True"
    return not managed or said or node.label(INITIALIZED_LABEL) == "true"


class SampleNodes:
    """Nodes that are up. From them the checker derives how many devices new nodes will have."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self.up: set[str] = set()
        self._names: dict[tuple[str, str], list[str]] = {}
        for machine in machines:
            if machine.node is not None and is_initialized(machine):
                self.up.add(machine.node.name)
                key = (machine.node_pool, machine.label(INSTANCE_TYPE_LABEL) or "")
                self._names.setdefault(key, []).append(machine.node.name)

    def names(self, pool: str, instance_type: str) -> Sequence[str]:
        """The nodes of that NodePool and type."""
        return self._names.get((pool, instance_type), ())
