"""A plan as plain rows for the Markdown and HTML templates; the page of a difference shares sections and rows.

Rows contain only strings and numbers: the templates decide the layout, this module the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Any

from reconciler.model.changes import (
    Action,
    DemandOutcome,
    NodeClaimAction,
    NodeClaimCreation,
    ObjectChange,
    Plan,
    StaticPoolChange,
)
from reconciler.model.demand import Keeper
from reconciler.model.spending import Spending
from reconciler.model.timelines import CapacityTimeline
from reconciler.report.budgets.local import changing_local_budgets, validity, written_and_compiled
from reconciler.report.costs import cost_parts
from reconciler.report.drawing.time_axis import local_zone
from reconciler.report.escaping import masked_changes
from reconciler.report.findings import finding_words
from reconciler.report.plan.pending import LeftOver, PendingLaunch, launches, left_over, pending_words
from reconciler.report.plan.words import (
    HOURS_OF_SPAN,
    SPAN,
    held,
    made_by_words,
    node_actions,
    node_name,
    offered,
    price_notes,
    reason_words,
    rendered_lines,
    sample_words,
    spending_words,
    static_words,
    summary,
    value,
)
from reconciler.report.timeline.chart import timeline_chart
from reconciler.report.timeline.rows import week_rows
from reconciler.report.words import (
    NOT_SHOWN,
    counted,
    dollars,
    hourly,
    keeper_words,
    moment,
    short_revision,
    signed_dollars,
    size_words,
)


def trimmed(page: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The page with at most so many rows in each list, and counts of what is left out. The summary stays complete."""

    def fewer(item: Mapping[str, Any]) -> dict[str, Any]:
        shown = [{**row, **_fewer_fields(row, most)} for row in item["rows"][:most]]
        return {**item, "rows": shown, "left": item["count"] - _things(shown)}

    lists = {name: fewer(page[name]) for name in ("demands", "findings", "fixed", "standing") if page.get(name)}
    return {**page, **lists, "sections": [fewer(item) for item in page["sections"]]}


def _fewer_fields(row: Mapping[str, Any], most: int) -> dict[str, Any]:
    fields = row.get("fields")
    if not fields or len(fields) <= most:
        return {}
    return {"fields": [*fields[:most], f"… and {len(fields) - most:,} more"]}


