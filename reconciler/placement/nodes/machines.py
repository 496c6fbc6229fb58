"""What placing reads off the cluster's nodes and NodeClaims.

What a NodeClaim will become, which taints a node keeps, which pods wait for a node that kube-scheduler has chosen for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from reconciler.model.nodes import (
    INITIALIZED_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    REGISTERED_LABEL,
    Node,
    NodeClaim,
)
from reconciler.model.pods import Pod
from reconciler.model.view import ClusterView
from reconciler.placement.arrays import Amounts, ResourceColumns
from reconciler.placement.constraints.node_rules import tolerated
from reconciler.placement.offers.pool_offers import PoolOffers
from reconciler.placement.requirements import STABLE_KEYS, Cell, Mask, Requirements


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is certain about a node that is on its way.

    room: one amount for each resource column, less what daemon pods take.
    labels: by key; all values that the node may get where that is not decided.
    unavailable: why nothing may be placed there, "" when it may.
    """

    room: Amounts
    labels: Mapping[str, Cell]
    unavailable: str = ""


def arrival_of(claim: NodeClaim, offers: Mapping[str, PoolOffers], columns: ResourceColumns) -> Arrival:
    """Its room is that of the smallest instance type it may still become.

    Where no such type is known, the room is what the NodeClaim requests: any provider must launch at least that.
    """
    pool = offers.get(claim.label(NODEPOOL_LABEL) or "")
    settled = Requirements.labels(claim.labels)
    asked = settled.both(Requirements.of(claim.requirements).without(frozenset(key for key, _ in settled.entries)))
    promised = columns.vector(claim.allocatable) if claim.allocatable else None
    types = None if pool is None else _types(pool, asked)
    if pool is None or types is None or not types.any():
        room = columns.vector(claim.requests) if promised is None else promised
        unknown = not claim.requests and promised is None
        return Arrival(room, _labels(asked, claim), "may become no instance type that is known" if unknown else "")
    load = pool.daemon_load[types].max(axis=0)
    known = asked.only(pool.offerings.table.keys)
    room = _least_room(pool, types, known) if promised is None else promised - load
    # Headroom backs off from what ran out, but Karpenter may still launch it for this NodeClaim.
    others = [labels for labels in pool.offerings.others_may_buy if known.match(labels)]
    labels = _row_labels(pool, pool.offerings.table.matching(known), others) | _labels(asked, claim)
    # The node will also have the older spellings of these labels.
    labels |= {key: labels[stable] for key, stable in STABLE_KEYS.items() if stable in labels and key not in labels}
    return Arrival(np.asarray(room, dtype=np.int64), labels)


def _least_room(pool: PoolOffers, types: Mask, known: Requirements) -> Amounts:
    """Of a type that is not sold where the node will be, nobody knows whether an overlay reaches it there."""
    room = pool.room
    if pool.overlaid:
        sold = pool.offerings.types_in(pool.rows & pool.offerings.table.matching(known))
        room = room.copy()
        for index, amounts in pool.overlaid.items():
            if not sold[index]:
                room[index] -= amounts
    return np.asarray(room[types].min(axis=0), dtype=np.int64)


def _types(pool: PoolOffers, asked: Requirements) -> Mask:
    """By instance type, whether the NodeClaim may become it.

    Types that it names count even if they cannot be bought now, since it may already have been launched.
    """
    named = asked.get(INSTANCE_TYPE_LABEL)
    if named is not None:
        return np.array([named.allows(item.name) for item in pool.offerings.types], dtype=np.bool_)
    table = pool.offerings.table
    return pool.offerings.types_in(pool.rows & table.matching(asked.only(table.keys)))


def _row_labels(pool: PoolOffers, rows: Mask, others: Sequence[Mapping[str, str]]) -> dict[str, Cell]:
    labels: dict[str, Cell] = {}
    for key in pool.offerings.table.keys:
        seen = {*pool.offerings.table.seen(key, rows), *(item.get(key) for item in others)}
        values = sorted(cell for cell in seen if isinstance(cell, str))
        possible: tuple[str | None, ...] = (*values, None) if None in seen else tuple(values)
        if possible:
            labels[key] = possible[0] if len(possible) == 1 else possible
    return labels


def _labels(asked: Requirements, claim: NodeClaim) -> dict[str, Cell]:
    """Labels that the NodeClaim decides or narrows, and those that Karpenter adds once the node is up."""
    labels: dict[str, Cell] = {REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"}
    for key, values in asked.entries:
        if not values.complement and values.names:
            names = tuple(sorted(values.names))
            labels[key] = names[0] if len(names) == 1 else names
    return labels | dict(claim.labels)


_nominated_node = attrgetter("nominated_node")


def with_nominated(view: ClusterView) -> ClusterView:
    """The cluster with pods on the node that kube-scheduler has chosen for them, where the node takes pods. Without any such pod it is
    the same object.

    When kube-scheduler preempts, it writes the node into `status.nominatedNodeName`. It waits until the pods that it evicts have ended,
    and tries that node first. Karpenter leaves such a pod alone (`IsPreempting` in pkg/utils/pod). Pods of no higher priority are kept
    from its room (`RunFilterPluginsWithNominatedPods`). So the pod is as good as bound.

    If the node is gone or takes no pods, kube-scheduler looks elsewhere at its next try. It withdraws the nomination if there is no other
    node (`Evaluator.Preempt`), and the pod waits like any other.
    """
    if not any(map(_nominated_node, view.pods)):  # by far the fastest way to see that there are none
        return view
    nominated = {pod.nominated_node for pod in view.pods}
    nodes = {
        node.name: node
        for machine in view.machines
        if (node := machine.node) is not None and node.name in nominated
        if node.ready and not machine.why_closed
    }
    pods = tuple(_on_its_node(pod, nodes) if pod.nominated_node else pod for pod in view.pods)
    return replace(view, pods=pods, nominated=tuple(filter(_nominated_node, pods)))


def _on_its_node(pod: Pod, nodes: Mapping[str, Node]) -> Pod:
    """nodes: those that take pods."""
    node = nodes.get(pod.nominated_node)
    if node is None or pod.deleting or not tolerated(node.taints, pod.shape.tolerations):
        return pod
    return replace(pod, node_name=node.name)
