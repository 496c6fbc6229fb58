"""A plan as rows for text, Markdown and HTML, and what came of applying it as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import tzinfo

from reconciler.model.changes import Action, ChangeSet, DemandOutcome, NodeClaimCreation, Outcome, PendingOutcome, Plan
from reconciler.model.demand import Keeper
from reconciler.model.placement import PlannedNode
from reconciler.model.refs import POD_KIND, by_key, counted, listed
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
    SPAN,
    demand_facts,
    is_paid,
    lack_words,
    launch_price,
    node_actions,
    order_words,
    own_domains,
    place_words,
    price_notes,
    reason_words,
    sample_words,
    spending_words,
    summary,
)
from reconciler.report.timeline.rows import week_rows
from reconciler.report.words import (
    MOST_NAMES,
    NOT_SHOWN,
    Row,
    an_hour,
    change_words,
    hourly,
    keeper_words,
    local_zone,
    moment,
    short_revision,
    size_words,
    table_row,
)

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
        notes=[
            *filter(None, [pending_words(plan)]),
            *(f"Nothing is deleted or released: {reason}" for reason in plan.blocked),
            *plan.notes,
        ],
    )


def _cost_words(plan: Plan, spending: Spending | None) -> str:
    before, after = plan.cost.per_hour_before, plan.cost.per_hour_after
    hours = f"{an_hour(before)}/h → {an_hour(after)}/h"
    if spending is not None:
        return f"{hours}; {spending_words(plan, spending)}"
    return f"{hours} ({change_words(before * HOURS_OF_SPAN, after * HOURS_OF_SPAN)} over {SPAN} at this price)"


def _demands(plan: Plan) -> Row:
    outcomes = [outcome for outcome in plan.demands if not outcome.demand.is_pending_pod]
    note = order_words(outcomes) if len(outcomes) > 1 and any(outcome.unplaced for outcome in outcomes) else ""
    if not outcomes:
        why = "what is declared has errors" if plan.has_errors else "no buffer or request is declared"
        note = f"Nothing to keep ready: {why}."
    return listing(list(map(_demand, outcomes)), note=note)


def _demand(outcome: DemandOutcome) -> Row:
    demand, service = outcome.demand, outcome.service
    why = lack_words(outcome.unplaced_reasons, service)
    if service.by is not Keeper.HEADROOM and not service.is_left:
        why.append(f"kept by {keeper_words(service)}")
    if not service.certain:
        why.append(NOT_SHOWN)
    return {
        "name": str(demand.ref),
        "where": demand.source.in_file if demand.source else "",
        "desired": size_words(service),
        "existing": f"{outcome.on_existing:,}",
        "new": f"{outcome.on_new:,}",
        "unplaced": f"{outcome.unplaced:,}",
        "why": why,
        "facts": demand_facts(outcome),
    }


def _sections(plan: Plan, spending: Spending | None, zone: tzinfo | None) -> list[Row]:
    claims, domains = plan.node_claims, own_domains(plan)
    objects = [
        [object_row(item) for item in plan.objects if (item.action is Action.DELETE) is gone] for gone in (False, True)
    ]
    costs = [] if spending is None else cost_parts(spending)
    changing = {item.ref.name for item in plan.objects if item.ref.kind == "NodePool"}
    return [
        section("What Karpenter would launch for pending pods", list(_launches(plan)), notes=[_WHAT_IF]),
        section("Pending pods that cannot be placed", _left_over(plan)),
        *(section(f"Cost over {SPAN}, {how}", rows, "Cost", "More") for how, rows in costs),
        section("Nodes to create", [creation_row(item, domains=domains.get(item.name, "")) for item in claims.create]),
        *(
            section(f"Nodes to {verb}", [action_row(item, _SIGNS.get(verb, "-")) for item in actions])
            for verb, actions in node_actions(claims)
        ),
        section("Objects to apply", objects[0]),
        section("Objects to delete", objects[1]),
        section("Nodes of static NodePools", [static_pool_row(item) for item in plan.static_pools]),
        local_budgets_section([pool for pool in plan.local_budgets if pool.node_pool in changing], zone),
        section("NodePools that allow no disruption now", _closed(plan)),
    ]


def _closed(plan: Plan) -> list[Row]:
    """`headroom budgets` has the others."""
    closed = by_key(((row.node_pool, row.why), row.reason) for row in plan.budgets if row.allowed == 0 and row.total)
    return [table_row(f"NodePool {pool}", f"for {listed(reasons)}", why) for (pool, why), reasons in closed.items()]


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
    skipped = (result for result in change_set.results if result.outcome is Outcome.SKIPPED)
    objects = by_key((result.message, str(result.write.ref)) for result in skipped)
    return [f"  {message}: {listed(refs, most=MOST_NAMES)}" for message, refs in objects.items()]


def pass_text(plan: Plan, change_set: ChangeSet | None, *, cluster: str, zone: tzinfo | None = None) -> str:
    """A plan and the result of applying it, as the daemon prints after a pass. change_set None: it was not applied."""
    text = page_text(plan_page(plan, cluster=cluster, zone=zone))
    if change_set is None:
        return text
    failed = (result for result in change_set.failures if result.outcome is not Outcome.SKIPPED)
    failures = (f"  {result.write.ref}: {result.message or result.outcome.value}" for result in failed)
    return text + terminal_lines([applied_words(change_set), *waiting_lines(change_set), *failures])


def _for_pods(plan: Plan) -> list[NodeClaimCreation]:
    """New nodes that hold pending pods."""
    return [item for item in plan.node_claims.create if _pods_on(item.planned)]


def _pods_on(planned: PlannedNode) -> int:
    return sum(holding.count for holding in planned.holdings if holding.demand.kind == POD_KIND)


def _launches(plan: Plan) -> Iterator[Row]:
    """New nodes for pending pods, by NodePool and place: `4 nodes for 12 pods, $2.2000/h; 2 × m-16x and 2 × m-4x; on-demand in zone-a`."""
    launched = (item.planned for item in _for_pods(plan))
    groups = by_key(((planned.node_pool, place_words(planned)), planned) for planned in launched)
    for (pool, places), nodes in sorted(groups.items()):
        is_known = all(item.price_known for item in nodes)
        total = sum(item.price for item in nodes)
        price = launch_price(total, nodes[0].capacity_types, len(nodes)) if is_known else "price not known"
        pods = sum(map(_pods_on, nodes))
        types = Counter(item.instance_types[0] if item.instance_types else "any type" for item in nodes)
        kinds = listed(
            f"{count:,} × {name}" for name, count in sorted(types.items(), key=lambda item: (-item[1], item[0]))
        )
        size = f"{counted(len(nodes), 'node')} for {counted(pods, 'pod')}, {price}"
        yield table_row(f"NodePool {pool}", size, f"{kinds}; {places}")


def _left_over(plan: Plan) -> list[Row]:
    """Pods without a place, grouped by equal reasons, the largest group first."""
    pods = (outcome for outcome in plan.demands if outcome.demand.is_pending_pod and outcome.unplaced)
    groups = by_key((outcome.unplaced_reasons, str(outcome.demand.ref)) for outcome in pods)
    return [
        table_row(listed(names, most=MOST_NAMES), counted(len(names), "pod"), "; ".join(map(reason_words, reasons)))
        for reasons, names in sorted(groups.items(), key=lambda item: (-len(item[1]), item[1]))
    ]


def leaving_nodes(plan: Plan) -> dict[str, PendingOutcome]:
    """By node that is being deleted, in a plan made with `--include-pending`: where its pods could be placed."""
    by_node = by_key((outcome.demand.leaves, outcome) for outcome in plan.demands if outcome.demand.leaves)
    return {node: PendingOutcome.of(outcomes) for node, outcomes in sorted(by_node.items())}


def _whose(leaving: Mapping[str, PendingOutcome]) -> str:
    """`2 pods of node-3, which is being deleted`, `9 pods of 2 nodes that are being deleted (node-3 and node-4)`."""
    pods = counted(sum(item.pods for item in leaving.values()), "pod")
    if len(leaving) == 1:
        return f"{pods} of {next(iter(leaving))}, which is being deleted"
    return f"{pods} of {counted(len(leaving), 'node')} that are being deleted ({listed(leaving, most=MOST_NAMES)})"


def pending_words(plan: Plan) -> str:
    """One sentence about all pending pods and those of nodes being deleted; "" if there are none."""
    leaving = leaving_nodes(plan)
    waiting = [counted(plan.pending.pods, "pending pod")] if plan.pending.pods else []
    pending = sum(leaving.values(), plan.pending)
    if not pending.pods:
        return ""
    there = pending.placed_on_existing
    parts = ["1 fits an existing node" if there == 1 else f"{there:,} fit existing nodes"] if there else []
    if pending.placed_on_new:
        nodes = [item.planned for item in _for_pods(plan)]
        price = f" at {hourly(sum(item.price for item in nodes))}"
        if not all(item.price_known for item in nodes):
            price = ""
        elif all(is_paid(item.price, item.capacity_types) for item in nodes):
            price = " at no further cost"
        parts.append(f"{pending.placed_on_new:,} would go on {counted(len(nodes), 'new node')}{price}")
    if pending.unplaced:
        one = pending.unplaced == 1
        missing = "needs a node that does not exist yet" if one else "need nodes that do not exist yet"
        parts.append(f"{pending.unplaced:,} {'cannot be placed' if plan.include_pending else missing}")
    return f"{listed([*waiting, *([_whose(leaving)] if leaving else [])])}: {', '.join(parts)}"
