"""One pass: the ordered stages from a Git commit to an applied plan, nothing else. Called by daemon and cli.

Every stage takes what the pass knows so far and returns it with its own result added. What a stage cannot do, it raises
as a typed failure; the pass then ends with that failure as its result and everything in force stays in force.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.cluster.apply import carry_out
from reconciler.cluster.inventory import InventoryParent
from reconciler.demand.combine import demands as combine_demands
from reconciler.demand.dialect import Dialect
from reconciler.demand.leaving import without_leaving
from reconciler.demand.schedules import NextEdges, follow_schedules
from reconciler.manifests.declared import live_declared, read, with_last_good
from reconciler.manifests.in_force import in_force
from reconciler.manifests.local_budgets import in_utc, named_as_written, next_renewal
from reconciler.manifests.rendered import read_rendered
from reconciler.manifests.schedule_findings import schedule_findings
from reconciler.model.changes import ChangeSet, Plan, Write, WriteResult
from reconciler.model.declared import Declared
from reconciler.model.demand import Demand
from reconciler.model.errors import Failure, Stalled, Waiting
from reconciler.model.findings import Finding
from reconciler.model.local_budgets import PoolBudgets
from reconciler.model.nodes import INITIALIZED_LABEL, NODEPOOL_LABEL, InstanceType
from reconciler.model.placement import Placement
from reconciler.model.schedules import Schedule
from reconciler.model.source import SourceTree
from reconciler.model.timelines import Edge
from reconciler.model.view import ClusterView
from reconciler.outlook import Outlook
from reconciler.placement.checker.violations import violations
from reconciler.placement.memory import Memory
from reconciler.placement.nominated import with_nominated
from reconciler.placement.place import PlacementOptions, place
from reconciler.plan.back_offs import launch_record, without_launches
from reconciler.plan.drift import Drift
from reconciler.plan.limits import PlanCaps
from reconciler.plan.plan import PlanInputs, make_plan
from reconciler.plan.rejection import rejections
from reconciler.plan.replacement import unavailable_bins
from reconciler.ports import Catalog, Clock, Cluster, Source
from reconciler.render.environment import Templates
from reconciler.render.writes import render_writes
from reconciler.summary import events, status_writes


@dataclass(frozen=True, slots=True)
class Rules:
    """How passes are made: settings that the stages need, in the stages' own types."""

    dialect: Dialect
    caps: PlanCaps
    placement: PlacementOptions
    inventory: InventoryParent
    optimal_within: timedelta
    check_placement: bool = False
    templates_folder: str = "templates"
    suspend: bool = False
    drift: Drift = Drift.CORRECT


@dataclass(frozen=True, slots=True)
class PassResult:
    """What one pass found and did. failure: the pass stopped there, and nothing after that stage happened.

    timings: seconds by stage; settled: nothing was left to change and nothing is on its way.
    """

    plan: Plan | None = None
    change_set: ChangeSet | None = None
    tree: SourceTree | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    settled: bool = False

    @property
    def required_plan(self) -> Plan:
        if self.plan is None:
            raise Waiting("the pass ended before there was a plan")
        return self.plan


