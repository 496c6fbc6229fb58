"""Sections and rows that the pages of a plan and of a difference share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Any

from reconciler.model.changes import (
    Action,
    NodeClaimAction,
    NodeClaimCreation,
    ObjectChange,
    Plan,
    StaticPoolChange,
)
from reconciler.report.budgets.local import changing_local_budgets, validity, written_and_compiled
from reconciler.report.escaping import masked_changes
from reconciler.report.plan.spending import HOURS_OF_SPAN
from reconciler.report.plan.words import held, made_by_words, node_name, offered, rendered_lines, static_words, value
from reconciler.report.words import dollars, hourly, signed_dollars


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
