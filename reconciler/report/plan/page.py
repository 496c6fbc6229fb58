"""A plan as rows for text, Markdown and HTML, and what came of applying it as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from reconciler.model.changes import Action, ChangeSet, DemandOutcome, NodeClaimCreation, Outcome, PendingOutcome, Plan
from reconciler.model.demand import Keeper
from reconciler.model.placement import UnplacedReason
from reconciler.model.refs import POD_KIND, counted, listed
from reconciler.model.timelines import CapacityTimeline, Spending
from reconciler.report.costs import cost_parts
from reconciler.report.escaping import terminal_lines
from reconciler.report.plan.rows import (
    ReportPage,
    action_row,
    creation_row,
    findings_listing,
    listing,
    local_budgets_section,
    object_row,
    page_text,
    section,
    static_pool_row,
)
from reconciler.report.plan.words import (
    HOURS_OF_SPAN,
    MOST_ZONES,
    SPAN,
    demand_facts,
    is_paid,
    launch_price,
    node_actions,
    order_words,
    own_domains,
    price_notes,
    reason_words,
    sample_words,
    spending_words,
    summary,
)
from reconciler.report.timeline.chart import timeline_chart
from reconciler.report.timeline.rows import week_rows
from reconciler.report.words import (
    NOT_SHOWN,
    Row,
    dollars,
    hourly,
    keeper_words,
    local_zone,
    moment,
    short_revision,
    signed_dollars,
    size_words,
)

MOST_WAITING = 3
"""The most objects to name that wait for the same."""
_WHAT_IF = "What-if only: Karpenter makes nodes for pending pods; headroom apply never does."
_SIGNS = {"hold": "=", "untaint": "="}


def plan_page(
    plan: Plan,
    *,
    cluster: str,
    snapshot: str = "",
    timeline: CapacityTimeline | None = None,
    spending: Spending | None = None,
    zone: tzinfo | None = None,
) -> ReportPage:
    """For `page_text` and the templates. timeline: the coming week, if it is to be shown. spending: over the coming 30 days.

    snapshot: in words, the published snapshot that it was planned with.
    """
    place = zone or local_zone(plan.now)
    revision, sample = short_revision(plan.revision), sample_words(plan)
    return ReportPage(
        title=f"Capacity plan for {cluster}",
        heading=f"Plan for {cluster} at {revision}",
        revision=revision,
        warnings=[sample] if sample else [],
        when=", ".join(filter(None, (moment(plan.now, zone), snapshot))),
        summary=summary(plan, zone),
        cost=_cost_words(plan, spending),
        assumptions=[*plan.cost.assumptions, *(price_notes(plan) if spending is None else spending.notes)],
        demands=_demands(plan),
        sections=[item for item in _sections(plan, spending, zone) if item["count"]],
        findings=[findings_listing("Findings", plan.findings)],
        week=None if timeline is None else week_rows(timeline, place),
        week_chart="" if timeline is None else timeline_chart(timeline, zone=place),
        notes=[
            *filter(None, [pending_words(plan)]),
            *(f"Nothing is deleted or released: {reason}" for reason in plan.blocked),
            *plan.notes,
        ],
    )


def _cost_words(plan: Plan, spending: Spending | None) -> str:
    before, after = plan.cost.per_hour_before, plan.cost.per_hour_after
    hours = f"{dollars(before)}/h → {dollars(after)}/h"
    if spending is not None:
        return f"{hours}; {spending_words(plan, spending)}"
    return f"{hours} ({signed_dollars((after - before) * HOURS_OF_SPAN)} over {SPAN} at this price)"


def _demands(plan: Plan) -> Row:
    outcomes = [outcome for outcome in plan.demands if not outcome.demand.is_pending_pod]
    note = order_words(outcomes) if len(outcomes) > 1 and any(outcome.unplaced for outcome in outcomes) else ""
    if not outcomes:
        why = "what is declared has errors" if plan.has_errors else "no buffer or request is declared"
        note = f"Nothing to keep ready: {why}."
    return listing(list(map(_demand, outcomes)), note=note)


def _demand(outcome: DemandOutcome) -> Row:
    demand, service = outcome.demand, outcome.service
    why = [reason_words(reason) for reason in outcome.unplaced_reasons]
    if service.why and not why:
        why.append(service.why)
    if service.by is not Keeper.HEADROOM and not service.is_left:
        why.append(f"kept by {keeper_words(service)}")
    if not service.certain:
        why.append(NOT_SHOWN)
    return {
        "name": str(demand.ref),
        "where": f"{demand.source.file}:{demand.source.line}" if demand.source else "",
        "desired": size_words(service),
        "existing": f"{outcome.on_existing:,}",
        "new": f"{outcome.on_new:,}",
        "unplaced": f"{outcome.unplaced:,}",
        "why": why,
        "facts": demand_facts(outcome),
    }


def _sections(plan: Plan, spending: Spending | None, zone: tzinfo | None) -> list[Row]:
    claims, domains = plan.node_claims, own_domains(plan)
    launched = [_row(f"NodePool {row.node_pool}", row.size, row.kinds) for row in launches(plan)]
    unplaced = [_row(row.title, counted(len(row.names), "pod"), "; ".join(row.reasons)) for row in left_over(plan)]
    objects = [
        [object_row(item) for item in plan.objects if (item.action is Action.DELETE) is gone] for gone in (False, True)
    ]
    costs = [] if spending is None else cost_parts(spending)
    return [
        section("What Karpenter would launch for pending pods", launched, notes=[_WHAT_IF]),
        section("Pending pods that cannot be placed", unplaced),
        *(section(f"Cost over {SPAN}, {how}", rows, "Cost", "More") for how, rows in costs),
        section("Nodes to create", [creation_row(item, domains=domains.get(item.name, "")) for item in claims.create]),
        *(
            section(f"Nodes to {verb}", [action_row(item, _SIGNS.get(verb, "-")) for item in actions])
            for verb, actions in node_actions(claims)
        ),
        section("Objects to apply", objects[0]),
        section("Objects to delete", objects[1]),
        section("Nodes of static NodePools", [static_pool_row(item) for item in plan.static_pools]),
        local_budgets_section(plan, plan.objects, zone),
        section("NodePools that allow no disruption now", _closed(plan)),
    ]


def _row(name: str, what: str, why: str) -> Row:
    return {"name": name, "what": what, "why": why, "fields": []}


def _closed(plan: Plan) -> list[Row]:
    """`headroom budgets` has the others."""
    closed: dict[tuple[str, str], list[str]] = {}
    for row in plan.budgets:
        if row.allowed == 0 and row.total:
            closed.setdefault((row.node_pool, row.why), []).append(row.reason)
    return [_row(f"NodePool {pool}", f"for {listed(reasons)}", why) for (pool, why), reasons in closed.items()]


def applied_words(change_set: ChangeSet) -> str:
    """A node that is held takes a write of its NodeClaim and one of itself, so the writes are not counted as changes are."""
    outcomes = [result.outcome for result in change_set.results]
    applied, waiting = outcomes.count(Outcome.APPLIED), outcomes.count(Outcome.SKIPPED)
    if waiting == len(change_set.failures):
        later = f"; {waiting:,} more {'waits' if waiting == 1 else 'wait'}" if waiting else ""
        return f"Applied, with {counted(applied, 'write')} to the cluster{later}."
    return f"Applied in part: {applied:,} of {counted(len(change_set.results), 'write')} to the cluster succeeded."


def waiting_lines(change_set: ChangeSet) -> Iterable[str]:
    """What the writes that a later pass makes wait for, each cause once."""
    objects: dict[str, list[str]] = {}
    for result in change_set.results:
        if result.outcome is Outcome.SKIPPED:
            objects.setdefault(result.message, []).append(str(result.write.ref))
    return [f"  {message}: {listed(refs, most=MOST_WAITING)}" for message, refs in objects.items()]


def pass_text(plan: Plan, change_set: ChangeSet | None, *, cluster: str, zone: tzinfo | None = None) -> str:
    """A plan and the result of applying it, as the daemon prints after a pass. change_set None: it was not applied."""
    text = page_text(plan_page(plan, cluster=cluster, zone=zone))
    if change_set is None:
        return text
    failed = (result for result in change_set.failures if result.outcome is not Outcome.SKIPPED)
    failures = (f"  {result.write.ref}: {result.message or result.outcome.value}" for result in failed)
    return text + terminal_lines([applied_words(change_set), *waiting_lines(change_set), *failures])


MOST_NAMES = 3
"""The most pods to name in one row; the rest is counted."""


@dataclass(frozen=True, slots=True)
class PendingLaunch:
    """New nodes of one NodePool in the same zones. types: how many nodes by cheapest instance type. price: USD an hour of all
    together, None if any is unknown."""

    node_pool: str
    places: str
    capacity_types: tuple[str, ...]
    types: tuple[tuple[str, int], ...]
    pods: int
    price: float | None

    @property
    def nodes(self) -> int:
        return sum(count for _, count in self.types)

    @property
    def is_paid(self) -> bool:
        """Whether all of them are from reservations, which are paid for in any case."""
        return self.price is not None and is_paid(self.price, self.capacity_types)

    @property
    def size(self) -> str:
        """`4 nodes for 12 pods, $2.2000/h`."""
        price = "price not known" if self.price is None else launch_price(self.price, self.capacity_types, self.nodes)
        return f"{counted(self.nodes, 'node')} for {counted(self.pods, 'pod')}, {price}"

    @property
    def kinds(self) -> str:
        """`2 × m-16x and 2 × m-4x; on-demand in zone-a`."""
        return f"{listed(f'{count:,} × {name}' for name, count in self.types)}; {self.places}"


@dataclass(frozen=True, slots=True)
class LeavingNode:
    """A node that is being deleted, and where its pods could be placed."""

    node: str
    pods: PendingOutcome


@dataclass(frozen=True, slots=True)
class LeftOver:
    """Pods that could not be placed for the same reasons."""

    names: tuple[str, ...]
    unplaced: tuple[UnplacedReason, ...]

    @property
    def title(self) -> str:
        """`Pod/shop/a and Pod/shop/b`, the first few by name."""
        return listed(self.names, most=MOST_NAMES)

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(reason_words(reason) for reason in self.unplaced)


def launches(plan: Plan) -> tuple[PendingLaunch, ...]:
    """New nodes that hold pending pods, by NodePool and place."""
    groups: dict[tuple[str, str], list[NodeClaimCreation]] = {}
    for creation in plan.node_claims.create:
        if _pods_on(creation):
            groups.setdefault((creation.planned.node_pool, _places(creation)), []).append(creation)
    return tuple(_launch(pool, places, members) for (pool, places), members in sorted(groups.items()))


def _pods_on(creation: NodeClaimCreation) -> int:
    return sum(holding.count for holding in creation.planned.holdings if holding.demand.kind == POD_KIND)


def _places(creation: NodeClaimCreation) -> str:
    planned = creation.planned
    zones = " or ".join(planned.zones) if len(planned.zones) <= MOST_ZONES else f"any of {len(planned.zones)} zones"
    return f"{' or '.join(planned.capacity_types)} in {zones}"


def _launch(pool: str, places: str, members: Iterable[NodeClaimCreation]) -> PendingLaunch:
    kinds: dict[str, int] = {}
    pods, price, known = 0, 0.0, True
    capacity_types: tuple[str, ...] = ()
    for creation in members:
        name = creation.planned.instance_types[0] if creation.planned.instance_types else "any type"
        kinds[name] = kinds.get(name, 0) + 1
        pods += _pods_on(creation)
        capacity_types = creation.planned.capacity_types
        price += creation.planned.price
        known = known and creation.planned.price_known
    types = tuple(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))
    return PendingLaunch(pool, places, capacity_types, types, pods, price if known else None)


def left_over(plan: Plan) -> tuple[LeftOver, ...]:
    """Pods without a place, grouped by equal reasons, the largest group first."""
    groups: dict[tuple[UnplacedReason, ...], list[str]] = {}
    for outcome in plan.demands:
        if outcome.demand.is_pending_pod and outcome.unplaced:
            groups.setdefault(outcome.unplaced_reasons, []).append(str(outcome.demand.ref))
    rows = [LeftOver(tuple(names), reasons) for reasons, names in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-len(row.names), row.names)))


def leaving_nodes(plan: Plan) -> tuple[LeavingNode, ...]:
    """Nodes being deleted whose pods need another place, by name, in a plan made with `--include-pending`."""
    by_node: dict[str, list[DemandOutcome]] = {}
    for outcome in plan.demands:
        if outcome.demand.leaves:
            by_node.setdefault(outcome.demand.leaves, []).append(outcome)
    return tuple(LeavingNode(node, PendingOutcome.of(outcomes)) for node, outcomes in sorted(by_node.items()))


def _whose(leaving: Sequence[LeavingNode]) -> str:
    """`2 pods of node-3, which is being deleted`, `9 pods of 2 nodes that are being deleted (node-3 and node-4)`."""
    pods = counted(sum(item.pods.pods for item in leaving), "pod")
    names = [item.node for item in leaving]
    if len(names) == 1:
        return f"{pods} of {names[0]}, which is being deleted"
    shown = listed(names, most=MOST_NAMES)
    return f"{pods} of {counted(len(names), 'node')} that are being deleted ({shown})"


def pending_words(plan: Plan) -> str:
    """One sentence about all pending pods and those of nodes being deleted; "" if there are none."""
    leaving = leaving_nodes(plan)
    waiting = [counted(plan.pending.pods, "pending pod")] if plan.pending.pods else []
    pending = sum((item.pods for item in leaving), plan.pending)
    if not pending.pods:
        return ""
    there = pending.placed_on_existing
    parts = ["1 fits an existing node" if there == 1 else f"{there:,} fit existing nodes"] if there else []
    if pending.placed_on_new:
        rows = launches(plan)
        nodes = counted(sum(row.nodes for row in rows), "new node")
        prices = [row.price for row in rows if row.price is not None]
        price = f" at {hourly(sum(prices))}" if len(prices) == len(rows) else ""
        if price and all(row.is_paid for row in rows):
            price = " at no further cost"
        parts.append(f"{pending.placed_on_new:,} would go on {nodes}{price}")
    if pending.unplaced:
        one = pending.unplaced == 1
        missing = "needs a node that does not exist yet" if one else "need nodes that do not exist yet"
        parts.append(f"{pending.unplaced:,} {'cannot be placed' if plan.include_pending else missing}")
    return f"{listed([*waiting, *([_whose(leaving)] if leaving else [])])}: {', '.join(parts)}"
