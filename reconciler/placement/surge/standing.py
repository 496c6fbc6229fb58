"""The nodes as they will stand once a placement is carried out, and the pods that run on them, for kube-scheduler's model.

A node that is still to come is taken for the cheapest that it may become, since providers launch that if they have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from reconciler.model.launch_options import LaunchOptions
from reconciler.model.machines import Machine
from reconciler.model.nodes import (
    CAPACITY_TYPE_LABEL,
    HELD_TAINT,
    HOSTNAME_LABEL,
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    REGISTERED_LABEL,
    ZONE_LABEL,
    Node,
    NodeClaim,
    NodePool,
)
from reconciler.model.placement import Holding, Placement
from reconciler.model.pods import Pod
from reconciler.model.provisioning_requests import reserved_taints
from reconciler.model.requirements import Operator, Requirement, listed_values, single_valued
from reconciler.placement.constraints.node_rules import tolerated
from reconciler.placement.problem import Problem


@dataclass(frozen=True, slots=True)
class RehearsedNode:
    """holdings: the chunks that have room there, and the pending pods that will be bound there."""

    node: Node
    holdings: tuple[Holding, ...]
    is_up: bool


def standing_nodes(problem: Problem, placement: Placement, names: Sequence[str]) -> list[RehearsedNode]:
    """Nodes on their way out are left out. names: of the planned nodes. What holds chunks has, or will have, the taint of held nodes."""
    keeping = {demand.ref for demand in problem.demands if demand.holds_nodes and not demand.is_pending_pod}
    held = {(item.node is not None, item.node or item.node_claim or ""): item.holdings for item in placement.occupied}
    types = {item.name: item for item in problem.instance_types}
    options = lru_cache(maxsize=None)(
        lambda names: LaunchOptions(types[name] for name in names or types if name in types)
    )
    pools = {pool.name: pool for pool in problem.node_pools}
    every = []
    for machine in problem.view.machines:
        claim = machine.node_claim
        beside = held.get((False, claim.name), ()) if claim else ()
        every.append((machine, (*held.get((True, machine.name), ()), *beside)))
    for name, planned in zip(names, placement.planned, strict=True):
        template = pools[planned.node_pool].template
        labels = {**dict(template.labels), **dict(planned.labels), NODEPOOL_LABEL: planned.node_pool}
        taints = (*template.taints, *planned.taints)
        claim = NodeClaim(name, tuple(labels.items()), (), planned.requirements, planned.requests, taints)
        every.append((Machine(None, claim), planned.holdings))
    found = []
    for machine, holdings in every:
        if not machine.why_closed:
            node = _existing(machine, pools) or _arriving(machine, options)
            is_karpenters = machine.node_claim is not None or node.label(NODEPOOL_LABEL) is not None
            is_held = is_karpenters and any(holding.demand in keeping for holding in holdings)
            others = tuple(taint for taint in node.taints if taint != HELD_TAINT)
            taints = (*others, HELD_TAINT) if is_held and not reserved_taints(others) else others
            found.append(RehearsedNode(replace(node, taints=taints), holdings, machine.is_initialized))
    return found


def running_pods(problem: Problem, nodes: Iterable[RehearsedNode]) -> list[Pod]:
    """Pods that run, pending pods where they are placed, and daemon pods of nodes that are not up yet."""
    shapes = {demand.ref: demand for demand in problem.demands if demand.is_pending_pod}
    daemons = [(item.namespace, item.name, item.pod_shape) for item in problem.view.daemon_sets]
    there = {(pod.namespace, pod.owner_name, pod.node_name) for pod in problem.view.pods if pod.is_daemon}
    pods = list(problem.view.pods)
    for item in nodes:
        name = item.node.name
        for holding in item.holdings:
            if holding.demand in shapes:
                shape = shapes[holding.demand].groups[holding.group].shape
                pods += [Pod(holding.demand.namespace, holding.demand.name, shape, name)] * holding.count
        for namespace, owner, shape in () if item.is_up else daemons:
            runs = shape.selects(dict(item.node.labels), name) and tolerated(item.node.taints, shape.tolerations)
            if runs and (namespace, owner, name) not in there:
                pods.append(Pod(namespace, owner, shape, name, owner_kind="DaemonSet"))
    return pods


def _existing(machine: Machine, pools: Mapping[str, NodePool]) -> Node | None:
    """As if it were ready: chunks wait for nodes that are not for a moment."""
    if machine.node is None:
        return None
    return replace(
        machine.node,
        ready=True,
        taints=machine.lasting_taints(pools),
        labels=tuple(sorted(machine.labels.items())),
        allocatable=machine.allocatable,
    )


def _arriving(machine: Machine, options: Callable[[tuple[str, ...]], LaunchOptions]) -> Node:
    """As the cheapest offering that meets its NodeClaim's requirements and labels. Overlays may add room: there is at least what it requests.

    options: of types by name, of all without any."""
    claim = machine.node_claim
    assert claim is not None
    up = {HOSTNAME_LABEL: claim.name, REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}
    listed, own = listed_values(claim.requirements), single_valued(claim.requirements) | dict(claim.labels) | up
    names = (own[INSTANCE_TYPE_LABEL],) if INSTANCE_TYPE_LABEL in own else listed.get(INSTANCE_TYPE_LABEL, ())
    fixed = (Requirement(key, Operator.IN, (value,)) for key, value in own.items())
    places = [item for item in (*claim.requirements, *fixed) if item.key in {ZONE_LABEL, CAPACITY_TYPE_LABEL}]
    ways = (way for way in options(names).admitted(places, own) if way.offering.available)
    room, labels = claim.requests, own
    if (way := next(ways, None)) is not None:
        room, labels = way.instance_type.allocatable.at_least(claim.requests), {**way.labels, **own}
    return Node(claim.name, claim.allocatable or room, tuple(sorted(labels.items())), taints=claim.taints)