@dataclass(frozen=True, slots=True)
class PassState:
    """What the pass knows so far; each stage adds its part."""

    now: datetime
    include_pending: bool = False
    tree: SourceTree = field(default_factory=lambda: SourceTree(None))
    repository: Declared = field(default_factory=Declared)
    view: ClusterView = field(default_factory=ClusterView)
    live: Declared = field(default_factory=Declared)
    effective: Declared = field(default_factory=Declared)
    local_budgets: tuple[PoolBudgets, ...] = ()
    instance_types: tuple[InstanceType, ...] = ()
    replaced: frozenset[str] = frozenset()
    demands: tuple[Demand, ...] = ()
    findings: tuple[Finding, ...] = ()
    placement: Placement = field(default_factory=Placement)
    broken_rules: tuple[str, ...] = ()
    plan: Plan | None = None
    writes: tuple[Write, ...] = ()
    unrendered: tuple[WriteResult, ...] = ()
    change_set: ChangeSet | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What is declared and what is there, before anything is planned. effective: the repository over the cluster;
    local_budgets: of its NodePools whose budgets were compiled into UTC."""

    effective: Declared
    view: ClusterView
    findings: tuple[Finding, ...]
    local_budgets: tuple[PoolBudgets, ...] = ()


Stage = Callable[[PassState], PassState]


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
        progress: Callable[[str], None] = lambda _stage: None,
    ) -> None:
        self._source = source
        self._cluster = cluster
        self._catalog = catalog
        self._clock = clock
        self._rules = rules
        self._packaged_templates = packaged_templates
        self._progress = progress
        self._placed = Memory()
        self._tree: SourceTree | None = None
        self._repository: Declared | None = None
        self._effective: Declared | None = None
        self._next_edges = NextEdges()
        self._outlook: Outlook | None = None

    def plan(self, *, include_pending: bool = False, tree: SourceTree | None = None) -> PassResult:
        """The stages up to the plan: nothing is written. tree: plan this one instead of the source's newest."""
        stages = self._reading if tree is None else self._reading[1:]
        state = PassState(self._clock.now(), include_pending=include_pending, tree=tree or SourceTree(None))
        return self._run(state, (*stages, *self._planning))

    def observe(self) -> Observation:
        """The reading stages alone. Raises what ends a pass."""
        state = PassState(self._clock.now())
        for name, stage in self._reading:
            self._progress(name)
            state = stage(state)
        return Observation(state.effective, state.view, state.findings, state.local_budgets)

    def run(self, trigger: str) -> PassResult:
        """A whole pass. `trigger` says in events and logs why it was made."""
        del trigger
        stages = (*self._reading, *self._planning)
        if not self._rules.suspend:
            stages = (*stages, *self._applying)
        return self._run(PassState(self._clock.now()), stages)

    def next_edge(self, after: datetime) -> Edge | None:
        """The first instant after this one at which what is declared asks for something else; as the last pass read it."""
        first = None if self._effective is None else self._next_edges.first(self._effective, after)
        renewal = None if self._repository is None else next_renewal(self._repository, after)
        if renewal is None or (first is not None and first.at <= renewal):
            return first
        return Edge(renewal, "disruption budgets in local time are compiled anew")

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Every schedule in force, the cluster's own among them, as the last pass read them."""
        return () if self._effective is None else self._effective.schedules

    @property
    def outlook(self) -> Outlook | None:
        """What the last pass knew of the time to come; None before one has got that far."""
        return self._outlook

    @property
    def _reading(self) -> tuple[tuple[str, Stage], ...]:
        return (("git", self._read_source), ("manifests", self._read_manifests), ("view", self._read_cluster))

    @property
    def _planning(self) -> tuple[tuple[str, Stage], ...]:
        return (("demand", self._find_demand), ("placement", self._place), ("plan", self._make_plan))

    @property
    def _applying(self) -> tuple[tuple[str, Stage], ...]:
        return (("render", self._render), ("apply", self._apply))

    def _run(self, state: PassState, stages: tuple[tuple[str, Stage], ...]) -> PassResult:
        timings: dict[str, float] = {}
        failure: Failure | None = None
        for name, stage in stages:
            self._progress(name)
            began = time.perf_counter()
            try:
                state = stage(state)
            except Failure as error:
                failure = error
            timings[name] = time.perf_counter() - began
            if failure is not None:
                break
        return PassResult(
            plan=state.plan,
            change_set=state.change_set,
            tree=state.tree,
            timings=timings,
            failure=failure,
            settled=failure is None and _is_settled(state),
        )

    def _read_source(self, state: PassState) -> PassState:
        return replace(state, tree=self._source.read())

    def _read_manifests(self, state: PassState) -> PassState:
        """Reads documents only when the tree is another one than last time."""
        if self._repository is None or self._tree is None or state.tree.files is not self._tree.files:
            self._repository = with_last_good(read(state.tree.files, skipped=state.tree.skipped), self._repository)
            self._tree = state.tree
        return replace(state, repository=self._repository)

    def _read_cluster(self, state: PassState) -> PassState:
        seen = self._cluster.view()
        view = self._placed.once("nominated", (seen,), lambda: with_nominated(seen))
        live = live_declared(view)
        local = in_utc(state.repository, state.now)
        forms = in_force(local.declared, live, view.objects, view.apis)
        named = named_as_written(forms.effective.node_pools, local.pools)
        return replace(
            state,
            view=view,
            live=live,
            repository=forms.repository,
            effective=replace(forms.effective, node_pools=named),
            local_budgets=local.pools,
            findings=(
                *view.findings,
                *forms.repository.findings,
                *forms.findings,
                *local.findings,
                *schedule_findings(forms.repository.schedules, state.now),
            ),
            instance_types=tuple(self._catalog.instance_types(view)),
        )

    def _find_demand(self, state: PassState) -> PassState:
        followed = follow_schedules(state.effective, state.repository, state.view.objects, state.now)
        self._effective = followed.effective
        self._outlook = Outlook(state.now, followed.effective, state.view, self._rules.dialect, state.instance_types)
        demands, findings = combine_demands(
            followed.effective,
            state.view,
            dialect=self._rules.dialect,
            include_pending=state.include_pending,
            now=state.now,
            instance_types=state.instance_types,
        )
        return replace(
            state,
            effective=followed.effective,
            repository=followed.repository,
            demands=demands,
            findings=(*state.findings, *followed.findings, *findings),
        )

    def _place(self, state: PassState) -> PassState:
        replaced = unavailable_bins(state.view, state.effective.node_pools, state.now)
        back_offs = launch_record(state.view, state.now).avoided(state.now)
        options = replace(
            self._rules.placement, include_pending=state.include_pending, back_offs=back_offs, leaving=replaced
        )
        latest = time.perf_counter() + self._rules.optimal_within.total_seconds()
        placement = place(
            without_leaving(state.view, state.demands),
            node_pools=state.effective.node_pools,
            instance_types=state.instance_types,
            demands=state.demands,
            overlays=state.effective.node_overlays,
            options=options,
            memory=self._placed,
            seconds_left=lambda: latest - time.perf_counter(),
        )
        unchecked = self._rules.check_placement and not placement.checked
        broken = _broken_rules(state, placement, options) if unchecked else ()
        return replace(
            state,
            placement=placement,
            replaced=replaced,
            broken_rules=broken,
            findings=(*state.findings, *rejections(broken)),
        )

    def _make_plan(self, state: PassState) -> PassState:
        plan = make_plan(
            PlanInputs(
                revision=state.tree.revision,
                now=state.now,
                view=state.view,
                declared=state.repository,
                live=state.live,
                demands=state.demands,
                placement=state.placement,
                node_pools=state.effective.node_pools,
                schedules=state.effective.schedules,
                instance_types=state.instance_types,
                price_source=self._catalog.source,
                caps=self._rules.caps,
                findings=state.findings,
                blocked=state.tree.reasons_to_keep,
                replaced=state.replaced,
                local_budgets=state.local_budgets,
                include_pending=state.include_pending,
                suspended=self._rules.suspend,
                applyset_id=self._rules.inventory.id,
                drift=self._rules.drift,
            ),
        )
        return replace(state, plan=plan)

    def _render(self, state: PassState) -> PassState:
        assert state.plan is not None
        if state.broken_rules:
            raise Stalled(
                f"the placement breaks {len(state.broken_rules):,} rules ({state.broken_rules[0]}): nothing is applied",
                reason="PlacementRejected",
                hint="this is a defect of headroom: report it with the snapshot that `headroom snapshot` makes",
            )
        rendered = render_writes(
            state.plan,
            view=state.view,
            node_pools={pool.name: pool for pool in state.effective.node_pools},
            templates=self._templates(state.tree),
            read_document=read_rendered,
        )
        statuses = status_writes(state.plan, state.view, state.now)
        return replace(state, writes=(*rendered.writes, *statuses), unrendered=rendered.failures)

    def _apply(self, state: PassState) -> PassState:
        assert state.plan is not None
        done = carry_out(
            self._cluster,
            state.writes,
            parent=self._rules.inventory,
            view=state.view,
            memory=without_launches(state.plan.memory, (result.write.ref.name for result in state.unrendered)),
        )
        change_set = ChangeSet((*done.results, *state.unrendered))
        for event in events(state.plan, change_set):
            self._cluster.record(event)
        return replace(state, change_set=change_set)

    def _templates(self, tree: SourceTree) -> Templates:
        """The packaged templates, with the repository's own in front; what they write is checked as strictly."""
        folder = f"{self._rules.templates_folder.strip('/')}/"
        own = {
            path.removeprefix(folder): content.decode(errors="replace")
            for path, content in tree.files.items()
            if path.startswith(folder) and path.endswith(".j2")
        }
        return Templates(self._packaged_templates, own)


def _broken_rules(state: PassState, placement: Placement, options: PlacementOptions) -> tuple[str, ...]:
    return violations(
        without_leaving(state.view, state.demands),
        node_pools=state.effective.node_pools,
        instance_types=state.instance_types,
        demands=state.demands,
        placement=placement,
        overlays=state.effective.node_overlays,
        spot_share=options.spot_share,
        back_offs=options.back_offs,
    )


def _is_settled(state: PassState) -> bool:
    """Nothing was left to write, every write succeeded, and no node that holds chunks is still on its way."""
    if state.plan is None or state.change_set is None or state.plan.has_changes or state.plan.blocked:
        return False
    nodes = state.view.nodes
    there = {node.name for node in nodes if node.label(INITIALIZED_LABEL) == "true" or not node.label(NODEPOOL_LABEL)}
    return not state.change_set.results and all(place.node in there for place in state.plan.occupied)
