"""Rules on one node. Those of kube-scheduler are its plugins NodeUnschedulable, NodeAffinity, TaintToleration, NodePorts, NodeResourcesFit
and VolumeBinding. Pods with resource claims may be nowhere, since nobody looks at devices. Those on readiness and on nodes for one demand alone are headroom's own.

A label that is undecided must suit the pod with every possible value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from reconciler.model.attachments import NO_PROVISIONER, Storage, VolumeClaim
from reconciler.model.nodes import INITIALIZED_LABEL, REGISTERED_LABEL
from reconciler.model.pods import DaemonSet, HostPort, NodeSelectorTerm, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.requirements import Operator, Requirement, Taint
from reconciler.placement.checker.checked_nodes import (
    CheckedNode,
    IndexedProblem,
    Occupant,
    allocatable,
)
from reconciler.placement.checker.offerings import decided


def unschedulable_violations(checked: CheckedNode, keeping: Collection[str]) -> Iterable[str]:
    """Until it is initialized, a node that is not ready may still come up. keeping: names of nodes whose chunks wait for them."""
    machine = checked.machine
    if machine is None:
        return
    if machine.why_closed:
        yield f"{machine.name}: {machine.why_closed}"
    if machine.is_initialized and machine.node and not machine.node.ready and machine.name not in keeping:
        yield f"{machine.name}: is not ready"


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


def fit_violations(problem: IndexedProblem, node: CheckedNode) -> Iterable[str]:
    """Resources that are overcommitted on an existing or arriving node. Daemon pods that are still to come count too."""
    if node.machine is None:
        return
    pods = [item.pod for item in node.occupants if item.pod is not None]
    there = {(pod.namespace, pod.owner_name) for pod in pods if pod.is_daemon}
    expected = [
        item.shape.requests
        for item in problem.cluster.daemon_sets
        if (item.namespace, item.name) not in there and daemon_runs(node, item)
    ]
    room = allocatable(problem, node, node.machine) - Resources.total(expected)
    yield from (f"{node.name}: {words}" for words in overcommitted(loads(node), room))


def daemon_runs(node: CheckedNode, daemon: DaemonSet) -> bool:
    """Whether the daemon's pod runs on the node once that is up. An undecided label counts as not fitting."""
    known = {key: values for key, values in node.labels.items() if len(values) == 1}
    up = known | decided({REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"})
    shape = daemon.pod_shape
    return not untolerated(node.taints, shape) and accepts(replace(node, labels=up), shape)


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


class CheckedVolumes:
    """The cluster's storage, indexed: where pods can reach their volumes."""

    def __init__(self, storage: Storage) -> None:
        self._claims = {(item.namespace, item.name): item for item in storage.claims}
        self._volumes = {item.name: item for item in storage.volumes}
        self._classes = {item.name: item for item in storage.classes}
        # Of several default classes the last by name counts, since the view does not tell which is the newest.
        self._default = next((item for item in reversed(storage.classes) if item.default), None)

    def misplaced(self, node: CheckedNode, shape: PodShape) -> Iterable[str]:
        """Why one pod may not be on one node."""
        if shape.claims_devices:
            yield "its resource claims are not judged"
        for name in shape.volume_claims:
            claim, words = self._claims.get((shape.namespace, name)), f"claim {shape.namespace}/{name}"
            if claim is None:
                yield f"{words} does not exist"
            elif claim.volume:
                volume = self._volumes.get(claim.volume)
                if volume is None or not claim.bound or not _meets_any(node, volume.terms):
                    yield f"the volume of {words} cannot be had there"
            elif not self._can_be_made(node, claim):
                yield f"no volume for {words} can be had there"

    def _can_be_made(self, node: CheckedNode, claim: VolumeClaim) -> bool:
        """For a claim with WaitForFirstConsumer: whether a volume can be provisioned for the node."""
        found = self._default if claim.storage_class is None else self._classes.get(claim.storage_class)
        if found is None or not found.waits or found.provisioner == NO_PROVISIONER:
            return False
        # Until the volume exists, VolumeBinding allows pods of the claim on no other node than the selected one.
        selected = not claim.selected_node or (node.exists and node.name == claim.selected_node)
        return selected and _meets_any(node, found.topologies)


def _meets_any(node: CheckedNode, terms: Sequence[NodeSelectorTerm]) -> bool:
    return not terms or any(term_holds(node, term) for term in terms)
