"""What a pass knows so far, and what a stage is: it takes that and returns it with its own result added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from reconciler.model.changes import Action, ChangeSet, Plan, Write, WriteResult
from reconciler.model.declared import DeclaredManifest
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.refs import ObjectRef
from reconciler.model.view import ClusterView
from reconciler.outlook import Outlook
from reconciler.placement.problem import BackOff, PlacementOptions, Problem
from reconciler.plan.facts import Facts
from reconciler.render.templates import DocumentTemplates
from reconciler.spending.month import Basis


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is changing in the cluster already, as far as placement must know.

    room: the view without the pods that need another place. leaving: those pods as demands. options: among them back-offs, and bins that
    must hold no more chunks. suspended: names of bins that hold chunks of suspended buffers. failed_in_attempts: all that requests leave
    alone whose attempt begins or is under way.
    """

    room: ClusterView = field(default_factory=ClusterView)
    leaving: tuple[Demand, ...] = ()
    options: PlacementOptions = field(default_factory=PlacementOptions)
    suspended: frozenset[str] = frozenset()
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
class PassState(Facts):
    """trigger: why the pass is made, in one word. written: the repository's documents as they are written.

    settled: the plan is a forecast for the time when all changes are done, so nothing is to be written. broken_rules: what the checker
    rejects, in sentences. unrendered: writes that no template could be rendered for. set_aside: inputs that headroom failed on, so that the
    pass is made without them. on_trial: the stages only run to find out whether they succeed so. traces: of new faults, for the log.
    """

    trigger: str = ""
    settled: bool = False
    written: tuple[DeclaredManifest, ...] = ()
    prepared: Prepared = field(default_factory=Prepared)
    outlook: Outlook | None = None
    basis: Basis | None = None
    broken_rules: tuple[str, ...] = ()
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
    def problem(self) -> Problem:
        """What is to be placed."""
        return Problem(
            self.prepared.room,
            node_pools=self.effective.node_pools,
            instance_types=self.instance_types,
            demands=self.demands,
            overlays=self.effective.node_overlays,
            options=self.prepared.options,
        )

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
