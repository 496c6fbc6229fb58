"""A plan as plain rows for the Markdown and HTML templates.

Rows contain only strings and numbers: the templates decide the layout, this module the words.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from reconciler.model.changes import (
    Action,
    DemandOutcome,
    Plan,
)
from reconciler.model.demand import Keeper
from reconciler.model.spending import Spending
from reconciler.model.timelines import CapacityTimeline
from reconciler.report.costs import cost_parts
from reconciler.report.drawing.time_axis import local_zone
from reconciler.report.findings import finding_words
from reconciler.report.plan.page_rows import (
    action_row,
    cost_row,
    creation_row,
    listing,
    local_budgets_section,
    object_row,
    section,
    static_pool_row,
)
from reconciler.report.plan.pending import LeftOver, PendingLaunch, launches, left_over, pending_words
from reconciler.report.plan.spending import (
    SPAN,
    price_notes,
    sample_words,
    spending_words,
)
from reconciler.report.plan.words import reason_words, summary
from reconciler.report.timeline.chart import timeline_chart
from reconciler.report.timeline.rows import week_rows
from reconciler.report.words import NOT_SHOWN, counted, keeper_words, moment, short_revision, size_words


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
                section("Pending pods that cannot be placed", [_left_over(row) for row in left_over(plan)]),
                *_cost_sections(spending),
                section("Nodes to create", [creation_row(item) for item in plan.node_claims.create]),
                section("Nodes to hold", [action_row(item) for item in plan.node_claims.hold]),
                section("Nodes to release", [action_row(item) for item in plan.node_claims.release]),
                section("Nodes to untaint", [action_row(item) for item in plan.node_claims.untaint]),
                section("Nodes to delete", [action_row(item) for item in plan.node_claims.delete]),
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


def _left_over(row: LeftOver) -> dict[str, Any]:
    return {"name": row.title, "what": counted(len(row.names), "pod"), "why": "; ".join(row.reasons), "fields": []}
