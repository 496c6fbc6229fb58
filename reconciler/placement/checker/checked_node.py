"""A node as the checker judges it: one that exists, one on its way, or one that is planned, with all who are on it."""

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
        """Pending pods for which no node is made: they are bound before any planned node comes."""
        return self.demand is not None and self.demand.is_pending_pod and not self.demand.opens_nodes

    @property
    def keeps_minimum(self) -> bool:
        """Chunks whose room the pods that run may fill (Buffers API proposal, recreation KeepMinimum)."""
        return self.demand is not None and self.demand.recreation is Recreation.KEEP_MINIMUM

    @property
    def is_leaving(self) -> bool:
        return self.pod is not None and self.pod.deleting


@dataclass(slots=True)
class CheckedNode:
    """machine: what it is in the cluster, None when it is planned."""

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
        """As written; on a node that is still to be made the older spellings are read as the stable ones."""
        if key in self.labels or self.exists:
            return self.labels.get(key, ABSENT)
        return self.labels.get(stable_label(key), ABSENT)

    def possible(self, key: str) -> list[str]:
        """Values that the label may come to have, sorted."""
        return sorted(value for value in self.values(key) if value is not None)

    def shapes(self) -> Iterable[PodShape]:
        """Of the chunks on it, each object once."""
        return {id(item.shape): item.shape for item in self.occupants if item.is_chunk}.values()


def is_initialized(machine: Machine) -> bool:
    """Whether the node has all that it will have. A node that Karpenter did not make has it from the start."""
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
