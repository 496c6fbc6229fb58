"""Rules on one node. Those of kube-scheduler are its plugins NodeUnschedulable, NodeAffinity, TaintToleration, NodePorts and
NodeResourcesFit. Those on readiness and on nodes for one demand alone are headroom's own.

A label that is undecided must suit the pod with every possible value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from reconciler.model.nodes import DISRUPTED_TAINT, INITIALIZED_LABEL, REGISTERED_LABEL
from reconciler.model.pods import HostPort, NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement, Taint, Toleration
from reconciler.placement.checker.checked_nodes import (
    ArrivingNodes,
    CheckedNode,
    IndexedProblem,
    Occupant,
)
from reconciler.placement.checker.offerings import decided

_DAEMONS_TOLERATE = tuple(
    Toleration(f"node.kubernetes.io/{name}", "Exists")
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
"""Added to each daemon pod (kubernetes' pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations)."""


def unschedulable_violations(checked: CheckedNode, keeping: Collection[str]) -> Iterable[str]:
    """Until it is initialized, a node that is not ready may still come up. keeping: names of nodes whose chunks wait for them.

    Karpenter taints a node that it is about to remove.
    """
    if checked.machine is None:
        return
    node, claim = checked.machine.node, checked.machine.node_claim
    if claim is not None and claim.deleting:
        yield f"{claim.name}: is being deleted"
    if node is not None:
        disrupted = any(taint.key == DISRUPTED_TAINT for taint in node.taints)
        not_ready = checked.machine.is_initialized and not node.ready and node.name not in keeping
        if node.deleting or node.unschedulable or disrupted or not_ready:
            yield f"{node.name}: takes no more pods"


def readiness_violations(node: CheckedNode) -> Iterable[str]:
    arriving = node.machine is not None and not node.machine.is_initialized
    if arriving and any(item.demand is not None and item.demand.only_ready for item in node.occupants):
        yield f"{node.name}: is not up yet, and holds chunks that must fit now"


def selection_violations(node: CheckedNode, shape: PodShape) -> Iterable[str]:
    """Judges what a shape asks of a node's labels, and what the node's taints ask of the shape."""
    if not accepts(node, shape):
        yield f"labels are not those that {shape.namespace} asks for"
    if untolerated(node.taints, shape):
        yield "a taint is not tolerated"


def accepts(node: CheckedNode, shape: PodShape) -> bool:
    if any(node.values(key) != {value} for key, value in shape.node_selector):
        return False
    return not shape.required_node_terms or any(term_holds(node, term) for term in shape.required_node_terms)


def term_holds(node: CheckedNode, term: NodeSelectorTerm) -> bool:
    """Whether a node meets a term. An empty term matches no node (component-helpers, nodeaffinity.nodeSelectorTerm.match)."""
    if not term.expressions and not term.fields:
        return False
    name = node.name if node.exists else None
    return all(surely_holds(node, item) for item in term.expressions) and all(item.holds(name) for item in term.fields)


def surely_holds(node: CheckedNode, requirement: Requirement) -> bool:
    return all(requirement.holds(value) for value in node.values(requirement.key))


def may_accept(node: CheckedNode, shape: PodShape) -> bool:
    """Whether selector and affinity accept the node with some of the values that its labels may get."""

    def may_hold(item: Requirement) -> bool:
        return any(item.holds(value) for value in node.values(item.key))

    selector = (Requirement(key, Operator.IN, (value,)) for key, value in shape.node_selector)
    terms = [term.expressions for term in shape.required_node_terms if term.expressions or term.fields]
    return all(map(may_hold, selector)) and (
        not shape.required_node_terms or any(all(map(may_hold, term)) for term in terms)
    )


def own_taint_violations(taints: tuple[Taint, ...], node: CheckedNode) -> Iterable[str]:
    """Judges a planned node: chunks with a taint of their own are alone, on nodes with that taint. taints: beside its pool's."""
    for shape in node.shapes():
        if taints != (() if shape.own_taint is None else (shape.own_taint,)):
            yield "chunks are with others than those that the node is for"
        if untolerated(taints, shape):
            yield "a taint of its own is not tolerated"


def reserved_violations(node: CheckedNode) -> Iterable[str]:
    """Judges an existing node: chunks that need nodes of their own must be on one made for them."""
    if any(shape.own_taint is not None and shape.own_taint not in node.taints for shape in node.shapes()):
        yield f"{node.name}: chunks are on a node that was not made for them alone"


def untolerated(taints: Iterable[Taint], shape: PodShape) -> list[Taint]:
    return [
        taint
        for taint in taints
        if taint.effect in {"NoSchedule", "NoExecute"}
        and not any(toleration.tolerates(taint) for toleration in shape.tolerations)
    ]


def port_violations(node: CheckedNode) -> Iterable[str]:
    clashes = clashing_ports(node.occupants)
    if clashes:
        yield f"{node.name}: host ports {sorted(set(clashes))} clash"


def clashing_ports(occupants: Sequence[Occupant]) -> list[int]:
    """Host ports that both a chunk and another pod of the node want."""
    asking = [item for item in occupants if item.shape.host_ports]
    clashes = [port.port for item in asking if item.count > 1 for port in item.shape.host_ports]
    for one, other in combinations(asking, 2):
        if one.is_chunk or other.is_chunk:
            taken = other.shape.host_ports
            clashes += [port.port for port in one.shape.host_ports if any(_clash(port, wanted) for wanted in taken)]
    return clashes


def _clash(port: HostPort, other: HostPort) -> bool:
    """The rule of addresses is HostPortInfo.CheckConflict in kube-scheduler's framework."""
    everywhere = {port.address, other.address} & {"", "0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    same = (port.port, port.protocol) == (other.port, other.protocol)
    return same and (bool(everywhere) or port.address == other.address)


def fit_violations(problem: IndexedProblem, arriving: ArrivingNodes, node: CheckedNode) -> Iterable[str]:
    """Resources that are overcommitted on an existing or arriving node. Daemon pods that are still to come count too."""
    if node.machine is None:
        return
    pods = [item.pod for item in node.occupants if item.pod is not None]
    there = {(pod.namespace, pod.owner_name) for pod in pods if pod.is_daemon}
    expected = [
        item.shape.requests
        for item in problem.cluster.daemon_sets
        if (item.namespace, item.name) not in there and daemon_runs(node, item.shape)
    ]
    room = arriving.allocatable(node, node.machine) - Resources.total(expected)
    yield from (f"{node.name}: {words}" for words in overcommitted(loads(node), room))


def daemon_runs(node: CheckedNode, shape: PodShape) -> bool:
    """Whether the daemon's pod runs on the node once that is up. An undecided label counts as not fitting."""
    known = {key: values for key, values in node.labels.items() if len(values) == 1}
    up = known | decided({REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"})
    tolerant = replace(shape, tolerations=(*shape.tolerations, *_DAEMONS_TOLERATE))
    return not untolerated(node.taints, tolerant) and accepts(replace(node, labels=up), shape)


def loads(node: CheckedNode) -> Mapping[str, tuple[int, int]]:
    """By resource that a chunk requests, how much is used on the node without chunks, and with them.

    KeepMinimum chunks and running pods share room: the larger sum counts.
    """
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
    used = daemons + (running | minimum) + empty
    return {name: (before[name], used[name]) for name in sorted(asked)}


def overcommitted(load: Mapping[str, tuple[int, int]], room: Resources) -> Iterable[str]:
    """Resources of which more is used than there is room. What was too much before the chunks came is not reported."""
    for resource, (before, used) in load.items():
        if used > max(room.get(resource), before):
            yield f"{resource} is overcommitted ({used} of {room.get(resource)})"
