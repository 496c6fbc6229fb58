"""What comes out of a pass, or of its reading stages alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.changes import ChangeSet, Plan
from reconciler.model.declared import Declared, DeclaredManifest
from reconciler.model.errors import Failure, Waiting
from reconciler.model.findings import Finding
from reconciler.model.nodes import INITIALIZED_LABEL, NODEPOOL_LABEL
from reconciler.model.schedules import PoolBudgets
from reconciler.model.source import SourceTree
from reconciler.model.view import ClusterView
from reconciler.render.templates import DocumentTemplates
from reconciler.spending.month import Basis
from reconciler.stages.state import PassState


@dataclass(frozen=True, slots=True)
class PassResult:
    """failure: why the pass stopped; no later stage has run. timings: seconds by phase.

    settled: nothing was left to change and nothing is on its way.
    """

    plan: Plan | None = None
    change_set: ChangeSet | None = None
    tree: SourceTree | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    settled: bool = False
    basis: Basis | None = None
    """What a forecast of costs starts from; None if nothing was placed."""
    written: tuple[DeclaredManifest, ...] = ()
    """The repository's documents as they are written, budgets in local time too."""
    templates: DocumentTemplates | None = None
    """Templates that objects are rendered from."""
    traces: tuple[str, ...] = ()
    """Of faults for which an object was set aside, where it was not before."""

    @property
    def required_plan(self) -> Plan:
        """The plan; raises `Waiting` where the pass did not get that far."""
        if self.plan is None:
            raise Waiting("the pass ended before there was a plan")
        return self.plan


@dataclass(frozen=True, slots=True)
class Observation:
    """What is declared and what is there, before anything is planned. effective: the repository over the cluster.

    local_budgets: of its NodePools whose budgets were compiled into UTC.
    """

    effective: Declared
    view: ClusterView
    findings: tuple[Finding, ...]
    local_budgets: tuple[PoolBudgets, ...] = ()


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
        traces=state.traces,
    )


def _is_settled(state: PassState) -> bool:
    """Nothing was left to write, every write succeeded, and no node that holds chunks is still on its way."""
    if state.plan is None or state.change_set is None or state.plan.has_changes or state.plan.blocked:
        return False
    nodes = state.view.nodes
    there = {node.name for node in nodes if node.label(INITIALIZED_LABEL) == "true" or not node.label(NODEPOOL_LABEL)}
    return not state.change_set.results and all(place.node in there for place in state.plan.occupied)
