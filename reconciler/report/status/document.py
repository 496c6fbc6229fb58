"""What the daemon shows, as JSON (`headroom.dev/status/v1`). It serves this at /status; its pages and `headroom status` are drawn from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler import __version__
from reconciler.model.changes import ChangeSet, Outcome, Plan
from reconciler.model.errors import Failure
from reconciler.model.findings import Severity
from reconciler.model.nodes import InstanceType
from reconciler.model.schedules import Edge, Schedule
from reconciler.model.source import SourceTree
from reconciler.model.spending import NodeState, StandingNode, StandingNodes
from reconciler.model.view import ClusterView
from reconciler.report.budgets.document import budget_row
from reconciler.report.findings import finding_row
from reconciler.report.json_text import timestamp
from reconciler.report.plan.document import money, waiting_deletions_row
from reconciler.report.plan.words import summary
from reconciler.report.schedules.page import schedule_row
from reconciler.report.status.demands import demand_rows
from reconciler.report.status.health import health_of
from reconciler.report.status.links import Links
from reconciler.zone_data import zone_data

STATUS_SCHEMA = "headroom.dev/status/v1"
EXPIRES_SOON = timedelta(days=1)
"""A node that expires within this time is counted as expiring."""
MOST_EDGES = 100


@dataclass(frozen=True, slots=True)
class Seen:
    """What a plan was made from, as far as it is shown. schedules: those in force."""

    view: ClusterView = field(default_factory=ClusterView)
    instance_types: Sequence[InstanceType] = ()
    schedules: tuple[Schedule, ...] = ()


@dataclass(frozen=True, slots=True)
class PassReport:
    """All that is shown, as references to what passes have. Nothing is computed until somebody looks.

    started: when the daemon started. passes: how many it has made. trigger: why the last one was made. plan, seen, tree: of
    the last pass that got so far. planned: whether the plan is the last pass's own. change_set:
    None if the pass did not get that far. timings: seconds by stage. history: rows of earlier passes, the newest first.
    """

    cluster: str
    started: datetime
    finished: datetime
    passes: int
    trigger: str = ""
    plan: Plan | None = None
    planned: bool = True
    change_set: ChangeSet | None = None
    tree: SourceTree | None = None
    failure: Failure | None = None
    settled: bool = False
    timings: Mapping[str, float] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    history: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Live:
    """What changes between passes. handled_request: the value of the annotation for which a pass was last made. leads: None without
    leader election. leader: who leads, "" while that is unknown. late_after: how long after a pass the next one is overdue."""

    next_edge: Edge | None = None
    handled_request: str = ""
    held_up: str = ""
    leads: bool | None = None
    leader: str = ""
    late_after: timedelta = timedelta(minutes=11)


def pass_summary(report: PassReport) -> str:
    """What the last pass planned, in one line; "" where it did not get that far."""
    return "" if report.plan is None or not report.planned else summary(report.plan, UTC)


def result_of(failure: Failure | None) -> str:
    """The failure's class in lower case, or `ok`."""
    return "ok" if failure is None else type(failure).__name__.lower()


