"""Room for the requests of pods (kube-scheduler's plugin NodeResourcesFit, fitsRequest)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from reconciler.model.machines import Machine
from reconciler.model.nodes import INITIALIZED_LABEL, REGISTERED_LABEL
from reconciler.model.pods import PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Toleration
from reconciler.placement.checker.arriving_nodes import ArrivingNodes
from reconciler.placement.checker.checked_node import CheckedNode, is_initialized
from reconciler.placement.checker.indexed_problem import IndexedProblem
from reconciler.placement.checker.labels import decided
from reconciler.placement.checker.node_affinity import accepts
from reconciler.placement.checker.taint_toleration import untolerated

_DAEMONS_TOLERATE = tuple(
    Toleration(f"node.kubernetes.io/{name}", "Exists")
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
"""Added to each daemon pod (kubernetes' pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations)."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much of one resource is used on a node. before: without chunks. used: with them."""

    resource: str
    before: int
    used: int


def fit_violations(problem: IndexedProblem, arriving: ArrivingNodes, node: CheckedNode) -> Iterable[str]:
    """Resources that are overcommitted on an existing or arriving node. Daemon pods that are still to come count too."""
    if node.machine is None:
        return
    pods = [item.pod for item in node.occupants if item.pod is not None]
    there = {(pod.namespace, pod.owner_name) for pod in pods if pod.is_daemon}
    expected = [
        item.shape
        for item in problem.cluster.daemon_sets
        if (item.namespace, item.name) not in there and daemon_runs(node, item.shape)
    ]
    room = _allocatable(arriving, node, node.machine) - Resources.total(shape.requests for shape in expected)
    yield from (f"{node.name}: {words}" for words in overcommitted(loads(node), room))


def _allocatable(arriving: ArrivingNodes, checked: CheckedNode, machine: Machine) -> Resources:
    """A machine's allocatable. A node that is coming up may lack resources that its NodeClaim has, as of device plugins."""
    node, claim = machine.node, machine.node_claim
    if claim is None or is_initialized(machine):
        return node.allocatable if node else Resources()
    if node is None:
        return claim.allocatable or arriving.least_allocatable(checked, claim)
    return Resources.of(dict(claim.allocatable.amounts) | dict(node.allocatable.amounts))


def daemon_runs(node: CheckedNode, shape: PodShape) -> bool:
    """Whether the daemon's pod runs on the node once that is up. An undecided label counts as not fitting."""
    known = {key: values for key, values in node.labels.items() if len(values) == 1}
    up = known | decided({REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"})
    tolerant = replace(shape, tolerations=(*shape.tolerations, *_DAEMONS_TOLERATE))
    return not untolerated(node.taints, tolerant) and accepts(replace(node, labels=up), shape)


def loads(node: CheckedNode) -> list[Load]:
    """The load of each resource that a chunk requests. KeepMinimum chunks and running pods share room: the larger sum counts."""
    daemons, running, minimum, empty = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    before = Counter[str]()
    asked: set[str] = set()
    for item in node.occupants:
        amounts = {name: amount * item.count for name, amount in item.shape.requests.amounts}
        if item.pod is not None:
            before.update(amounts)
            (daemons if item.pod.is_daemon else running).update(amounts)
        else:
            (running if item.is_pending else minimum if item.keeps_minimum else empty).update(amounts)
            asked |= amounts.keys()
    return [
        Load(name, before[name], daemons[name] + max(running[name], minimum[name]) + empty[name])
        for name in sorted(asked)
    ]


def overcommitted(found: Iterable[Load], room: Resources) -> Iterable[str]:
    """Resources of which more is used than there is room. What was too much before the chunks came is not reported."""
    for load in found:
        there = room.get(load.resource)
        if load.used > max(there, load.before):
            yield f"{load.resource} is overcommitted ({load.used} of {there})"
