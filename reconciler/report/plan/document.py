"""A plan as JSON (`headroom.dev/plan/v1`), and rows that other documents share. The schemas are in report/schemas/.

The layout is a contract: fields are only added. Absent values are null, and times are RFC 3339 in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciler.model.changes import (
    DemandOutcome,
    NodeClaimAction,
    NodeClaimCreation,
    ObjectChange,
    PendingOutcome,
    Plan,
    StaticPoolChange,
)
from reconciler.model.demand import NO_PRIORITY_CLASS, Service
from reconciler.model.placement import Holding, OccupiedBin, UnplacedReason, by_demand
from reconciler.model.refs import ObjectRef
from reconciler.model.remembered import Departure, WaitingDeletions
from reconciler.model.timelines import HOURS_PER_MONTH, Spending
from reconciler.report.budgets import budget_row, local_budgets_row
from reconciler.report.escaping import masked_changes, members, timestamp
from reconciler.report.findings import finding_row
from reconciler.report.plan.page import leaving_nodes
from reconciler.report.plan.words import before, price_notes
from reconciler.report.schedules.page import schedule_row

PLAN_SCHEMA = "headroom.dev/plan/v1"
NODE_POOL = "NodePool"
"""NodePools have their own list in the document; all other kinds are in `objects`."""


def plan_document(plan: Plan, spending: Spending | None = None) -> dict[str, Any]:
    """A plan as `headroom.dev/plan/v1`. spending: over the coming 30 days, if it was computed."""
    claims = plan.node_claims
    document: dict[str, Any] = {
        "schemaVersion": PLAN_SCHEMA,
        "revision": plan.revision,
        "now": timestamp(plan.now),
        "demands": [demand_row(outcome) for outcome in plan.demands],  # in the order in which they are served
        "nodeClaims": {
            "create": list(map(creation_row, claims.create)),
            "delete": list(map(action_row, claims.delete)),
            "hold": list(map(action_row, claims.hold)),
            "release": list(map(action_row, claims.release)),
            **({"untaint": list(map(action_row, claims.untaint))} if claims.untaint else {}),
        },
        "nodePools": [
            {"name": change.ref.name, "action": str(change.action), "changes": _changes(change)}
            for change in plan.objects
            if change.ref.kind == NODE_POOL
        ],
        "objects": [object_row(change) for change in plan.objects if change.ref.kind != NODE_POOL],
        "staticPools": [static_pool_row(row) for row in plan.static_pools],
        "schedules": [schedule_row(row) for row in plan.schedules],
        "budgets": [budget_row(row) for row in plan.budgets],
        "localBudgets": [local_budgets_row(pool) for pool in plan.local_budgets],
        "cost": _cost(plan, spending),
        "findings": [finding_row(finding) for finding in plan.findings],
        "pending": _pending(plan.pending),
        **members(plan, "notes", "blocked"),
        **({"departures": [_departure(item) for item in plan.departures]} if plan.departures else {}),
        **({"waitingDeletions": waiting_deletions_row(plan.waiting)} if plan.waiting else {}),
    }
    if plan.include_pending:
        document["existing"] = [_occupied(place) for place in plan.occupied]
        document["leaving"] = [{"node": node, **_pending(pods)} for node, pods in leaving_nodes(plan).items()]
    return document


def _pending(pods: PendingOutcome) -> dict[str, Any]:
    return members(pods, "placed_on_existing", "placed_on_new", "unplaced")


def _departure(item: Departure) -> dict[str, Any]:
    return {**members(item, "node", "since", "until"), "savesPerHour": money(item.saves)}


def money(amount: float) -> float:
    """Dollars, rounded so that sums of prices have no floating-point noise."""
    return round(amount, 6) + 0.0


def _cost(plan: Plan, spending: Spending | None) -> dict[str, Any]:
    return {
        "perHourBefore": money(plan.cost.per_hour_before),
        "perHourAfter": money(plan.cost.per_hour_after),
        "perMonthDelta": money((plan.cost.per_hour_after - plan.cost.per_hour_before) * HOURS_PER_MONTH),
        "currency": plan.cost.currency,
        "over30Days": None if spending is None else _over_30_days(plan, spending),
        "assumptions": [*plan.cost.assumptions, *(price_notes(plan) if spending is None else spending.notes)],
    }


def _over_30_days(plan: Plan, spending: Spending) -> dict[str, Any]:
    """Costs in USD. before: those of the present nodes."""
    start = before(plan, spending)
    return {
        "before": money(start),
        "after": money(spending.total),
        "delta": money(spending.total - start),
        "byDemand": [
            {**reference_row(ref), "cost": money(cost)} for ref, (cost, _) in sorted(spending.of_demands().items())
        ],
        "byNodePool": [{"name": name, "cost": money(cost)} for name, cost in sorted(spending.of_pools().items())],
        "byScheduleValue": [
            {
                **members(item.schedule, "namespace", "name"),
                "value": item.value,
                "hours": round(item.hours, 6),
                "cost": money(item.cost),
            }
            for item in spending.windows
        ],
    }


def reference_row(ref: ObjectRef) -> dict[str, Any]:
    """What begins every row about an object."""
    return members(ref, "kind", "namespace", "name")


def demand_row(outcome: DemandOutcome) -> dict[str, Any]:
    demand = outcome.demand
    return {
        **reference_row(demand.ref),
        "source": None if demand.source is None else members(demand.source, "file", "line"),
        "desired": demand.desired,
        **members(outcome, "on_existing", "on_new", "unplaced"),
        "unplacedReasons": [unplaced_reason_row(reason) for reason in outcome.unplaced_reasons],
        "conditions": [members(item, "type", "status", "reason", "message") for item in outcome.conditions],
        "service": service_row(outcome.service),
        "explanation": list(demand.explanation),
        "precedence": {
            "booked": demand.booked,
            "podPriority": None if demand.priority == NO_PRIORITY_CLASS else demand.priority,
            "priority": demand.declared_priority,
            "created": demand.created or None,
        },
    }


def service_row(service: Service) -> dict[str, Any]:
    return {
        **members(service, "ready", "served", "missing", "by"),
        "autoscaler": service.autoscaler or None,
        "certain": service.certain,
        "why": service.why or None,
    }


def unplaced_reason_row(reason: UnplacedReason) -> dict[str, Any]:
    return {"reason": reason.cause, "count": reason.chunks, "candidates": reason.count, "example": reason.example}


def _holds(holdings: Iterable[Holding]) -> list[dict[str, Any]]:
    """Chunks by demand, with a demand's groups added up."""
    return [{"demand": str(demand), "count": count} for demand, count in by_demand(holdings).items()]


