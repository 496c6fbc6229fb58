"""What stands at the end of a pass: every node with its price, its use and what it is kept for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reconciler.model.placement import Holding
from reconciler.model.refs import ObjectRef


class NodeState(StrEnum):
    """How far a node is, in the words that people are shown."""

    READY = "ready"
    NOT_READY = "not ready"
    COMING = "coming"
    GOING = "going"


@dataclass(frozen=True, slots=True)
class StandingNode:
    """A node, or a NodeClaim whose node is on its way.

    price: USD an hour, None where unknown. cpu, memory: the shares of its allocatable amounts that its pods request, None while it has
    none. held: whether headroom protects it from disruption. expires: when Karpenter replaces it because of its age, None for never.
    """

    name: str
    node_pool: str
    state: NodeState
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: float | None = None
    cpu: float | None = None
    memory: float | None = None
    holdings: tuple[Holding, ...] = ()
    held: bool = False
    drifted: bool = False
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class StandingNodes:
    """nodes: by NodePool and name. per_hour: what each demand costs, in USD an hour: its part of the nodes that only hold chunks."""

    nodes: tuple[StandingNode, ...] = ()
    per_hour: Mapping[ObjectRef, float] = field(default_factory=dict)
