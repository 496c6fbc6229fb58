"""A node as the checker judges it: existing, on its way, or planned, with all of its pods and chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.model.buffers import Recreation
from reconciler.model.demand import Demand
from reconciler.model.machines import Machine
from reconciler.model.nodes import INITIALIZED_LABEL, NODEPOOL_LABEL
from reconciler.model.placement import Holding
from reconciler.model.pods import Pod, PodShape
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import Taint
from reconciler.placement.checker.labels import ABSENT, Values, stable_label


@dataclass(frozen=True, slots=True)
class Occupant:
    """A bound pod, or `count` chunks of a demand (pod None)."""

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
        """Whether they are pending pods that no node is made for. These are bound before any planned node comes up."""
        return self.demand is not None and self.demand.is_pending_pod and not self.demand.opens_nodes

    @property
    def keeps_minimum(self) -> bool:
        """Whether running pods may fill their room (Buffers API proposal, recreation KeepMinimum)."""
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


def is_initialized(machine: Machine) -> bool:
    """Whether the node is complete. A node that Karpenter did not make is, from the start."""
    node, claim = machine.node, machine.node_claim
    if node is None:
        return False
    managed = claim is not None or node.label(NODEPOOL_LABEL) is not None
    said = claim is not None and claim.condition("Initialized") == "True"
    return not managed or said or node.label(INITIALIZED_LABEL) == "true"


def occupants_of(demands: Mapping[ObjectRef, Demand], holdings: Iterable[Holding]) -> list[Occupant]:
    return [
        Occupant(demand.groups[item.group].shape, item.count, demand=demand)
        for item in holdings
        for demand in [demands[item.demand]]
    ]
