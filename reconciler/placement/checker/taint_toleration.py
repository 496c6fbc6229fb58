"""Taints and tolerations (kube-scheduler's plugin TaintToleration, Filter)."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.machines import Machine
from reconciler.model.nodes import NOT_READY_TAINTS
from reconciler.model.pods import PodShape
from reconciler.model.requirements import Taint
from reconciler.placement.checker.checked_node import CheckedNode, is_initialized
from reconciler.placement.checker.indexed_problem import IndexedProblem

_TEMPORARY = ("node.kubernetes.io/not-ready", "karpenter.sh/unregistered", "readiness.k8s.io/")
"""Prefixes of taints that a node loses once it is up (Karpenter's pkg/scheduling/taints.go)."""


def taint_violations(node: CheckedNode, shape: PodShape) -> Iterable[str]:
    if untolerated(node.taints, shape):
        yield "a taint is not tolerated"


def own_taint_violations(taints: tuple[Taint, ...], node: CheckedNode) -> Iterable[str]:
    """Judges a planned node: chunks with a taint of their own are alone, on nodes with that taint. taints: beside its pool's."""
    for shape in node.shapes():
        if taints != (() if shape.own_taint is None else (shape.own_taint,)):
            yield "chunks are with others than those that the node is for"
        if untolerated(taints, shape):
            yield "a taint of its own is not tolerated"


def reserved_violations(node: CheckedNode) -> Iterable[str]:
    """Judges an existing node: chunks that need nodes of their own must be on one made for them."""
    for item in node.occupants:
        taint = item.shape.own_taint
        if taint is not None and item.demand is not None and taint not in node.taints:
            yield f"{node.name}: chunks are on a node that was not made for them alone"


def untolerated(taints: Iterable[Taint], shape: PodShape) -> list[Taint]:
    return [
        taint
        for taint in taints
        if taint.effect in {"NoSchedule", "NoExecute"}
        and not any(toleration.tolerates(taint) for toleration in shape.tolerations)
    ]


def lasting_taints(problem: IndexedProblem, machine: Machine) -> tuple[Taint, ...]:
    """The taints that the machine will have once it is up. At registration Karpenter copies those of its NodeClaim."""
    node, claim = machine.node, machine.node_claim
    if node is None:
        return claim.taints if claim else ()
    if is_initialized(machine):
        waited_for = node.name in problem.options.keeping
        return tuple(taint for taint in node.taints if not (waited_for and taint.key in NOT_READY_TAINTS))
    pool = problem.pools.get(machine.node_pool)
    startup = claim.startup_taints if claim else pool.template.startup_taints if pool else ()
    removed = {(taint.key, taint.effect) for taint in startup}
    lasting = [
        taint
        for taint in node.taints
        if (taint.key, taint.effect) not in removed and not taint.key.startswith(_TEMPORARY)
    ]
    promised = claim.taints if claim and machine.awaits_registration else ()
    return (*lasting, *(taint for taint in promised if taint not in lasting))
