"""Makes the plan, here and nowhere else, and says when the next pass must be made even if nothing happens.

Errors in the repository's templates are found here too. A pass is due when schedules ask for something else, or when something happens that
the last plan waits for.

Then the plan is turned into writes (objects from templates, and statuses that have changed), which are applied or proposed in Git. The
inventory is kept around the writes, and events are recorded about what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar

from reconciler.cluster.apply import InventoryParent, carry_out
from reconciler.demand.schedules import next_edge
from reconciler.manifests.crds import to_yaml
from reconciler.manifests.local_budgets import next_renewal
from reconciler.model.changes import Action, Apply, ChangeSet, Delete, ObjectChange, Outcome, WriteResult
from reconciler.model.declared import Declared, located
from reconciler.model.errors import Invalid, Stalled
from reconciler.model.nodes import node_claim_ref
from reconciler.model.refs import ObjectRef, counted
from reconciler.model.remembered import REQUESTS_KEY, PassCache
from reconciler.model.schedules import Edge
from reconciler.model.view import Manifest
from reconciler.outlook import Outlook
from reconciler.plan.launching.back_offs import without_launches
from reconciler.plan.plan import make_plan
from reconciler.ports import Catalog, Cluster, Event, Proposals, ProposedPlan
from reconciler.render.check import checked_for_plan
from reconciler.render.templates import TemplateSource
from reconciler.render.writes import node_pool_document, render_writes
from reconciler.stages.state import PassState, Rules
from reconciler.summary.events import events, request_events
from reconciler.summary.statuses import status_writes


@dataclass(frozen=True, slots=True)
class MakePlan:
    phase: ClassVar[str] = "plan"

    rules: Rules
    catalog: Catalog
    templates: TemplateSource

    def run(self, state: PassState) -> PassState:
        facts = replace(state, price_source=self.catalog.source, leaving=state.prepared.options.leaving)
        templates = self.templates.of(state.tree.files)
        plan = make_plan(facts, self.rules)
        checked = checked_for_plan(plan, templates, state.effective.node_pools)
        if checked.unrendered:
            plan = make_plan(facts, self.rules, {ref: item.message for ref, item in checked.unrendered.items()})
        findings = located((*plan.findings, *checked.findings), state.repository.manifests)
        findings = tuple(sorted(findings, key=lambda finding: finding.sort_key))
        plan = replace(plan, findings=findings, waits=state.waits)
        outlook = None if state.outlook is None else replace(state.outlook, new_node_pools=plan.new_node_pools)
        refused = tuple(
            WriteResult(Apply(ref, {}), Outcome.REFUSED, failure.with_hint)
            for ref, failure in checked.unrendered.items()
        )
        return replace(state, plan=plan, templates=templates, outlook=outlook, unrendered=refused)


class UpcomingEdges:
    """Keeps what the last pass knew about coming edges, even if one of its later stages failed."""

    def __init__(self) -> None:
        self.outlook: Outlook | None = None
        """None until a pass has got that far."""
        self._due: tuple[Edge, ...] = ()

    def remember(self, state: PassState) -> None:
        """Takes over what a pass knows so far. What it does not know yet stays as in the previous pass."""
        self.outlook = state.outlook or self.outlook
        self._due = self._due if state.plan is None else state.plan.edges

    def first(self, after: datetime, repository: Declared | None) -> Edge | None:
        """The first edge after an instant. repository: its documents as last read; budgets in local time must be compiled again by then."""
        of_schedules = None if self.outlook is None else next_edge(self.outlook.facts.effective, after)
        edges = [] if of_schedules is None else [of_schedules]
        edges += [edge for edge in self._due if edge.at > after][:1]
        renewal = None if repository is None else next_renewal(repository, after)
        if renewal is not None:
            edges.append(Edge(renewal, "disruption budgets in local time are due to be compiled into UTC again"))
        return min(edges, key=lambda edge: edge.at, default=None)


@dataclass(frozen=True, slots=True)
class Render:
    phase: ClassVar[str] = "render"

    templates: TemplateSource
    cache: PassCache = field(default_factory=PassCache)

    def run(self, state: PassState) -> PassState:
        """Raises `Stalled` when the checker rejects the placement: nothing of it may be written. Nothing is rendered while suspended."""
        if state.suspended:
            return state
        if state.broken_rules:
            raise Stalled(
                f"the placement breaks {counted(len(state.broken_rules), 'rule')}, the first: {state.broken_rules[0]}; nothing is applied",
                reason="PlacementRejected",
                hint="this is a defect of headroom: report it with the snapshot that `headroom snapshot` makes",
            )
        plan = state.required_plan
        rendered = render_writes(
            plan,
            view=state.view,
            node_pools={pool.name: pool for pool in state.effective.node_pools},
            templates=state.templates or self.templates.of(state.tree.files),
        )
        statuses = status_writes(plan, state.view, state.cluster_now, self.cache)
        return replace(state, writes=(*rendered.writes, *statuses), unrendered=(*state.unrendered, *rendered.failures))


@dataclass(frozen=True, slots=True)
class ApplyWrites:
    phase: ClassVar[str] = "apply"

    cluster: Cluster
    inventory: InventoryParent
    progress: Callable[[str], None]

    def run(self, state: PassState) -> PassState:
        if not self.inventory.belongs_to(state.view.inventory.path):
            raise Stalled(
                f"the inventory {self.inventory.words} is that of {state.view.inventory.path}, so nothing is written",
                reason="InventoryOfAnotherPath",
                hint="the finding inventory-of-another-path says what to do",
            )
        plan = state.required_plan
        never_asked_for = (result.write.ref.name for result in state.unrendered)
        done = carry_out(
            self.cluster,
            state.writes,
            parent=self.inventory,
            view=state.view,
            records=without_launches(plan.records, never_asked_for),
            first={REQUESTS_KEY: plan.records[REQUESTS_KEY]} if REQUESTS_KEY in plan.records else {},
            forget=without_launches,
            progress=lambda: self.progress(self.phase),
        )
        change_set = ChangeSet((*done.results, *state.unrendered))
        self._record(events(plan, change_set, state.trigger, state.view))
        self._record(request_events(plan, change_set, state.view.pods))
        return replace(state, change_set=change_set)

    def _record(self, told: Iterable[Event]) -> None:
        """Records the events. What was written is written, so a defect here must not make the pass look failed."""
        try:
            for event in told:
                self.cluster.record(event)
        except Exception as error:  # noqa: BLE001 - whatever the defect is, an event tells it
            message = f"headroom failed to record further events, which is a defect: {type(error).__name__}: {error}"
            self.cluster.record(Event(self.inventory.ref, "Warning", "EventsFailed", message))


@dataclass(frozen=True, slots=True)
class ProposeWrites:
    """Statuses and marks on existing nodes are left out: only the cluster can hold them."""

    phase: ClassVar[str] = "apply"

    proposals: Proposals
    templates: TemplateSource

    def run(self, state: PassState) -> PassState:
        """A repository that could not be read as a whole proposes nothing: what is missing would look like a deletion."""
        plan = state.required_plan
        if state.tree.revision is None or plan.blocked or state.tree.reasons_to_keep:
            return replace(state, change_set=ChangeSet(state.unrendered))
        found, failures = self._documents(state)
        documents = {file_of(ref): to_yaml(manifest) for ref, manifest in found}
        going = {action.node_claim for action in (*plan.node_claims.delete, *plan.node_claims.release)}
        # The document of a placeholder that exists stays in Git, or whoever applies the documents would delete the node.
        standing = {file_of(node_claim_ref(claim.name)) for claim in state.view.node_claims if claim.name not in going}
        standing |= {file_of(failure.write.ref) for failure in failures}
        waiting = tuple(
            f"{item.write.ref} is planned and has no document yet: it {item.message}"
            for item in state.unrendered
            if item.outcome is Outcome.SKIPPED
        )
        proposed = ProposedPlan(plan, state.tree.revision, waiting)
        self.proposals.propose(documents, keep=standing.__contains__, state=proposed)
        told = {failure.write.ref for failure in state.unrendered}
        more = (failure for failure in failures if failure.write.ref not in told)
        return replace(state, change_set=ChangeSet((*state.unrendered, *more)))

    def _documents(self, state: PassState) -> tuple[list[tuple[ObjectRef, Manifest]], list[WriteResult]]:
        """All that should be in force, not only what differs from the cluster; sorted. Second: what no template can be rendered for, whose
        document in Git stays as it is."""
        failures: list[WriteResult] = []
        templates = state.templates or self.templates.of(state.tree.files)
        written = {write.ref: write.manifest for write in state.writes if isinstance(write, Apply)}
        deleted = {write.ref for write in state.writes if isinstance(write, Delete)}
        found = dict(written)
        for item in state.repository.manifests:
            if item.ref in found or item.ref in deleted:
                continue
            manifest = item.manifest
            if item.ref.kind == "NodePool":
                change = ObjectChange(item.ref, Action.UPDATE, manifest=manifest)
                try:
                    manifest = node_pool_document(templates, change)
                except Invalid as failure:
                    failures.append(WriteResult(Apply(item.ref, {}), Outcome.REFUSED, failure.with_hint))
                    continue
            found[item.ref] = manifest
        return sorted(found.items(), key=lambda pair: pair[0]), failures


def file_of(ref: ObjectRef) -> str:
    """One file for each object, such as capacitybuffer.shop.web.yaml. A namespace has no dots, so no two objects share a name."""
    parts = (ref.kind.lower(), *((ref.namespace,) if ref.namespace else ()), ref.name)
    return ".".join(parts).replace("/", "%2F") + ".yaml"
