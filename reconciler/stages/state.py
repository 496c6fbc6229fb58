"""What a pass knows so far, the rules by which it is made, what a stage is, and what comes out in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from reconciler import ports
from reconciler.cluster.apply import InventoryParent
from reconciler.model.buffers import Dialect
from reconciler.model.changes import Action, ChangeSet, Plan, Write, WriteResult
from reconciler.model.declared import DeclaredManifest
from reconciler.model.demand import Demand
from reconciler.model.errors import Failure, Waiting
from reconciler.model.findings import Finding
from reconciler.model.nodes import INITIALIZED_LABEL, NODEPOOL_LABEL
from reconciler.model.refs import ObjectRef
from reconciler.model.rules import PlacementRules
from reconciler.model.view import ClusterView
from reconciler.outlook import Outlook
from reconciler.placement.problem import BackOff, PlacementOptions, Problem
from reconciler.placement.surge.rehearsal import Rehearsal
from reconciler.plan.facts import Facts, PlanRules
from reconciler.render.templates import DocumentTemplates
from reconciler.spending.month import Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(PlanRules):
    """How passes are made, as the settings say."""

    dialect: Dialect
    placement: PlacementRules
    inventory: InventoryParent
    templates_folder: str = "templates"
    """In the repository, beside the manifests."""
    suspend: bool = False
    """Whether to plan and write nothing."""
    allow_empty: bool = False
    """Whether an empty repository is obeyed, and not taken for a mistake."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is changing in the cluster already, as far as placement must know."""

    room: ClusterView = field(default_factory=ClusterView)
    """The view without the pods that need another place."""
    leaving: tuple[Demand, ...] = ()
    """Those pods as demands."""
    options: PlacementOptions = field(default_factory=PlacementOptions)
    """With back-offs, and with the bins that take no more chunks."""
    suspended: frozenset[str] = frozenset()
    """Names of bins that hold chunks of suspended buffers."""
    failed_in_attempts: frozenset[BackOff] = frozenset()
    """Offerings that requests leave alone whose attempt begins or is under way."""


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
class PassState(Facts):
    """What a pass knows so far; each stage adds to it."""

    trigger: str = ""
    """Why the pass is made, in one word."""
    settled: bool = False
    """Whether the plan is a forecast for the time when all changes are done, so that nothing is to be written."""
    written: tuple[DeclaredManifest, ...] = ()
    """The repository's documents as they are written."""
    prepared: Prepared = field(default_factory=Prepared)
    outlook: Outlook | None = None
    basis: Basis | None = None
    broken_rules: tuple[str, ...] = ()
    """What the checker rejects, in sentences."""
    rehearsal: Rehearsal | None = None
    """Of the firm placement, where one was needed."""
    plan: Plan | None = None
    templates: DocumentTemplates | None = None
    writes: tuple[Write, ...] = ()
    unrendered: tuple[WriteResult, ...] = ()
    """Writes that no template could be rendered for."""
    change_set: ChangeSet | None = None
    set_aside: Mapping[Input, Finding] = field(default_factory=dict)
    """Inputs that headroom failed on. The pass is made without them."""
    on_trial: bool = False
    """Whether this is a rehearsal that only tests whether the stages succeed without the objects in `set_aside`."""
    traces: tuple[str, ...] = ()
    """Of new faults, for the log."""

    def failed_on(self, origin: InputOrigin) -> dict[ObjectRef, Finding]:
        """The inputs of this origin that the pass is made without."""
        return {item.ref: finding for item, finding in self.set_aside.items() if item.origin is origin}

    @property
    def problem(self) -> Problem:
        return Problem(
            self.prepared.room,
            node_pools=self.effective.node_pools,
            instance_types=self.instance_types,
            demands=self.demands,
            overlays=self.effective.node_overlays,
            options=self.prepared.options,
        )

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


@dataclass(frozen=True, slots=True)
class PassResult(ports.PassResult):
    """With what only other stages and forecasts need."""

    basis: Basis | None = None
    """What a forecast of costs starts from; None if nothing was placed."""
    written: tuple[DeclaredManifest, ...] = ()
    """The repository's documents as they are written, budgets in local time too."""
    templates: DocumentTemplates | None = None
    """Templates that objects are rendered from."""

    @property
    def required_plan(self) -> Plan:
        """The plan; raises `Waiting` where the pass did not get that far."""
        if self.plan is None:
            raise Waiting("the pass ended before there was a plan")
        return self.plan


def result_of(state: PassState, timings: Mapping[str, float], failure: Failure | None) -> PassResult:
    """The result of a pass that got as far as this state, with the seconds of each stage."""
    return PassResult(
        plan=state.plan,
        change_set=state.change_set,
        tree=state.tree,
        timings=timings,
        failure=failure,
        settled=failure is None and _is_settled(state),
        basis=state.basis,
        written=state.written,
        templates=state.templates,
        suspended=state.suspended,
        traces=state.traces,
    )


def _is_settled(state: PassState) -> bool:
    """Nothing was left to write, every write succeeded, and no node that holds chunks is still on its way."""
    if state.plan is None or state.change_set is None or state.plan.has_changes or state.plan.blocked:
        return False
    nodes = state.view.nodes
    there = {node.name for node in nodes if node.label(INITIALIZED_LABEL) == "true" or not node.label(NODEPOOL_LABEL)}
    return not state.change_set.results and all(place.node in there for place in state.plan.occupied)
