"""What the daemon shows, as JSON (`headroom.dev/status/v1`). It serves this at /status; its pages and `headroom status` are drawn from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler import __version__
from reconciler.model.buffers import Fulfilment
from reconciler.model.changes import NOT_WRITTEN, ChangeSet, DemandOutcome, Outcome, Plan
from reconciler.model.conditions import ConditionStatus
from reconciler.model.declared import SourceTree
from reconciler.model.errors import Failure, Stalled
from reconciler.model.findings import Severity
from reconciler.model.nodes import InstanceType
from reconciler.model.placement import by_demand
from reconciler.model.provisioning_requests import (
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    FAILED,
    PROVISIONED,
    Phase,
    RequestState,
)
from reconciler.model.quantity import format_duration
from reconciler.model.refs import ObjectRef, by_key, counted
from reconciler.model.schedules import Edge, Schedule
from reconciler.model.timelines import NodeState, StandingNode, StandingNodes
from reconciler.model.view import ClusterView
from reconciler.report.budgets import budget_row
from reconciler.report.escaping import members, timestamp, uri_path
from reconciler.report.findings import finding_row
from reconciler.report.plan.document import demand_row, money, waiting_deletions_row
from reconciler.report.plan.words import summary
from reconciler.report.schedules.page import schedule_row
from reconciler.zone_data import zone_data

REQUEST_ENDS = {FAILED: "failed", CAPACITY_REVOKED: "capacity_revoked", BOOKING_EXPIRED: "booking_expired"}
"""By condition type, the state that an ended request counts as."""
REQUEST_STATES = ("waiting", "booked", "not_ready", "left", *REQUEST_ENDS.values())
ATTENTION = ("not ready", "short", "filling")
"""The states of a buffer that somebody may have to look at, the worst first."""
_OBJECT = ("kind", "namespace", "name")
STATUS_SCHEMA = "headroom.dev/status/v1"
EXPIRES_SOON = timedelta(days=1)
"""A node that expires within this time is counted as expiring."""
MOST_EDGES = 100


@dataclass(frozen=True, slots=True)
class Links:
    """base: the repository's address in a browser, "" where it has none. commit_page, file_page: the forge's parts of addresses."""

    base: str = ""
    commit_page: str = ""
    file_page: str = ""

    def commit(self, revision: str | None) -> str | None:
        """The page of a revision (`main@sha1:` and 40 digits)."""
        return self._page(self.commit_page, revision)

    def line(self, revision: str | None, file: str | None, line: int | None) -> str | None:
        """The page of a file at a revision, at a line that is counted from 1."""
        tree = self._page(self.file_page, revision)
        return f"{tree}/{uri_path(file)}{f'#L{line}' if line else ''}" if tree and file else None

    def _page(self, part: str, revision: str | None) -> str | None:
        commit = (revision or "").partition("@sha1:")[2]
        return f"{self.base}/{part}/{commit}" if self.base and commit else None


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
            "capacity": _capacity(outcome, standing, places.get(outcome.demand.ref, [])),
        }
        for outcome in plan.demands
        if not outcome.demand.is_pending_pod
    ]


def _places(nodes: Iterable[StandingNode]) -> dict[ObjectRef, list[dict[str, Any]]]:
    """By demand: the nodes that hold its chunks, and how many."""
    return by_key(
        (ref, {**members(node, "name", "node_pool", "state"), "chunks": chunks})
        for node in nodes
        for ref, chunks in by_demand(node.holdings).items()
    )


def _capacity(outcome: DemandOutcome, standing: StandingNodes, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """ready, coming, missing: chunks; together those that are asked for."""
    wanted = outcome.demand.desired or 0
    ready = wanted if outcome.is_full else max(0, min(wanted, outcome.ready))
    coming = min(wanted - ready, outcome.coming)
    state = _state(outcome, ready, coming)
    since = outcome.short_since if state in ATTENTION else None
    return {
        "state": state,
        "ready": ready,
        "coming": coming,
        "missing": wanted - ready - coming,
        "shortSince": None if since is None else timestamp(since),
        "nodes": nodes,
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


def health_of(document: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """healthy: whether passes are made, succeed, read everything, and find no errors, however old those are. why: what is wrong, the worst first.

    A buffer that is short is no fault of headroom's: the rows of demands tell of it.
    """
    why = list(_wrong(document, now))
    return {"healthy": not why, "late": _is_late(document, now), "why": why}


def _wrong(document: Mapping[str, Any], now: datetime) -> Iterable[str]:
    is_standby = document.get("leads") is False
    if not document["passes"] and not is_standby:
        yield "no pass has ended yet"
    if document["heldUp"]:
        yield document["heldUp"]
    elif _is_late(document, now):
        after = format_duration(timedelta(seconds=document["lateAfter"]))
        yield f"no pass has ended for {after}, so that all of this may be out of date"
    if is_standby:
        return  # what its last pass found is the leader's concern by now
    if document["stalled"]:
        stall = document["stalled"]
        reason = "" if stall["reason"] == Stalled.__name__ else f" ({stall['reason']})"
        yield f"the last good commit stays in force, since {stall['message']}{reason}"
    if document["message"]:
        again = " and is tried again" if document["result"] in {"transient", "waiting"} else ""
        yield f"the last pass failed{again}: {document['message']}"
    failed = sum(row["outcome"] in NOT_WRITTEN for row in document["writes"])
    if failed:
        yield f"{counted(failed, 'write')} did not succeed"
    errors = [row for row in document["findings"] if row["severity"] == "error"]
    if errors:
        yield f"{_documents(errors)} errors"
    elif document["blocked"] and not document["stalled"]:
        yield "nothing is deleted or released"


def _is_late(document: Mapping[str, Any], now: datetime) -> bool:
    """A replica that does not lead makes no passes."""
    since = now - datetime.fromisoformat(document["finished"])
    return document.get("leads") is not False and since.total_seconds() > document["lateAfter"]


def _documents(errors: list[Mapping[str, Any]]) -> str:
    """`1 document has`, `2 documents have`: one document may have several errors."""
    count = len({tuple(row[key] for key in _OBJECT) if row["name"] else (row["file"], row["line"]) for row in errors})
    return f"{counted(count, 'document')} {'has' if count == 1 else 'have'}"


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


def result_word(failure: Failure | None) -> str:
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
        **members(report, "cluster", "started", "finished", "passes", "trigger"),
        "result": result_word(failure),
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
            **members(plan.cost, "currency", "assumptions"),
        },
        "writes": write_rows(report.change_set),
        **members(plan, "blocked", "notes"),
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
    document_now = {
        **document,
        **waits,
        "nextEdge": None if edge is None else {"time": timestamp(edge.at), "schedule": edge.why},
        "handledRequest": live.handled_request,
        "heldUp": live.held_up,
        "lateAfter": live.late_after.total_seconds(),
        **({} if live.leads is None else {"leads": live.leads, "leader": live.leader or None}),
    }
    return {**document_now, "health": health_of(document_now, now)}


def write_rows(change_set: ChangeSet | None) -> list[dict[str, Any]]:
    """A row for each write that changed something or failed."""
    return [
        {
            "object": str(result.write.ref),
            "write": type(result.write).__name__,
            **members(result, "outcome", "message"),
        }
        for result in (() if change_set is None else change_set.results)
        if result.outcome is not Outcome.UNCHANGED
    ]


def pool_rows(nodes: Sequence[StandingNode], now: datetime) -> list[dict[str, Any]]:
    """A row for each NodePool, "" for nodes of none."""
    by_pool = by_key((node.node_pool, node) for node in nodes)
    return [_pool_row(name, members, now) for name, members in sorted(by_pool.items())]


def _pool_row(name: str, nodes: Sequence[StandingNode], now: datetime) -> dict[str, Any]:
    states = Counter(node.state for node in nodes)
    measured = [node for node in nodes if node.cpu is not None]
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
        "cpuUsed": round(sum(node.cpu or 0.0 for node in measured) / len(measured), 4) if measured else None,
        "memoryUsed": round(sum(memory) / len(memory), 4) if memory else None,
        "pricePerHour": money(sum(node.price or 0.0 for node in nodes)),
        "unpriced": sum(node.price is None for node in nodes),
        "instanceTypes": dict(Counter(node.instance_type for node in nodes if node.instance_type).most_common()),
    }
