"""What the daemon last did, as the JSON of its /status and as text. Built by wiring after a pass, printed by `headroom status`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reconciler import __version__
from reconciler.model.changes import ChangeSet, Outcome, Plan
from reconciler.model.errors import Failure
from reconciler.model.source import SourceTree
from reconciler.model.timelines import Edge
from reconciler.report.machine import demand_row, finding_row, schedule_row, timestamp
from reconciler.report.text import Paint, plain
from reconciler.report.words import counted, moment, short_revision, summary
from reconciler.zone_data import zone_data

STATUS_SCHEMA = "headroom.dev/status/v1"
MOST_FINDINGS = 10
"""Findings in the text before the rest is counted; the JSON has them all."""
MOST_SCHEDULES = 5
"""Likewise."""
MOST_HISTORY = 5
"""Likewise."""
_DOCUMENT = ("kind", "namespace", "name")


def daemon_status_document(
    *,
    cluster: str,
    started: datetime,
    finished: datetime,
    passes: int,
    plan: Plan | None,
    change_set: ChangeSet | None,
    tree: SourceTree | None,
    failure: Failure | None,
    settled: bool,
    timings: Mapping[str, float],
) -> dict[str, Any]:
    """As `headroom.dev/status/v1`: the last pass. `result` is the failure's kind in lower case, or `ok`."""
    stalled = None if tree is None else tree.stalled
    results = () if change_set is None else change_set.results
    return {
        "schemaVersion": STATUS_SCHEMA,
        "version": __version__,
        "timeZoneData": str(zone_data()),
        "cluster": cluster,
        "started": timestamp(started),
        "finished": timestamp(finished),
        "passes": passes,
        "result": "ok" if failure is None else type(failure).__name__.lower(),
        "message": "" if failure is None else failure.message,
        "hint": "" if failure is None else failure.hint,
        "revision": None if tree is None else tree.revision,
        "stalled": None if stalled is None else {"reason": stalled[0], "message": stalled[1]},
        "settled": settled,
        "summary": "" if plan is None else summary(plan),
        "demands": []
        if plan is None
        else [demand_row(outcome) for outcome in plan.demands if not outcome.demand.is_pending_pod],
        "writes": [
            {
                "object": str(result.write.ref),
                "write": type(result.write).__name__,
                "outcome": str(result.outcome),
                "message": result.message,
            }
            for result in results
            if result.outcome is not Outcome.UNCHANGED
        ],
        "blocked": [] if plan is None else list(plan.blocked),
        "notes": [] if plan is None else list(plan.notes),
        "findings": [] if plan is None else [finding_row(finding) for finding in plan.findings],
        "schedules": [] if plan is None else [schedule_row(row) for row in plan.schedules],
        "nextEdge": None,
        "timings": {stage: round(seconds, 6) for stage, seconds in timings.items()},
    }


def with_next_edge(document: Mapping[str, Any] | None, edge: Edge | None) -> Mapping[str, Any] | None:
    """The document with when a schedule next asks for something else, as it is now; None before the first pass."""
    if document is None:
        return None
    return {**document, "nextEdge": None if edge is None else {"time": timestamp(edge.at), "schedule": edge.why}}