def creation_row(creation: NodeClaimCreation) -> dict[str, Any]:
    planned = creation.planned
    return {
        "name": creation.name,
        **members(planned, "node_pool", "instance_types"),
        "zone": planned.zones[0] if len(planned.zones) == 1 else None,
        "zones": list(planned.zones),
        "capacityType": planned.capacity_types[0] if len(planned.capacity_types) == 1 else None,
        "capacityTypes": list(planned.capacity_types),
        "pricePerHour": money(planned.price) if planned.price_known else None,
        "requests": planned.requests.quantities(),
        "holds": _holds(planned.holdings),
        "reason": creation.reason,
    }


def action_row(action: NodeClaimAction) -> dict[str, Any]:
    return {
        "name": action.node_claim,
        **members(action, "node", "node_pool"),
        "pricePerHour": None if action.price is None else money(action.price),
        "holds": _holds(action.holdings),
        "reason": action.reason,
    }


def _changes(change: ObjectChange) -> list[dict[str, Any]]:
    return [members(item, "path", "before", "after") for item in masked_changes(change.changes)]


def object_row(change: ObjectChange) -> dict[str, Any]:
    return {
        **reference_row(change.ref),
        "action": str(change.action),
        "changes": _changes(change),
        "reason": change.reason,
    }


def waiting_deletions_row(waiting: WaitingDeletions) -> dict[str, Any]:
    """next, mostInAnHour, outOf: null while nothing may be deleted at all."""
    if waiting.next_at is None:
        cap: dict[str, Any] = dict.fromkeys(("mostInAnHour", "outOf", "mostNodesInAnHour", "outOfNodes", "next"))
    else:
        cap = {
            "mostInAnHour": waiting.most,
            "outOf": waiting.held,
            "mostNodesInAnHour": waiting.most_nodes,
            "outOfNodes": waiting.nodes_held,
            "next": timestamp(waiting.next_at),
        }
    return {"objects": list(map(reference_row, waiting.refs)), **cap}


def static_pool_row(row: StaticPoolChange) -> dict[str, Any]:
    return {
        **members(row, "node_pool", "before", "after"),
        "instanceType": row.instance_type or None,
        "pricePerHour": None if row.price is None else money(row.price),
    }


def _occupied(place: OccupiedBin) -> dict[str, Any]:
    return {"node": place.node if place.node is not None else place.node_claim, "holds": _holds(place.holdings)}
