"""What a pass knows so far, and what a stage is: it takes that and returns it with its own result added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from reconciler.model.changes import Action, ChangeSet, Plan, Write, WriteResult
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.demand import Demand
from reconciler.model.departures import Departure
from reconciler.model.findings import Finding
from reconciler.model.nodes import InstanceType
from reconciler.model.placement import Placement
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Edge, PoolBudgets
from reconciler.model.source import SourceTree
from reconciler.model.view import ClusterView
from reconciler.outlook import Outlook
from reconciler.placement.problem import BackOff, PlacementOptions
from reconciler.plan.launching.back_offs import LaunchRecord
from reconciler.plan.launching.caps import Cut
from reconciler.render.templates import DocumentTemplates
from reconciler.spending.month import Basis


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is changing in the cluster already, as far as placement must know.

    room: the view without the pods that need another place. leaving: those pods as demands. options: among them back-offs, and bins that
    must hold no more chunks. launches: NodeClaims on their way, and those that failed. suspended: names of bins that hold chunks of
    suspended buffers. departures: nodes that chunks leave for cheaper room, and those where that failed lately. failed_in_attempts: all that
    requests leave alone whose attempt begins or is under way.
    """

    room: ClusterView = field(default_factory=ClusterView)
    leaving: tuple[Demand, ...] = ()
    options: PlacementOptions = field(default_factory=PlacementOptions)
    launches: LaunchRecord = field(default_factory=LaunchRecord)
    suspended: frozenset[str] = frozenset()
    departures: tuple[Departure, ...] = ()
    failed_in_attempts: frozenset[BackOff] = frozenset()


class InputOrigin(StrEnum):
    """Where a pass has an object from."""

    FILE = "file"
    REPOSITORY = "repository"
    CLUSTER = "cluster"


class Input(NamedTuple):
    """One object that a pass is made from, which it can also be made without. A file is an object of kind File."""

    origin: InputOrigin
    ref: ObjectRef


@dataclass(frozen=True, slots=True)
class PassState:
    """trigger: why the pass is made, in one word. written: the repository's documents as they are written. repository: its own documents,
    with the manifests as they are to be applied. live: the cluster's documents. effective: the repository's over the cluster's. local_budgets: compiled into UTC.

    suspended: nothing is to be written. settled: the plan is a forecast for the time when all changes are done, so nothing is to be written
    either. broken_rules: what the checker rejects, in sentences. edges: instants at which time alone changes the plan. unrendered: writes
    that no template could be rendered for. refused: nodes for requests that are over a cap; those requests are placed without new nodes.
    set_aside: inputs that headroom failed on, so that the pass is made without them. on_trial: the stages only run to find out whether
    they succeed so. traces: of new faults, for the log.
    """

    now: datetime
    trigger: str = ""
    include_pending: bool = False
    suspended: bool = False
    settled: bool = False
    tree: SourceTree = field(default_factory=lambda: SourceTree(None))
    written: tuple[DeclaredManifest, ...] = ()
    repository: Declared = field(default_factory=Declared)
    view: ClusterView = field(default_factory=ClusterView)
    live: Declared = field(default_factory=Declared)
    effective: Declared = field(default_factory=Declared)
    local_budgets: tuple[PoolBudgets, ...] = ()
    instance_types: tuple[InstanceType, ...] = ()
    prepared: Prepared = field(default_factory=Prepared)
    demands: tuple[Demand, ...] = ()
    outlook: Outlook | None = None
    findings: tuple[Finding, ...] = ()
    placement: Placement = field(default_factory=Placement)
    refused: tuple[Cut, ...] = ()
    basis: Basis | None = None
    broken_rules: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()
    plan: Plan | None = None
    templates: DocumentTemplates | None = None
    writes: tuple[Write, ...] = ()
    unrendered: tuple[WriteResult, ...] = ()
    change_set: ChangeSet | None = None
    set_aside: Mapping[Input, Finding] = field(default_factory=dict)
    on_trial: bool = False
    traces: tuple[str, ...] = ()

    def failed_on(self, origin: InputOrigin) -> dict[ObjectRef, Finding]:
        """The inputs of this origin that the pass is made without."""
        return {item.ref: finding for item, finding in self.set_aside.items() if item.origin is origin}

    @property
    def cluster_now(self) -> datetime:
        """The time by the clock that dates the cluster's objects."""
        return self.now - self.view.clock_skew

    @property
    def is_whole(self) -> bool:
        """Whether both the cluster and the repository were read in full, so that what is absent is known not to be there."""
        return self.view.complete and not self.tree.reasons_to_keep

    @property
    def required_plan(self) -> Plan:
        """For the stages after planning."""
        assert self.plan is not None
        return self.plan

    @property
    def deleted_for_good(self) -> frozenset[ObjectRef]:
        """What the plan deletes, except objects that a schedule only puts to sleep."""
        deleted = {change.ref for change in self.required_plan.objects if change.action is Action.DELETE}
        return frozenset(deleted - self.repository.dormant.keys())


class Stage(Protocol):
    """One step of a pass. It raises a `Failure` to end the pass."""

    @property
    def phase(self) -> str:
        """The name under which its seconds are counted and shown; stages may share one."""

    def run(self, state: PassState) -> PassState: ...
