"""Plans and differences as plain rows for the Markdown and HTML templates. Called by cli, which renders the rows.

Rows are strings and numbers only: the templates decide layout, this module decides words.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo
from typing import Any

from reconciler.model.changes import (
    HOURS_PER_MONTH,
    Action,
    DemandOutcome,
    NodeClaimAction,
    NodeClaimCreation,
    ObjectChange,
    Plan,
    StaticPoolChange,
)
from reconciler.model.findings import Finding
from reconciler.model.timelines import CapacityTimeline
from reconciler.report.difference import DemandChange, Difference
from reconciler.report.local_budgets import changing_local_budgets, validity, written_and_compiled
from reconciler.report.pending import Launch, LeftOver, launches, left_over, pending_words
from reconciler.report.time_axis import local_zone
from reconciler.report.timeline_chart import difference_chart, timeline_chart
from reconciler.report.timeline_rows import change_rows, week_rows
from reconciler.report.words import (
    counted,
    dollars,
    held,
    hourly,
    moment,
    node_name,
    offered,
    reason_words,
    short_revision,
    signed_dollars,
    static_words,
    summary,
    value,
)

MOST_ROWS = 60
"""Rows of one section: GitHub takes 65,536 characters a comment, and the summary must always be whole."""


def plan_page(
    plan: Plan, *, cluster: str, timeline: CapacityTimeline | None = None, zone: tzinfo | None = None
) -> dict[str, Any]:
    """For `report.md.j2` and `report.html.j2`. timeline: the time to come, told where it is there."""
    place = zone or local_zone(plan.now)
    before, after = plan.cost.per_hour_before, plan.cost.per_hour_after
    return {
        "title": f"Capacity plan for {cluster}",
        "revision": short_revision(plan.revision),
        "base": None,
        "when": moment(plan.now, zone),
        "summary": summary(plan),
        "has_changes": plan.has_changes,
        "cost": _cost(before, after),
        "assumptions": list(plan.cost.assumptions),
        "demands": _cut(
            [_demand(outcome) for outcome in plan.demands if not outcome.demand.is_pending_pod],
        ),
        "sections": [
            section
            for section in (
                _section("What Karpenter would launch for pending pods", [_launch(row) for row in launches(plan)]),
                _section("Pending pods that can be placed nowhere", [_left_over(row) for row in left_over(plan)]),
                _section("Nodes to create", [_creation(item) for item in plan.node_claims.create]),
                _section("Nodes to hold", [_action(item) for item in plan.node_claims.hold]),
                _section("Nodes to release", [_action(item) for item in plan.node_claims.release]),
                _section("Nodes to delete", [_action(item) for item in plan.node_claims.delete]),
                _section("Objects to apply", [_object(item) for item in plan.objects]),
                _section("Nodes of static NodePools", [_static_pool(item) for item in plan.static_pools]),
                _local_budgets(plan, plan.objects, zone),
            )
            if section["count"]
        ],
        "findings": _cut([finding_row(item) for item in plan.findings]),
        "week": None if timeline is None else week_rows(timeline, place),
        "week_chart": "" if timeline is None else timeline_chart(timeline, zone=place),
        "notes": [
            *([pending_words(plan)] if pending_words(plan) else []),
            *(f"Nothing is deleted or released: {reason}" for reason in plan.blocked),
            *plan.notes,
        ],
    }


def difference_page(
    change: Difference,
    *,
    cluster: str,
    timelines: tuple[CapacityTimeline, CapacityTimeline] | None = None,
    zone: tzinfo | None = None,
) -> dict[str, Any]:
    """The same shape as `plan_page`, for what merging would change. timelines: the base's and the head's."""
    place = zone or local_zone(change.head.now)
    static = sum(item.after - item.before for item in change.static_pools)
    nodes = len(change.added_nodes) - len(change.removed_nodes) + static
    objects = len(change.objects)
    parts = []
    if change.added_nodes or change.removed_nodes or change.static_pools:
        parts.append(f"{nodes:+d} nodes")
    if change.released:
        parts.append(f"{len(change.released)} released")
    if objects:
        parts.append(f"{objects} object{'s' if objects != 1 else ''} changed")
    words = ", ".join(parts) if parts else "No change in capacity"
    return {
        "title": f"Capacity change on {cluster}",
        "revision": short_revision(change.head.revision),
        "base": short_revision(change.base.revision),
        "when": moment(change.head.now, zone),
        "summary": f"{words}, {signed_dollars(change.per_month_delta)} a month",
        "has_changes": change.has_changes,
        "cost": _cost(change.per_hour_before, change.per_hour_after),
        "assumptions": list(change.head.cost.assumptions),
        "demands": _cut([_demand_change(item) for item in change.demands]),
        "sections": [
            section
            for section in (
                _section("Nodes that appear", [_creation(item) for item in change.added_nodes]),
                _section("Nodes no longer needed", [_creation(item) for item in change.removed_nodes]),
                _section("Nodes released to Karpenter", [_action(item) for item in change.released]),
                _section("Nodes kept", [_action(item) for item in change.kept]),
                _section("Objects that change", [_object(item) for item in change.objects]),
                _section("Nodes of static NodePools", [_static_pool(item) for item in change.static_pools]),
                _local_budgets(change.head, change.objects, zone),
            )
            if section["count"]
        ],
        "findings": _cut([finding_row(item) for item in change.new_findings]),
        "notes": [*(f"Nothing is deleted or released: {reason}" for reason in change.head.blocked), *change.head.notes],
        "week": None if timelines is None else change_rows(*timelines, place),
        "week_chart": "" if timelines is None else difference_chart(*timelines, zone=place),
    }


def _cut(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"rows": rows[:MOST_ROWS], "count": len(rows), "left": max(0, len(rows) - MOST_ROWS)}


def _local_budgets(plan: Plan, objects: Iterable[ObjectChange], zone: tzinfo | None) -> dict[str, Any]:
    pools = changing_local_budgets(plan, objects)
    rows = [
        {
            "name": f"NodePool/{pool.node_pool}",
            "what": f"{written}, in {pool.written.time_zone}",
            "fields": compiled,
            "why": "never open until then",
        }
        for pool in pools
        for written, compiled in written_and_compiled(pool)
    ]
    section = _section("Budgets in local time", rows)
    notes = [f"NodePool/{pool.node_pool}: {validity(pool, zone)}." for pool in pools[:MOST_ROWS]]
    return {**section, "columns": ["Name", "Written", "Applied, in UTC"], "third": "Applied, in UTC", "notes": notes}


def _section(title: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """columns: what stands over name, what and why; rows with fields are updates, whose third column is their fields.

    third: what the third column is called in every row, where it is not one of these two; notes: lines below the table.
    """
    third = "Fields" if any(row["fields"] for row in rows) else "Why"
    return {"title": title, "columns": ["Name", "What", third], "third": "", "notes": [], **_cut(rows)}


def _cost(before: float, after: float) -> dict[str, str]:
    return {
        "hour_before": dollars(before),
        "hour_after": dollars(after),
        "month_before": dollars(before * HOURS_PER_MONTH),
        "month_after": dollars(after * HOURS_PER_MONTH),
        "month_delta": signed_dollars((after - before) * HOURS_PER_MONTH),
    }


def _demand(outcome: DemandOutcome) -> dict[str, Any]:
    demand = outcome.demand
    not_ready = next((item for item in outcome.conditions if item.type == "ReadyForProvisioning"), None)
    why = [reason_words(reason) for reason in outcome.unplaced_reasons]
    if demand.desired is None and not_ready is not None:
        why.append(not_ready.message or not_ready.reason)
    return {
        "name": str(demand.ref),
        "desired": "not ready" if demand.desired is None else f"{demand.desired:,}",
        "existing": f"{outcome.on_existing:,}",
        "new": f"{outcome.on_new:,}",
        "unplaced": f"{outcome.unplaced:,}",
        "why": "; ".join(why),
    }


def _demand_change(item: DemandChange) -> dict[str, Any]:
    return {
        "name": str(item.ref),
        "desired": f"{item.before_words} → {item.after_words}",
        "existing": "",
        "new": "",
        "unplaced": f"{item.unplaced:,}",
        "why": "",
    }


def _creation(creation: NodeClaimCreation) -> dict[str, Any]:
    planned = creation.planned
    return {
        "name": creation.name,
        "what": offered(creation),
        "why": f"NodePool {planned.node_pool}, for {held(planned.holdings)}",
        "fields": [],
    }


def _launch(row: Launch) -> dict[str, Any]:
    return {"name": f"NodePool {row.node_pool}", "what": row.size, "why": row.kinds, "fields": []}


def _left_over(row: LeftOver) -> dict[str, Any]:
    return {"name": row.title, "what": counted(len(row.names), "pod"), "why": "; ".join(row.reasons), "fields": []}


def _action(action: NodeClaimAction) -> dict[str, Any]:
    price = "" if action.price is None else hourly(action.price)
    return {"name": node_name(action), "what": price, "why": action.reason or held(action.holdings), "fields": []}


def _object(change: ObjectChange) -> dict[str, Any]:
    """Fields only of an update: those of a new object are its manifest, which is one click away."""
    why = change.reason
    if change.action is Action.CREATE and change.position:
        why = f"declared in {change.position.file}:{change.position.line}"
    fields = []
    if change.action is Action.UPDATE:
        fields = [f"{item.path}: {value(item.before)} → {value(item.after)}" for item in change.changes[:MOST_ROWS]]
        left = len(change.changes) - len(fields)
        fields += [f"… and {left:,} more"] if left else []
    return {"name": str(change.ref), "what": str(change.action), "why": why, "fields": fields}


def _static_pool(item: StaticPoolChange) -> dict[str, Any]:
    why = f"{item.before:,} → {item.after:,}, which Karpenter does by itself"
    return {"name": f"NodePool {item.node_pool}", "what": static_words(item), "why": why, "fields": []}


def finding_row(finding: Finding) -> dict[str, str]:
    """What the page's template says of one finding."""
    return {
        "where": str(finding.position) if finding.position else "",
        "severity": str(finding.severity),
        "message": f"{finding.ref}: {finding.message}" if finding.ref else finding.message,
        "code": finding.code,
        "hint": finding.hint,
    }
