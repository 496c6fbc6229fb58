"""What is to be placed, and where it may be: one frozen value, the input of placement, its checker and the optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from reconciler.model.demand import Demand
from reconciler.model.nodes import InstanceType, NodeOverlay, NodePool
from reconciler.model.quantity import Resources
from reconciler.model.view import ClusterView

BackOff: TypeAlias = tuple[str, str, str]
"""Instance type, zone and capacity type of an offering that ran out, which is not requested again for a while."""


@dataclass(frozen=True, slots=True)
class PlacementOptions:
    """How chunks are placed.

    include_pending: plan new nodes for pending pods too.
    instance_types: the most types to list for a new node.
    back_offs: offerings not to request.
    booked: by name of a node or NodeClaim, each demand with capacity booked there, and how many chunks of each group. The demand is its
    reference as text.
    leaving: names of nodes and NodeClaims that take no more chunks, since they are about to be replaced.
    keeping: names of those that keep their chunks but take no others: not ready for a moment, or in use too recently.
    promised: by NodePool, the part of its limits for nodes that Karpenter will make for pending pods, and how many nodes.
    most_price: USD an hour. An answer whose new nodes cost more together is of no use, so no other way that costs more is looked for.
    optimal: whether to look for cheaper new nodes than the fast mode finds (see the package `optimizer`).
    """

    include_pending: bool = False
    instance_types: int = 20
    back_offs: frozenset[BackOff] = frozenset()
    booked: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    leaving: frozenset[str] = frozenset()
    keeping: frozenset[str] = frozenset()
    promised: tuple[tuple[str, Resources], ...] = ()
    most_price: float = inf
    optimal: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """Demands, and the cluster and offerings they are placed in. Placing modifies nothing in it."""

    view: ClusterView
    node_pools: Sequence[NodePool] = ()
    instance_types: Sequence[InstanceType] = ()
    demands: Sequence[Demand] = ()
    overlays: Sequence[NodeOverlay] = ()
    options: PlacementOptions = field(default_factory=PlacementOptions)
