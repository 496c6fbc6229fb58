"""One pass: the ordered stages from a Git commit to an applied plan, and nothing else.

Every stage takes what the pass knows so far, and returns it with its own result added. A stage that cannot do its work raises a typed
failure. The pass ends with that failure as its result, and what is in force stays in force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from reconciler.model.edges import Edge
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
from reconciler.stages.progress import PassProgress
from reconciler.stages.proposal import ProposeWrites
from reconciler.stages.rendering import Render
from reconciler.stages.result import Observation, PassResult, result_of
from reconciler.stages.rules import Rules
from reconciler.stages.source import ReadSource
from reconciler.stages.state import PassState, Stage
from reconciler.stages.upcoming_edges import UpcomingEdges
from reconciler.stages.vacating import Trials, Vacate


class Cycle:
    """Makes passes over one repository and one cluster. Between passes it keeps the last good version, and what saves work."""

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
        self._manifests = ReadManifests(cluster, allow_empty=rules.allow_empty)
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
        self._edges = UpcomingEdges()

    def plan(
        self, *, include_pending: bool = False, tree: SourceTree | None = None, settled: bool = False
    ) -> PassResult:
        """The stages up to the plan; nothing is written. tree: planned instead of the source's newest. settled: plan as if objects that are
        no longer declared were deleted, and nodes that others make were there.
        """
        state = PassState(
            self._clock.now(),
            include_pending=include_pending,
            suspended=self._suspended,
            settled=settled,
            tree=tree or SourceTree(None),
        )
        source = (self._source,) if tree is None else ()
        read = self._after(PassProgress(state), (*source, *self._reading))
        done = self._after(read, self._planning)
        if settled and done.failure is None:
            left = read.state.effective.without(done.state.deleted_for_good)
            if left != read.state.effective:
                again = replace(done, state=replace(read.state, effective=left))
                done = self._after(again, self._planning)
        return result_of(done.state, done.timings, done.failure)

    def observe(self) -> Observation:
        """The reading stages alone. Raises what ends a pass."""
        state = PassState(self._clock.now())
        for stage in (self._source, *self._reading):
            self._progress(stage.phase)
            state = stage.run(state)
        return Observation(state.effective, state.view, state.findings, state.local_budgets)

    def run(self, trigger: str) -> PassResult:
        """A whole pass. trigger: why it is made, in one word, for its events."""
        state = PassState(self._clock.now(), trigger, suspended=self._suspended)
        done = self._after(PassProgress(state), (self._source, *self._reading, *self._planning))
        if not done.state.suspended:
            done = self._after(done, self._applying)
        return result_of(done.state, done.timings, done.failure)

    def next_edge(self, after: datetime) -> Edge | None:
        """The first instant after this one at which the declared capacity changes, by what the last pass read."""
        return self._edges.first(after, self._manifests.last)

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Every schedule in force, including the cluster's own, as the last pass read them."""
        return () if self.outlook is None else self.outlook.declared.schedules

    @property
    def outlook(self) -> Outlook | None:
        """What the last pass knew about the time to come; None until a pass has got that far."""
        return self._edges.outlook

    def _after(self, so_far: PassProgress, stages: Sequence[Stage]) -> PassProgress:
        done = so_far.after(stages, self._progress)
        self._edges.remember(done.state)
        return done
