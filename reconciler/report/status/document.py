"""What the daemon last did, as JSON (`headroom.dev/status/v1`), which it serves at /status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from reconciler import __version__
from reconciler.model.changes import ChangeSet, Outcome, Plan
from reconciler.model.edges import Edge
from reconciler.model.errors import Failure
from reconciler.model.findings import Severity
from reconciler.model.source import SourceTree
from reconciler.report.findings.document import finding_row
from reconciler.report.json_text import timestamp
from reconciler.report.plan.document import demand_row, waiting_deletions_row
from reconciler.report.plan.words import summary
from reconciler.report.schedules.document import schedule_row
from reconciler.zone_data import zone_data

STATUS_SCHEMA = "headroom.dev/status/v1"


@dataclass(frozen=True, slots=True)
class PassReport:
    """What is known about the last pass. started: when the daemon started. passes: how many it has made. plan, change_set, tree: None
    if the pass did not get that far. timings: seconds by stage. findings_before: as rows, which still hold if this pass has no plan."""

    cluster: str
    started: datetime
    finished: datetime
    passes: int
    plan: Plan | None = None
    change_set: ChangeSet | None = None
    tree: SourceTree | None = None
    failure: Failure | None = None
    settled: bool = False
    timings: Mapping[str, float] = field(default_factory=dict)
    findings_before: Sequence[Mapping[str, Any]] = ()


def daemon_status_document(report: PassReport) -> dict[str, Any]:
    """The last pass as `headroom.dev/status/v1`. `result` is the failure's class in lower case, or `ok`."""
    plan, tree, failure = report.plan, report.tree, report.failure
    stalled = None if tree is None else tree.stalled
    findings = list(report.findings_before) if plan is None else [finding_row(finding) for finding in plan.findings]
    return {
        "schemaVersion": STATUS_SCHEMA,
        "version": __version__,
        "timeZoneData": str(zone_data()),
        "cluster": report.cluster,
        "started": timestamp(report.started),
        "finished": timestamp(report.finished),
        "passes": report.passes,
        "result": "ok" if failure is None else type(failure).__name__.lower(),
        "message": "" if failure is None else failure.message,
        "hint": "" if failure is None else failure.hint,
        "revision": None if tree is None else tree.revision,
        "stalled": None if stalled is None else {"reason": stalled[0], "message": stalled[1]},
        "settled": report.settled,
        "summary": "" if plan is None else summary(plan, UTC),
        "demands": []
        if plan is None
        else [demand_row(outcome) for outcome in plan.demands if not outcome.demand.is_pending_pod],
        "writes": _writes(report.change_set),
        "blocked": [] if plan is None else list(plan.blocked),
        "notes": [] if plan is None else list(plan.notes),
        **({"waitingDeletions": waiting_deletions_row(plan.waiting)} if plan is not None and plan.waiting else {}),
        "findings": findings,
        "counts": {severity.value: sum(row["severity"] == severity for row in findings) for severity in Severity},
        "schedules": [] if plan is None else [schedule_row(row) for row in plan.schedules],
        "nextEdge": None,
        "timings": {stage: round(seconds, 6) for stage, seconds in report.timings.items()},
    }


def _writes(change_set: ChangeSet | None) -> list[dict[str, Any]]:
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


def with_next_edge(document: Mapping[str, Any] | None, edge: Edge | None) -> Mapping[str, Any] | None:
    """The document with the next edge of a schedule; None before the first pass."""
    if document is None:
        return None
    return {**document, "nextEdge": None if edge is None else {"time": timestamp(edge.at), "schedule": edge.why}}
