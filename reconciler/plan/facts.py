"""What a pass knows so far, as one value: the stages fill it in, and plan, costs and outlook read it. And the rules of plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.declared import Declared, SourceTree
from reconciler.model.demand import Demand
from reconciler.model.departures import Departure
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType
from reconciler.model.placement import Placement, Wait
from reconciler.model.provisioning_requests import RequestRules
from reconciler.model.quantity import Resources
from reconciler.model.schedules import Edge, PoolBudgets
from reconciler.model.view import ClusterView
from reconciler.plan.launching.back_offs import LaunchRecord
from reconciler.plan.launching.caps import Cut, PlanCaps
from reconciler.plan.objects.objects import Drift, Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRules:
    """How plans are made, as the settings say. owner: this inventory. balloon_image: image of balloon pods."""

    caps: PlanCaps = field(default_factory=PlanCaps)
    owner: Owner = field(default_factory=Owner)
    drift: Drift = Drift.CORRECT
    balloon_image: str = ""
    requests: RequestRules = field(default_factory=RequestRules)


@dataclass(frozen=True, slots=True)
class Facts:
    """repository: the repository's own documents, each in a version that the cluster serves. live: the cluster's. effective: what is in
    force, the repository's over the cluster's. local_budgets: compiled into UTC. price_source: where prices come from and as of when.

    demands: in the order of placement. refused: nodes for requests that are over a cap; those requests are placed without new nodes.
    launches: NodeClaims on their way, and those that failed. departures: nodes that chunks leave for cheaper room, and those where that
    failed lately. replaced: bins that must hold no more chunks, from `leaving_bins`. edges: instants at which time alone changes the plan.
    pods_first: by NodePool, requests of the pods that Karpenter is about to make nodes for.
    waits: pods that may have to wait although their chunks have room. scarce: names of nodes whose room pods
    with few other places need. notes: what else to say of the placement. suspended: nothing is to be written.
    """

    now: datetime
    tree: SourceTree = field(default_factory=lambda: SourceTree(None))
    view: ClusterView = field(default_factory=ClusterView)
    repository: Declared = field(default_factory=Declared)
    live: Declared = field(default_factory=Declared)
    effective: Declared = field(default_factory=Declared)
    local_budgets: tuple[PoolBudgets, ...] = ()
    instance_types: tuple[InstanceType, ...] = ()
    price_source: str = ""
    demands: tuple[Demand, ...] = ()
    placement: Placement = field(default_factory=Placement)
    refused: tuple[Cut, ...] = ()
    pods_first: Mapping[str, frozenset[Resources]] = field(default_factory=dict)
    waits: tuple[Wait, ...] = ()
    scarce: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    launches: LaunchRecord = field(default_factory=LaunchRecord)
    departures: tuple[Departure, ...] = ()
    replaced: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    edges: tuple[Edge, ...] = ()
    include_pending: bool = False
    suspended: bool = False

    @property
    def cluster_now(self) -> datetime:
        """The time by the clock that dates the cluster's objects."""
        return self.now - self.view.clock_skew