def listing(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """All rows. count: how many things they stand for. left: how many things are left out, none as yet."""
    return {"rows": rows, "count": _things(rows), "left": 0}


def _things(rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(row.get("things", 1) for row in rows)


def local_budgets_section(plan: Plan, objects: Iterable[ObjectChange], zone: tzinfo | None) -> dict[str, Any]:
    pools = changing_local_budgets(plan, objects)
    rows = [
        {
            "name": f"NodePool/{pool.node_pool}",
            "what": f"{written}, in {pool.written.time_zone}",
            "fields": compiled,
            "why": "no window until then",
        }
        for pool in pools
        for written, compiled in written_and_compiled(pool)
    ]
    local = section("Budgets in local time", rows)
    notes = [f"NodePool/{pool.node_pool}: {validity(pool, zone)}." for pool in pools]
    return {**local, "columns": ["Name", "Written", "Applied, in UTC"], "third": "Applied, in UTC", "notes": notes}


def section(title: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A section. columns: the headings of name, what and why. Rows with fields are updates, with these fields in the third column.

    third: replaces the heading of the third column. notes: lines below the table.
    """
    third = "Fields" if any(row["fields"] for row in rows) else "Why"
    return {"title": title, "columns": ["Name", "What", third], "third": "", "notes": [], **listing(rows)}


def cost_row(before: float, after: float) -> dict[str, str]:
    return {
        "hour_before": dollars(before),
        "hour_after": dollars(after),
        "month_before": dollars(before * HOURS_OF_SPAN),
        "month_after": dollars(after * HOURS_OF_SPAN),
        "month_delta": signed_dollars((after - before) * HOURS_OF_SPAN),
    }


def creation_row(creation: NodeClaimCreation) -> dict[str, Any]:
    planned = creation.planned
    return {
        "name": creation.name,
        "what": offered(creation),
        "why": f"NodePool {planned.node_pool}, for {held(planned.holdings)}{made_by_words(creation)}",
        "fields": [],
    }


def action_row(action: NodeClaimAction) -> dict[str, Any]:
    price = "" if action.price is None else hourly(action.price)
    return {"name": node_name(action), "what": price, "why": action.reason or held(action.holdings), "fields": []}


def object_row(change: ObjectChange) -> dict[str, Any]:
    """A row for an object. Only an update lists fields, since a new object's are in its manifest."""
    why = change.reason
    if change.action is Action.CREATE and change.position:
        why = f"declared in {change.position.file}:{change.position.line}"
    fields = []
    if change.action is Action.UPDATE:
        fields = [f"{item.path}: {value(item.before)} → {value(item.after)}" for item in masked_changes(change.changes)]
    fields += [f"rendered {line}" for line in rendered_lines(change)]
    # The kind is part of the row, so that a deleted NodePool is not among "6 more" buffers.
    return {
        "kind": change.ref.kind,
        "name": str(change.ref),
        "what": str(change.action),
        "why": why,
        "fields": fields,
    }


def static_pool_row(item: StaticPoolChange) -> dict[str, Any]:
    why = f"{item.before:,} → {item.after:,}, made by Karpenter itself"
    return {"name": f"NodePool {item.node_pool}", "what": static_words(item), "why": why, "fields": []}


def plan_page(
    plan: Plan,
    *,
    cluster: str,
    snapshot: str = "",
    timeline: CapacityTimeline | None = None,
    spending: Spending | None = None,
    zone: tzinfo | None = None,
) -> dict[str, Any]:
    """For `report.md.j2` and `report.html.j2`. timeline: the coming week, if it is to be shown. spending: over the coming 30 days.

    snapshot: in words, the published snapshot that it was planned with.
    """
    place = zone or local_zone(plan.now)
    return {
        "title": f"Capacity plan for {cluster}",
        "revision": short_revision(plan.revision),
        "base": None,
        "sample": sample_words(plan),
        "when": ", ".join(filter(None, (moment(plan.now, zone), snapshot))),
        "summary": summary(plan, zone),
        "has_changes": plan.has_changes,
        "cost": cost_row(plan.cost.per_hour_before, plan.cost.per_hour_after),
        "month": None if spending is None else {"words": spending_words(plan, spending)},
        "assumptions": [*plan.cost.assumptions, *(price_notes(plan) if spending is None else spending.notes)],
        "demands": listing(
            [_demand(outcome) for outcome in plan.demands if not outcome.demand.is_pending_pod],
        ),
        "sections": [
            section
            for section in (
                section("What Karpenter would launch for pending pods", [_launch(row) for row in launches(plan)]),
                section("Pending pods that cannot be placed", [_left_over_row(row) for row in left_over(plan)]),
                *_cost_sections(spending),
                section("Nodes to create", [creation_row(item) for item in plan.node_claims.create]),
                *(
                    section(f"Nodes to {verb}", list(map(action_row, actions)))
                    for verb, actions in node_actions(plan.node_claims)
                ),
                section(
                    "Objects to apply", [object_row(item) for item in plan.objects if item.action is not Action.DELETE]
                ),
                section(
                    "Objects to delete", [object_row(item) for item in plan.objects if item.action is Action.DELETE]
                ),
                section("Nodes of static NodePools", [static_pool_row(item) for item in plan.static_pools]),
                local_budgets_section(plan, plan.objects, zone),
            )
            if section["count"]
        ],
        "findings": listing([finding_words(item) for item in plan.findings]),
        "week": None if timeline is None else week_rows(timeline, place),
        "week_chart": "" if timeline is None else timeline_chart(timeline, zone=place),
        "notes": [
            *([pending_words(plan)] if pending_words(plan) else []),
            *(f"Nothing is deleted or released: {reason}" for reason in plan.blocked),
            *plan.notes,
        ],
    }


def _cost_sections(spending: Spending | None) -> list[dict[str, Any]]:
    if spending is None:
        return []
    return [
        {**section(f"Cost over {SPAN}, {how}", rows), "columns": ["Name", "Cost", "More"], "third": "More"}
        for how, rows in cost_parts(spending)
    ]


def _demand(outcome: DemandOutcome) -> dict[str, Any]:
    demand = outcome.demand
    service = outcome.service
    why = [reason_words(reason) for reason in outcome.unplaced_reasons]
    if service.why and not why:
        why.append(service.why)
    if service.by is not Keeper.HEADROOM and not service.is_left:
        why.append(f"kept by {keeper_words(service)}")
    if not service.certain:
        why.append(NOT_SHOWN)
    return {
        "name": str(demand.ref),
        "desired": size_words(service),
        "existing": f"{outcome.on_existing:,}",
        "new": f"{outcome.on_new:,}",
        "unplaced": f"{outcome.unplaced:,}",
        "why": "; ".join(why),
    }


def _launch(row: PendingLaunch) -> dict[str, Any]:
    return {"name": f"NodePool {row.node_pool}", "what": row.size, "why": row.kinds, "fields": []}


def _left_over_row(row: LeftOver) -> dict[str, Any]:
    return {"name": row.title, "what": counted(len(row.names), "pod"), "why": "; ".join(row.reasons), "fields": []}
