"""What merging would change, as JSON (`headroom.dev/diff/v1`). Called by `headroom diff`."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from reconciler.model.nodes import ForetoldDrift
from reconciler.model.refs import ObjectRef
from reconciler.report.costs import CostChange, CostRow, Rise, Shortfall, WindowRow
from reconciler.report.difference.difference import DemandChange, Difference, unplaced
from reconciler.report.difference.headline import headline
from reconciler.report.difference.page import assumptions, notes
from reconciler.report.difference.room import RoomChange
from reconciler.report.escaping import members, timestamp
from reconciler.report.findings import finding_row
from reconciler.report.plan.document import (
    action_row,
    creation_row,
    money,
    object_row,
    plan_document,
    reference_row,
    service_row,
    static_pool_row,
    unplaced_reason_row,
)

DIFF_SCHEMA = "headroom.dev/diff/v1"
_NOT_WORKED_OUT: dict[str, Any] = {"over30Days": None, "byDemand": [], "byNodePool": [], "byScheduleValue": []}


def difference_document(change: Difference) -> dict[str, Any]:
    """The difference as `headroom.dev/diff/v1`: both plans complete, and what differs."""
    return {
        "schemaVersion": DIFF_SCHEMA,
        "summary": headline(change, UTC),
        **members(change, "conflicts", "failed_gates"),
        "notJudged": list(change.unjudged),
        "notes": notes(change),
        "base": plan_document(change.base),
        "head": plan_document(change.head),
        "changes": {
            "demands": [_demand_row(item) for item in change.demands],
            "later": [_later_row(ref, loss) for ref, loss in change.later],
            "lessRoom": [_room_row(item) for item in change.room.less],
            "moreRoom": [_room_row(item) for item in change.room.more],
            "drift": [_drift_row(item) for item in change.drift],
            "nodeClaims": {
                "added": list(map(creation_row, change.added_nodes)),
                "removed": list(map(creation_row, change.removed_nodes)),
                "released": list(map(action_row, change.released)),
                "kept": list(map(action_row, change.kept)),
            },
            "objects": [object_row(item) for item in change.objects],
            "templates": [object_row(item) for item in change.templates],
            "staticPools": [static_pool_row(item) for item in change.static_pools],
            "cost": {
                "perHourBefore": round(change.per_hour_before, 6),
                "perHourAfter": round(change.per_hour_after, 6),
                "perMonthDelta": round(change.per_month_delta, 6),
                "perHourNow": money(change.per_hour_now),
                "currency": change.head.cost.currency,
                **(_NOT_WORKED_OUT if change.cost is None else _cost(change.cost)),
                "assumptions": assumptions(change),
            },
            "findings": {
                "new": [finding_row(finding) for finding in change.new_findings],
                "fixed": [finding_row(finding) for finding in change.fixed_findings],
                "existing": [finding_row(finding) for finding in change.left_errors],
            },
        },
    }


def _demand_row(item: DemandChange) -> dict[str, Any]:
    return {
        **reference_row(item.ref),
        "before": None if item.before is None else item.before.wanted,
        "after": None if item.after is None else item.after.wanted,
        "unplacedBefore": unplaced(item.before),
        "unplaced": unplaced(item.after),
        "unplacedReasons": [unplaced_reason_row(reason) for reason in item.reasons],
        "serviceBefore": None if item.before is None else service_row(item.before),
        "service": None if item.after is None else service_row(item.after),
    }


def _later_row(ref: ObjectRef, loss: Rise[Shortfall]) -> dict[str, Any]:
    return {
        **reference_row(ref),
        "first": timestamp(loss.since),
        "from": timestamp(loss.at),
        "unplaced": loss.most.chunks,
        "ready": not loss.most.unready,
        "why": loss.most.why or None,
    }


def _room_row(item: RoomChange) -> dict[str, Any]:
    return {
        **reference_row(item.ref),
        **members(item, "before", "after"),
        "from": timestamp(item.at),
        "spans": [{"start": timestamp(start), "end": timestamp(end)} for start, end in item.spans],
        "chunk": None if item.chunk is None else {"before": item.chunk[0], "after": item.chunk[1]},
        "why": item.why or None,
    }


def _drift_row(item: ForetoldDrift) -> dict[str, Any]:
    opens = None if item.opens is None else timestamp(item.opens)
    return {**members(item, "node_pool", "nodes", "why"), "atOnce": item.budget, "from": opens}


def _cost(cost: CostChange) -> dict[str, Any]:
    """USD over the coming 30 days."""
    return {
        "over30Days": {"before": money(cost.before), "after": money(cost.after), "delta": money(cost.delta)},
        "byDemand": [
            {
                **reference_row(item.ref),
                **_sums(item),
                "perReplica": None if item.per_replica is None else money(item.per_replica),
                "perHour": None if item.per_hour is None else money(item.per_hour),
                "keptBy": "headroom" if item.kept_by is None else str(item.kept_by.by),
            }
            for item in cost.demands()
            if item.ref is not None
        ],
        "byNodePool": [{"name": item.name, **_sums(item)} for item in cost.pools()],
        "byScheduleValue": [_window(item) for item in cost.windows()],
    }


def _sums(item: CostRow) -> dict[str, float]:
    return {"before": money(item.before), "after": money(item.after), "delta": money(item.delta)}


def _window(item: WindowRow) -> dict[str, Any]:
    sides = (("before", item.before), ("after", item.after))
    return {
        **members(item.schedule, "namespace", "name"),
        "value": item.value,
        **{
            name: None if side is None else {"hours": round(side.hours, 6), "cost": money(side.cost)}
            for name, side in sides
        },
    }