def daemon_status_text(document: Mapping[str, Any], *, paint: Paint = plain) -> str:
    """What a person wants to know first: is it well, what did it do, what stands in its way."""
    finished = _moment(document["finished"])
    good = document["result"] == "ok" and not document["stalled"]
    errors = [row for row in document["findings"] if row["severity"] == "error"]
    word = paint("green", "well") if good else paint("red", "in trouble")
    if errors:
        word += f", {'but' if good else 'and'} {paint('red', f'{_documents(errors)} errors')}"
    lines = [
        f"headroom {document['version']} on {document['cluster']} is {word}.",
        f"  time zones  {document['timeZoneData']}",
        f"  last pass   {finished}, number {document['passes']:,}, at {short_revision(document['revision'])}",
    ]
    if document["summary"]:
        lines.append(f"  it planned  {document['summary']}")
    if document.get("leads") is False:
        lines.append(f"  standby     {document['leader'] or 'nobody'} leads")
    lines += _schedule_lines(document)
    if document["stalled"]:
        lines.append(paint("red", f"  stalled     {document['stalled']['reason']}: {document['stalled']['message']}"))
    if document["message"]:
        lines.append(paint("red", f"  {document['result']:11} {document['message']}"))
        lines += [f"              {document['hint']}"] if document["hint"] else []
    applied = [row for row in document["writes"] if row["outcome"] == Outcome.APPLIED]
    others = [row for row in document["writes"] if row["outcome"] != Outcome.APPLIED]
    if applied:
        lines.append(f"  applied     {counted(len(applied), 'write')}")
    lines += [f"  {row['outcome']:11} {row['object']}: {row['message']}" for row in others]
    lines += [f"  blocked     nothing is deleted or released: {reason}" for reason in document["blocked"]]
    lines += [f"  note        {note}" for note in document["notes"]]
    for row in document["demands"]:
        name = f"{row['kind']}/{row['namespace']}/{row['name']}"
        if row["desired"] is None:
            lines.append(paint("red", f"  not ready   {name}"))
        elif row["unplaced"]:
            lines.append(
                paint("yellow", f"  short       {name}: {row['unplaced']:,} of {row['desired']:,} chunks unplaced")
            )
    return "\n".join([*lines, *_finding_lines(document["findings"], paint), *_history_lines(document)]) + "\n"


def _history_lines(document: Mapping[str, Any]) -> list[str]:
    """Earlier passes that did something, the newest first; without the last one, of which the rest tells."""
    rows = [row for row in document.get("history", ()) if row["finished"] != document["finished"]][:MOST_HISTORY]
    lines = []
    for row in rows:
        what = f"{counted(row['applied'], 'write')} applied" if row["applied"] else row["message"] or row["result"]
        planned = f" ({row['summary']})" if row["summary"] else ""
        lines.append(f"  before      {_moment(row['finished'])}, {row['trigger']}: {what}{planned}")
    return lines


def _schedule_lines(document: Mapping[str, Any]) -> list[str]:
    """What schedules are worth, the next to change first, and when a pass is next made because of one."""
    edge, rows = document["nextEdge"], document["schedules"]
    lines = [] if edge is None else [f"  next edge   {_moment(edge['time'])}: {edge['schedule']}"]
    for row in sorted(rows, key=lambda row: row["nextValueTime"] or "~")[:MOST_SCHEDULES]:
        then = (
            "for good" if row["nextValueTime"] is None else f"{row['nextValue']:,} from {_moment(row['nextValueTime'])}"
        )
        lines.append(f"  schedule    {row['namespace']}/{row['name']}: {row['currentValue']:,} now, {then}")
    if len(rows) > MOST_SCHEDULES:
        lines.append(f"  … and {counted(len(rows) - MOST_SCHEDULES, 'schedule')} more (headroom schedule shows them)")
    return lines


def _moment(text: str) -> str:
    return moment(datetime.fromisoformat(text), None)


def _documents(errors: list[Mapping[str, Any]]) -> str:
    """`1 document has`, `2 documents have`: one document may have several errors."""
    count = len({tuple(row[key] for key in _DOCUMENT) if row["name"] else (row["file"], row["line"]) for row in errors})
    return f"{counted(count, 'document')} {'has' if count == 1 else 'have'}"


def _finding_lines(findings: list[Mapping[str, Any]], paint: Paint) -> list[str]:
    """Errors first, then warnings, each with its place."""
    rows = [row for severity in ("error", "warning") for row in findings if row["severity"] == severity]
    lines = []
    for row in rows[:MOST_FINDINGS]:
        where = f"{row['file']}:{row['line']}: " if row["file"] else ""
        about = "/".join(part for part in (row[key] for key in _DOCUMENT) if part)
        about = f"{about}: " if about else ""
        severity = paint("red" if row["severity"] == "error" else "yellow", f"{row['severity']:11}")
        lines.append(f"  {severity} {where}{about}{row['message']}")
    if len(rows) > MOST_FINDINGS:
        lines.append(f"  … and {counted(len(rows) - MOST_FINDINGS, 'finding')} more (headroom validate shows them)")
    return lines
