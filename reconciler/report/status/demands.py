"""Buffers and requests as rows of the status: how full each is, where its chunks are, what it costs, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.conditions import ConditionStatus
from reconciler.model.provisioning_requests import (
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    FAILED,
    PROVISIONED,
    Phase,
    RequestState,
)
from reconciler.model.refs import ObjectRef
from reconciler.model.spending import StandingNode, StandingNodes
from reconciler.report.json_text import timestamp
from reconciler.report.plan.document import demand_row, money
from reconciler.report.status.links import Links

REQUEST_ENDS = {FAILED: "failed", CAPACITY_REVOKED: "capacity_revoked", BOOKING_EXPIRED: "booking_expired"}
"""By condition type, the state that an ended request counts as."""
REQUEST_STATES = ("waiting", "booked", "not_ready", "left", *REQUEST_ENDS.values())
ATTENTION = ("not ready", "short", "filling")
"""The states of a buffer that somebody may have to look at, the worst first."""


def request_state(outcome: DemandOutcome, request: RequestState) -> str:
    """One of `REQUEST_STATES`."""
    true = {item.type for item in outcome.conditions if item.status is ConditionStatus.TRUE}
    ended = next((state for kind, state in REQUEST_ENDS.items() if kind in true), "")
    if ended or request.phase is Phase.LEFT:
        return ended or "left"
    if request.phase is Phase.NOT_READY:
        return "not_ready"
    return "booked" if PROVISIONED in true else "waiting"


def demand_rows(plan: Plan, standing: StandingNodes, links: Links) -> list[dict[str, Any]]:
    """A row for each buffer and request, in the order in which they are served: what the plan says of it, and its capacity."""
    places = _places(standing.nodes)
    return [
        {
            **demand_row(outcome),
            "url": None
            if outcome.demand.source is None
            else links.line(plan.revision, outcome.demand.source.file, outcome.demand.source.line),
            "capacity": _capacity(outcome, standing, places.get(outcome.demand.ref, {}).values()),
        }
        for outcome in plan.demands
        if not outcome.demand.is_pending_pod
    ]


def _places(nodes: Iterable[StandingNode]) -> dict[ObjectRef, dict[str, dict[str, Any]]]:
    """By demand and node: how many of its chunks are there."""
    found: dict[ObjectRef, dict[str, dict[str, Any]]] = {}
    for node in nodes:
        for holding in node.holdings:
            rows = found.setdefault(holding.demand, {})
            row = rows.setdefault(
                node.name, {"name": node.name, "nodePool": node.node_pool, "state": str(node.state), "chunks": 0}
            )
            row["chunks"] += holding.count
    return found


def _capacity(outcome: DemandOutcome, standing: StandingNodes, nodes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """ready, coming, missing: chunks; together those that are asked for."""
    wanted = outcome.demand.desired or 0
    ready = wanted if outcome.is_full else max(0, min(wanted, outcome.ready))
    coming = min(wanted - ready, outcome.on_its_way + outcome.on_new)
    state = _state(outcome, ready, coming)
    since = outcome.short_since if state in ATTENTION else None
    return {
        "state": state,
        "ready": ready,
        "coming": coming,
        "missing": wanted - ready - coming,
        "shortSince": None if since is None else timestamp(since),
        "nodes": list(nodes),
        "pricePerHour": money(standing.per_hour.get(outcome.demand.ref, 0.0)),
    }


def _state(outcome: DemandOutcome, ready: int, coming: int) -> str:
    """In words; of a request one of `REQUEST_STATES`."""
    demand, service = outcome.demand, outcome.service
    if demand.request is not None:
        return request_state(outcome, demand.request)
    wanted = demand.desired or 0
    facts = (
        (not service.ready, "not ready"),
        (demand.suspended, "suspended"),
        (not wanted, "empty"),
        (outcome.is_full is None and demand.fulfilment == Fulfilment.NATIVE, "unknown"),
        (ready >= wanted, "ready"),
        (ready + coming >= wanted, "filling"),
    )
    return next((state for holds, state in facts if holds), "short")
