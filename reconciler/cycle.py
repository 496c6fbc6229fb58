"""One pass: the ordered stages from a Git commit to an applied plan, nothing else.

Every stage takes what the pass knows so far and returns it with its own result added. What a stage cannot do, it raises
as a typed failure; the pass then ends with that failure as its result and everything in force stays in force.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.demand.schedules import NextEdges
from reconciler.manifests.local_budgets import next_renewal
from reconciler.model.changes import Action
from reconciler.model.edges import Edge
from reconciler.model.errors import Failure
from reconciler.model.refs import ObjectRef
from reconciler.model.schedules import Schedule
from reconciler.model.source import SourceTree
from reconciler.outlook import Outlook
from reconciler.placement.memory import Memory
from reconciler.ports import Catalog, Clock, Cluster, Proposals, Source
from reconciler.render.templates import TemplateSource
from reconciler.stages.application import ApplyWrites
from reconciler.stages.cluster import ReadCluster
from reconciler.stages.demand import FindDemand
from reconciler.stages.manifests import ReadManifests
from reconciler.stages.placement import Place
from reconciler.stages.planning import MakePlan
from reconciler.stages.preparation import Prepare
from reconciler.stages.proposal import ProposeWrites
from reconciler.stages.rendering import Render
from reconciler.stages.result import Observation, PassResult, result_of
from reconciler.stages.rules import Rules
from reconciler.stages.source import ReadSource
from reconciler.stages.state import PassState, Stage
from reconciler.stages.vacating import Trials, Vacate


class Cycle:
    """Makes passes over one repository and one cluster. Keeps only what saves work or keeps the last good version."""

    def __init__(
        self,
        *,
        source: Source,
        cluster: Cluster,
        catalog: Catalog,
        clock: Clock,
        rules: Rules,
        packaged_templates: Mapping[str, str],
        progress: Callable[[str], None] = lambda _phase: None,
        proposals: Proposals | None = None,
    ) -> None:
        memory = Memory()
        templates = TemplateSource(packaged_templates, rules.templates_folder)
        self._clock = clock
        self._progress = progress
        self._source = ReadSource(source)
        self._manifests = ReadManifests(allow_empty=rules.allow_empty)
        self._reading: tuple[Stage, ...] = (
            self._manifests,
            ReadCluster(cluster, catalog, rules.allow_empty),
            Prepare(rules.placement, memory, rules.not_ready_grace),
        )
        self._planning: tuple[Stage, ...] = (
            FindDemand(rules.dialect, rules.requests, rules.fulfilment),
            Place(rules, memory),
            Vacate(rules, Trials()),
            MakePlan(rules, catalog, templates),
        )
        self._applying: tuple[Stage, ...] = (
            Render(templates),
            ApplyWrites(cluster, rules.inventory, progress)
            if proposals is None
            else ProposeWrites(proposals, templates),
        )
        self._suspended = rules.suspend
        self._next_edges = NextEdges()
        self._outlook: Outlook | None = None
        self._due: tuple[Edge, ...] = ()

    def plan(
        self, *, include_pending: bool = False, tree: SourceTree | None = None, settled: bool = False
    ) -> PassResult:
        """The stages up to the plan: nothing is written. tree: plan this one instead of the source's newest. settled: as
        after the pass in which what is no longer declared was deleted, and with the nodes that others make for demands.
        """
        state = PassState(
            self._clock.now(),
            include_pending=include_pending,
            suspended=self._suspended,
            settled=settled,
            tree=tree or SourceTree(None),
        )
        source = (self._source,) if tree is None else ()
        read = self._advance(_Progress(state), (*source, *self._reading))
        done = self._advance(read, self._planning)
        if settled and done.failure is None:
            left = read.state.effective.without(_no_longer_declared(done.state))
            if left != read.state.effective:
                again = replace(done, state=replace(read.state, effective=left))
                done = self._advance(again, self._planning)
        return result_of(done.state, done.timings, done.failure)

    def observe(self) -> Observation:
        """The reading stages alone. Raises what ends a pass."""
        state = PassState(self._clock.now())
        for stage in (self._source, *self._reading):
            self._progress(stage.phase)
            state = stage.run(state)
        return Observation(state.effective, state.view, state.findings, state.local_budgets)

    def run(self, trigger: str) -> PassResult:
        """A whole pass. trigger: why it is made, in one word, which its events tell."""
        state = PassState(self._clock.now(), trigger, suspended=self._suspended)
        return self._run(state, (self._source, *self._reading, *self._planning, *self._applying))

    def next_edge(self, after: datetime) -> Edge | None:
        """The first instant after this one at which what is declared asks for something else; as the last pass read it."""
        first = None if self._outlook is None else self._next_edges.first(self._outlook.declared, after)
        due = next((edge for edge in self._due if edge.at > after), None)
        if due is not None and (first is None or due.at < first.at):
            first = due
        renewal = None if self._manifests.last is None else next_renewal(self._manifests.last, after)
        if renewal is None or (first is not None and first.at <= renewal):
            return first
        return Edge(renewal, "disruption budgets in local time are due to be compiled into UTC again")

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Every schedule in force, the cluster's own among them, as the last pass read them."""
        return () if self._outlook is None else self._outlook.declared.schedules

    @property
    def outlook(self) -> Outlook | None:
        """What the last pass knew of the time to come; None before one has got that far."""
        return self._outlook

    def _run(self, state: PassState, stages: Sequence[Stage]) -> PassResult:
        done = self._advance(_Progress(state), stages)
        return result_of(done.state, done.timings, done.failure)

    def _advance(self, so_far: _Progress, stages: Sequence[Stage]) -> _Progress:
        """Runs the stages one after the other, until one of them fails."""
        state, timings, failure = so_far.state, dict(so_far.timings), so_far.failure
        for stage in () if failure is not None else stages:
            if state.suspended and stage in self._applying:
                break
            self._progress(stage.phase)
            began = time.perf_counter()
            try:
                state = stage.run(state)
            except Failure as error:
                failure = error
            timings[stage.phase] = timings.get(stage.phase, 0.0) + time.perf_counter() - began
            self._outlook = state.outlook or self._outlook
            self._due = self._due if state.plan is None else state.plan.edges
            if failure is not None:
                break
        return _Progress(state, timings, failure)


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far a pass has come. timings: seconds by phase."""

    state: PassState
    timings: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None


def _no_longer_declared(state: PassState) -> frozenset[ObjectRef]:
    """What the plan deletes for good; what a schedule only puts to sleep is not among it."""
    deleted = {change.ref for change in state.required_plan.objects if change.action is Action.DELETE}
    return frozenset(deleted - state.repository.dormant.keys())
