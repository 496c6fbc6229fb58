"""What merging would change, as rows for the Markdown and HTML templates. Called by `headroom diff`."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from reconciler.model.timelines import CapacityTimeline
from reconciler.report.difference.demands import DemandChange
from reconciler.report.difference.difference import Difference
from reconciler.report.drawing.time_axis import local_zone
from reconciler.report.findings.page import finding_row
from reconciler.report.plan.page_rows import (
    action_row,
    cost_row,
    creation_row,
    cut,
    local_budgets_section,
    object_row,
    section,
    static_pool_row,
)
from reconciler.report.timeline.chart import difference_chart
from reconciler.report.timeline.rows import change_rows
from reconciler.report.words import moment, short_revision, signed_dollars


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
        "cost": cost_row(change.per_hour_before, change.per_hour_after),
        "assumptions": list(change.head.cost.assumptions),
        "demands": cut([_demand_change(item) for item in change.demands]),
        "sections": [
            section
            for section in (
                section("Nodes that appear", [creation_row(item) for item in change.added_nodes]),
                section("Nodes no longer needed", [creation_row(item) for item in change.removed_nodes]),
                section("Nodes released to Karpenter", [action_row(item) for item in change.released]),
                section("Nodes kept", [action_row(item) for item in change.kept]),
                section("Objects that change", [object_row(item) for item in change.objects]),
                section("Nodes of static NodePools", [static_pool_row(item) for item in change.static_pools]),
                local_budgets_section(change.head, change.objects, zone),
            )
            if section["count"]
        ],
        "findings": cut([finding_row(item) for item in change.new_findings]),
        "notes": [*(f"Nothing is deleted or released: {reason}" for reason in change.head.blocked), *change.head.notes],
        "week": None if timelines is None else change_rows(*timelines, place),
        "week_chart": "" if timelines is None else difference_chart(*timelines, zone=place),
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
