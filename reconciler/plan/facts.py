"""What a pass knows so far, as one value: the stages fill it in, and plan, costs and outlook read it. The rules of plans. And what is said of
facts that the plan cannot change: hostnames, clocks, nominated pods, placements that the checker rejects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.model import codes
from reconciler.model.changes import Drift
from reconciler.model.declared import Declared, SourceTree
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.nodes import HOSTNAME_LABEL, InstanceType, Node, node_ref
from reconciler.model.placement import Placement, Wait
from reconciler.model.pods import Pod
from reconciler.model.provisioning_requests import RequestRules
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef, abridged, by_key
from reconciler.model.remembered import Departure
from reconciler.model.rules import BufferRules, Caps
from reconciler.model.schedules import Edge, PoolBudgets
from reconciler.model.view import ClusterView
from reconciler.plan.holding.replacement import MissingDevices
from reconciler.plan.launching.back_offs import LaunchRecord
from reconciler.plan.launching.caps import Cut
from reconciler.plan.objects.objects import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRules:
    """How plans are made, as the settings say. owner: this inventory."""

    caps: Caps = field(default_factory=Caps)
    owner: Owner = field(default_factory=Owner)
    drift: Drift = Drift.CORRECT
    buffers: BufferRules = field(default_factory=BufferRules)
    requests: RequestRules = field(default_factory=RequestRules)


@dataclass(frozen=True, slots=True)
class Facts:
    now: datetime
    tree: SourceTree = field(default_factory=lambda: SourceTree(None))
    view: ClusterView = field(default_factory=ClusterView)
    repository: Declared = field(default_factory=Declared)
    """The repository's own documents, each in a version that the cluster serves."""
    live: Declared = field(default_factory=Declared)
    """The cluster's."""
    effective: Declared = field(default_factory=Declared)
    """What is in force: the repository's over the cluster's."""
    local_budgets: tuple[PoolBudgets, ...] = ()
    """Compiled into UTC."""
    instance_types: tuple[InstanceType, ...] = ()
    price_source: str = ""
    """Where prices come from and as of when."""
    demands: tuple[Demand, ...] = ()
    """In the order of placement."""
    placement: Placement = field(default_factory=Placement)
    refused: tuple[Cut, ...] = ()
    """Nodes for requests that are over a cap. Those requests are placed without new nodes."""
    pods_first: Mapping[str, frozenset[Resources]] = field(default_factory=dict)
    """By NodePool, requests of the pods that Karpenter is about to make nodes for."""
    waits: tuple[Wait, ...] = ()
    """Pods that may have to wait although their chunks have room."""
    scarce: Mapping[str, int] = field(default_factory=dict)
    """By name of a node whose room pods with few other places need, how many taints say so."""
    notes: tuple[str, ...] = ()
    """What else to say of the placement."""
    launches: LaunchRecord = field(default_factory=LaunchRecord)
    """NodeClaims on their way, and those that failed."""
    refusals: Mapping[ObjectRef, str] = field(default_factory=dict)
    """By object, what the server refused in the last pass, with the reason."""
    departures: tuple[Departure, ...] = ()
    """Nodes that chunks leave for cheaper room, and those where that failed lately."""
    missing_devices: Mapping[str, MissingDevices] = field(default_factory=dict)
    """By name of a held node whose devices are gone."""
    leaving: frozenset[str] = frozenset()
    """Names of bins that take no more chunks, since what they hold moves elsewhere."""
    findings: tuple[Finding, ...] = ()
    edges: tuple[Edge, ...] = ()
    """Instants at which time alone changes the plan."""
    include_pending: bool = False
    suspended: bool = False
    """Whether nothing is to be written."""

    @property
    def cluster_now(self) -> datetime:
        """The time by the clock that dates the cluster's objects."""
        return self.now - self.view.clock_skew

    @property
    def blocked(self) -> tuple[str, ...]:
        """Why what is absent may be there all the same: cluster or repository were not read in full, so that nothing may be deleted."""
        gaps = () if self.view.complete else self.view.gaps or ("the cluster could not be read in full",)
        return tuple(dict.fromkeys((*self.tree.reasons_to_keep, *gaps)))