def daemon_status_document(
    report: PassReport, standing: StandingNodes | None = None, links: Links | None = None
) -> dict[str, Any]:
    """The last pass, and what stands after it."""
    plan, tree, failure = report.plan or Plan(None, report.finished), report.tree, report.failure
    standing, links = standing or StandingNodes(), links or Links()
    stalled = None if tree is None else tree.stalled
    revision = None if tree is None else tree.revision
    zones = {(item.ref.namespace, item.ref.name): item.timezone for item in report.seen.schedules}
    findings = [
        {**row, "url": links.line(plan.revision, row["file"], row["line"])} for row in map(finding_row, plan.findings)
    ]
    return {
        "schemaVersion": STATUS_SCHEMA,
        "version": __version__,
        "timeZoneData": str(zone_data()),
        "cluster": report.cluster,
        "started": timestamp(report.started),
        "finished": timestamp(report.finished),
        "passes": report.passes,
        "trigger": report.trigger,
        "result": result_of(failure),
        "message": "" if failure is None else failure.message,
        "hint": "" if failure is None else failure.hint,
        "revision": revision,
        "commit": None
        if tree is None or tree.committed is None
        else {"committed": timestamp(tree.committed), "url": links.commit(revision)},
        "stalled": None if stalled is None else {"reason": stalled[0], "message": stalled[1]},
        "settled": report.settled,
        "planned": None if report.plan is None else timestamp(plan.now),
        "summary": pass_summary(report),
        "demands": demand_rows(plan, standing, links),
        "nodePools": pool_rows(standing.nodes, report.finished),
        "cost": {
            "perHour": money(plan.cost.per_hour_before),
            "perHourAfter": money(plan.cost.per_hour_after),
            "currency": plan.cost.currency,
            "assumptions": list(plan.cost.assumptions),
        },
        "writes": write_rows(report.change_set),
        "blocked": list(plan.blocked),
        "notes": list(plan.notes),
        "waiting": [{"until": timestamp(edge.at), "what": edge.why} for edge in plan.edges[:MOST_EDGES]],
        **({"waitingDeletions": waiting_deletions_row(plan.waiting)} if plan.waiting else {}),
        "findings": findings,
        "counts": {severity.value: sum(row["severity"] == severity for row in findings) for severity in Severity},
        "schedules": [
            {**schedule_row(row), "timezone": zones.get((row.namespace, row.name))} for row in plan.schedules
        ],
        "budgets": [budget_row(row) for row in plan.budgets],
        "nextEdge": None,
        "history": list(report.history),
        "timings": {stage: round(seconds, 6) for stage, seconds in report.timings.items()},
    }


def live_document(document: Mapping[str, Any], live: Live, now: datetime) -> dict[str, Any]:
    """The document with what changes between passes, and whether all is well."""
    edge = live.next_edge
    waits = (
        {
            "result": "waiting",
            "message": f"another replica leads: {live.leader}" if live.leader else "no replica is known to lead yet",
        }
        if live.leads is False and not document["passes"]
        else {}
    )
    found = {
        **document,
        **waits,
        "nextEdge": None if edge is None else {"time": timestamp(edge.at), "schedule": edge.why},
        "handledRequest": live.handled_request,
        "heldUp": live.held_up,
        "lateAfter": live.late_after.total_seconds(),
        **({} if live.leads is None else {"leads": live.leads, "leader": live.leader or None}),
    }
    return {**found, "health": health_of(found, now)}


def write_rows(change_set: ChangeSet | None) -> list[dict[str, Any]]:
    """A row for each write that changed something or failed."""
    return [
        {
            "object": str(result.write.ref),
            "write": type(result.write).__name__,
            "outcome": str(result.outcome),
            "message": result.message,
        }
        for result in (() if change_set is None else change_set.results)
        if result.outcome is not Outcome.UNCHANGED
    ]


def pool_rows(nodes: Sequence[StandingNode], now: datetime) -> list[dict[str, Any]]:
    """A row for each NodePool, "" for nodes of none."""
    by_pool: dict[str, list[StandingNode]] = {}
    for node in nodes:
        by_pool.setdefault(node.node_pool, []).append(node)
    return [_pool_row(name, members, now) for name, members in sorted(by_pool.items())]


def _pool_row(name: str, nodes: Sequence[StandingNode], now: datetime) -> dict[str, Any]:
    states = Counter(node.state for node in nodes)
    known = [node for node in nodes if node.cpu is not None]
    memory = [node.memory for node in nodes if node.memory is not None]
    return {
        "name": name,
        "nodes": len(nodes),
        "ready": states[NodeState.READY],
        "coming": states[NodeState.COMING],
        "notReady": states[NodeState.NOT_READY],
        "going": states[NodeState.GOING],
        "held": sum(node.held for node in nodes),
        "drifted": sum(node.drifted for node in nodes),
        "expiring": sum(node.expires is not None and node.expires < now + EXPIRES_SOON for node in nodes),
        "cpuUsed": round(sum(node.cpu or 0.0 for node in known) / len(known), 4) if known else None,
        "memoryUsed": round(sum(memory) / len(memory), 4) if memory else None,
        "pricePerHour": money(sum(node.price or 0.0 for node in nodes)),
        "unpriced": sum(node.price is None for node in nodes),
        "instanceTypes": dict(Counter(node.instance_type for node in nodes if node.instance_type).most_common()),
    }
