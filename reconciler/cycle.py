"""One pass: the ordered stages from a Git commit to an applied plan, and nothing else.

Every stage takes what the pass knows so far, and returns it with its own result added. A stage that cannot do its work raises a typed
failure. The pass ends with that failure as its result, and what is in force stays in force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.model.changes import Plan
from reconciler.model.declared import SourceTree
from reconciler.model.schedules import Edge, Schedule
from reconciler.outlook import Outlook
from reconciler.placement.cache import Cache
from reconciler.ports import Catalog, Clock, Cluster, Proposals, Source
from reconciler.render.templates import TemplateSource
from reconciler.stages.consolidation import Consolidate, Vacate
from reconciler.stages.demand import FindDemand, Prepare
from reconciler.stages.placement import Place
from reconciler.stages.planning import ApplyWrites, MakePlan, ProposeWrites, Render, UpcomingEdges
from reconciler.stages.reading import FindInForce, ReadCluster, ReadManifests, ReadSource
from reconciler.stages.running import PassProgress, SetAside
from reconciler.stages.state import Observation, PassResult, PassState, Rules, Stage, result_of
from reconciler.stages.surge import MakeFirm, Rehearse


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
        cache = Cache()
        templates = TemplateSource(packaged_templates, rules.templates_folder)
        self._clock = clock
        self._progress = progress
        self._source, self._cluster = ReadSource(source), ReadCluster(cluster)
        self._manifests = ReadManifests(cluster, allow_empty=rules.allow_empty)
        self._reading: tuple[Stage, ...] = (
            self._manifests,
            FindInForce(catalog, rules.allow_empty, rules.inventory),
            Prepare(rules.placement, cache, rules.not_ready_grace, rules.back_off),
        )
        self._planning: tuple[Stage, ...] = (
            FindDemand(rules.dialect, rules.requests, rules.fulfilment, rules.shrink_after),
            Place(rules, cache),
            MakeFirm(rules),
            Vacate(rules, cache),
            Consolidate(rules, cache),
            Rehearse(rules),
            MakePlan(rules, catalog, templates),
        )
        self._render: Stage = Render(templates)
        self._apply: Stage = (
            ApplyWrites(cluster, rules.inventory, progress)
            if proposals is None
            else ProposeWrites(proposals, templates)
        )
        self._set_aside = SetAside(progress)
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
        start = PassProgress(state).after((self._source,) if tree is None else (), self._progress)
        start = start.after((self._cluster,), self._progress)
        done = self._remembered(self._set_aside.run(start, (*self._reading, *self._planning)))
        if settled and done.failure is None:
            begun = replace(start, state=replace(start.state, set_aside=done.state.set_aside))
            read = begun.after(self._reading, self._progress).state
            left = read.effective.without(done.state.deleted_for_good)
            if left != read.effective:
                again = replace(done, state=replace(read, effective=left))
                done = self._remembered(again.after(self._planning, self._progress))
        return result_of(done.state, done.timings, done.failure)

    def observe(self) -> Observation:
        """The reading stages alone. Raises what ends a pass."""
        start = PassProgress(PassState(self._clock.now())).after((self._source, self._cluster), self._progress)
        done = self._set_aside.run(start, self._reading)
        if done.failure is not None:
            raise done.failure
        state = done.state
        return Observation(state.effective, state.view, state.findings, state.local_budgets)

    def run(self, trigger: str, *, tree: SourceTree | None = None, agreed: Plan | None = None) -> PassResult:
        """A whole pass. trigger: why it is made, in one word, for its events. tree: as for `plan`. agreed: what somebody has agreed to; if
        the plan changes anything else by now, nothing is applied, and the result has no change set."""
        state = PassState(self._clock.now(), trigger=trigger, suspended=self._suspended, tree=tree or SourceTree(None))
        start = PassProgress(state).after((self._source,) if tree is None else (), self._progress)
        start = start.after((self._cluster,), self._progress)
        done = self._remembered(self._set_aside.run(start, (*self._reading, *self._planning, self._render)))
        plan = done.state.plan
        if not done.state.suspended and (agreed is None or plan is None or plan.changes_the_same(agreed)):
            done = self._remembered(done.after((self._apply,), self._progress))
        return result_of(done.state, done.timings, done.failure)

    def next_edge(self, after: datetime) -> Edge | None:
        """The first instant after this one at which the declared capacity changes, by what the last pass read."""
        return self._edges.first(after, self._manifests.last)

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Every schedule in force, including the cluster's own, as the last pass read them."""
        return () if self.outlook is None else self.outlook.facts.effective.schedules

    @property
    def outlook(self) -> Outlook | None:
        """What the last pass knew about the time to come; None until a pass has got that far."""
        return self._edges.outlook

    def _remembered(self, done: PassProgress) -> PassProgress:
        """The same, once its edges are kept. Raises its fault."""
        if done.fault is not None:
            raise done.fault
        self._edges.remember(done.state)
        return done