TOLERATED = timedelta(minutes=1)
_MOST_NAMES = 5
_MOST_PODS = 3
_MOST_LETTERS = 500
MOST_SHOWN = 20
"""Findings for one rejected placement, since one error may break a rule at every node."""


def clock_findings(skew: timedelta) -> tuple[Finding, ...]:
    """skew: this machine's time less the API server's."""
    if abs(skew) <= TOLERATED:
        return ()
    direction = "ahead of" if skew > timedelta(0) else "behind"
    message = f"this machine's clock is {abs(skew)} {direction} the API server's: schedules and their edges are off by as much"
    return (codes.CLOCK_SKEW.finding(message, hint="keep the time of both machines with NTP"),)


def hostname_findings(nodes: Sequence[Node]) -> tuple[Finding, ...]:
    """One for each hostname that several nodes carry."""
    members = by_key((name, node.name) for node in nodes if (name := node.label(HOSTNAME_LABEL)) is not None)
    return tuple(_finding(hostname, sorted(names)) for hostname, names in sorted(members.items()) if len(names) > 1)


def _finding(hostname: str, names: Sequence[str]) -> Finding:
    return codes.SHARED_HOSTNAME.finding(
        f"{len(names):,} nodes carry {HOSTNAME_LABEL}={hostname} ({abridged(names, _MOST_NAMES)}): spread, affinity and anti-affinity by it take them for one",
        ref=node_ref(names[0]),
        hint="give each machine a host name of its own, and delete nodes whose machine is no more",
    )


def nominated_notes(view: ClusterView) -> tuple[str, ...]:
    """About pods that count as being on the node that kube-scheduler chose, and about those whose node cannot take them. view: from
    `with_nominated`."""
    there = [_chosen(pod) for pod in view.nominated if pod.node_name is not None]
    lost = [_chosen(pod) for pod in view.nominated if pod.node_name is None and not pod.deleting]
    told = (
        (there, "they count as running there, and no node is planned for them"),
        (lost, "that node is gone or takes no pods, and Karpenter makes none until the choice is withdrawn"),
    )
    begin = "kube-scheduler has chosen a node (status.nominatedNodeName) for"
    return tuple(f"{begin} {abridged(pods, _MOST_PODS)}: {words}" for pods, words in told if pods)


def launch_notes(view: ClusterView) -> tuple[str, ...]:
    """About NodeClaims for chunks that Karpenter could not launch so far, in Karpenter's words."""
    failing = [claim for claim in view.node_claims if claim.launch_failure and claim.is_held and not claim.deleting]
    if not failing:
        return ()
    which = failing[0].name if len(failing) == 1 else f"{failing[0].name} and {len(failing) - 1:,} more"
    return (
        f"Karpenter could not launch NodeClaim {which}, and tries again: {failing[0].launch_failure[:_MOST_LETTERS]}",
    )


def _chosen(pod: Pod) -> str:
    return f"Pod/{pod.namespace}/{pod.name} on {pod.nominated_node}"


def rejections(broken: Sequence[str]) -> tuple[Finding, ...]:
    """One for each broken rule, up to a limit."""
    hint = "nothing of this plan is applied; report it as a defect of headroom, with the cluster's `headroom snapshot`"
    shown = [f"the placement breaks a rule: {sentence}" for sentence in broken[:MOST_SHOWN]]
    more = len(broken) - MOST_SHOWN
    if more > 0:
        shown.append(f"the placement breaks {more:,} more {'rule' if more == 1 else 'rules'}")
    return tuple(codes.PLACEMENT_REJECTED.finding(message, hint=hint) for message in shown)
