"""What the checker judges: the problem as the rules need it, nodes with all of their pods and chunks, and who is on which node.

Occupants are indexed by equivalence class, by labels and by topology domain. Shapes of one equivalence class differ only in their requests,
so no topology rule distinguishes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.model.buffers import Recreation
from reconciler.model.demand import Demand
from reconciler.model.machines import Machine
from reconciler.model.nodes import HOSTNAME_LABEL, INITIALIZED_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL
from reconciler.model.placement import Holding
from reconciler.model.pods import Pod, PodAffinityTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef
from reconciler.model.requirements import LabelSelector, Operator, Requirement, Taint
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


UNDECIDED = "\0undecided"
"""Stands for the domain of a node that may still be in one of several."""

Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of namespaces."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An occupant, with numbers for what is compared often: its node, its shape, the shape's equivalence class, and its namespace
    with its labels."""

    occupant: Occupant
    node: int
    shape: int
    equivalence: int
    labelled: int


class Occupancy:
    """classes: the number of each equivalence class, by its shape without requests. labelled: the number of each namespace with
    labels. of_class, of_labelled: the occupants by these numbers.
    """

    def __init__(self, nodes: Sequence[CheckedNode]) -> None:
        self.nodes = nodes
        self.all: list[Placed] = []
        self.classes: dict[PodShape, int] = {}
        self.labelled: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._shapes: dict[PodShape, int] = {}
        self._domains: dict[str, list[str | None]] = {}
        self.of_class: dict[int, list[Placed]] = {}
        self.of_labelled: dict[int, list[Placed]] = {}
        known: dict[int, tuple[int, int, int]] = {}  # by identity, since comparing shapes is slow
        for number, node in enumerate(nodes):
            for occupant in node.occupants:
                if id(occupant.shape) not in known:
                    known[id(occupant.shape)] = self._numbers(occupant.shape)
                placed = Placed(occupant, number, *known[id(occupant.shape)])
                self.all.append(placed)
                self.of_class.setdefault(placed.equivalence, []).append(placed)
                self.of_labelled.setdefault(placed.labelled, []).append(placed)
        self._with_label: dict[tuple[str, str], list[int]] = {}
        for (_, labels), labelled in self.labelled.items():
            for label in labels:
                self._with_label.setdefault(label, []).append(labelled)
        self._sets = list(self.labelled)

    def _numbers(self, shape: PodShape) -> tuple[int, int, int]:
        plain = replace(shape, requests=Resources())
        return (
            self._shapes.setdefault(shape, len(self._shapes)),
            self.classes.setdefault(plain, len(self.classes)),
            self.labelled.setdefault((shape.namespace, shape.labels), len(self.labelled)),
        )

    def domains(self, key: str) -> Sequence[str | None]:
        """The domain of each node, by its number."""
        if key not in self._domains:
            self._domains[key] = [_domain(node, key) for node in self.nodes]
        return self._domains[key]

    def matched(self, selector: LabelSelector) -> list[tuple[int, str]]:
        """The numbers of label sets that a selector matches in any namespace, each with its namespace."""
        candidates = (self._with_label.get(label, []) for label in selector.match_labels)
        first = min(candidates, key=len, default=range(len(self._sets)))
        sets = ((number, *self._sets[number]) for number in first)
        return [(number, namespace) for number, namespace, labels in sets if selector.matches(dict(labels))]

    def selected(self, term: PodAffinityTerm, owner: PodShape, namespaces: Namespaces) -> frozenset[int]:
        """The numbers of label sets that an affinity term of this owner selects."""
        if term.selector is None:
            return frozenset()
        selector = with_keys(term.selector, owner, term.match_label_keys, Operator.IN)
        selector = with_keys(selector, owner, term.mismatch_label_keys, Operator.NOT_IN)
        found = self.matched(selector)
        return frozenset(number for number, name in found if _is_meant(term, owner.namespace, name, namespaces))


def _domain(node: CheckedNode, key: str) -> str | None:
    """The node's domain. Each node is taken for a host of its own, also where two carry one hostname."""
    if key == HOSTNAME_LABEL:
        return f"\0{node.name}"
    values = node.values(key)
    return next(iter(values)) if len(values) == 1 else UNDECIDED


def _is_meant(term: PodAffinityTerm, own: str, other: str, namespaces: Namespaces) -> bool:
    if term.namespace_selector is None:
        return other in (term.namespaces or (own,))
    chosen = term.namespace_selector == LabelSelector() or term.namespace_selector.matches(namespaces.get(other, {}))
    return chosen or other in term.namespaces


def with_keys(selector: LabelSelector, shape: PodShape, keys: Iterable[str], operator: Operator) -> LabelSelector:
    """The selector with matchLabelKeys or mismatchLabelKeys (KEP-3243, KEP-3633): it requires or excludes the owner's values."""
    labels = dict(shape.labels)
    extra = tuple(Requirement(key, operator, (labels[key],)) for key in keys if key in labels)
    return LabelSelector(selector.match_labels, (*selector.expressions, *extra))
