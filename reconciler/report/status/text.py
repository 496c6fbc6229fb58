"""What the daemon last did, as text for a terminal. Printed by `headroom status`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from reconciler.model.changes import NOT_WRITTEN, Outcome
from reconciler.model.demand import REQUEST_KIND
from reconciler.model.refs import ObjectRef
from reconciler.report.escaping import terminal_lines
from reconciler.report.paint import Paint, plain
from reconciler.report.words import counted, moment, short_revision

MOST_FINDINGS = 10
"""The most findings in the text; the rest is counted. The JSON has all of them."""

MOST_SCHEDULES = 5
"""The most schedules in the text, likewise."""

MOST_HISTORY = 5
"""The most earlier passes in the text, likewise."""

_DOCUMENT = ("kind", "namespace", "name")


def daemon_status_text(document: Mapping[str, Any], *, paint: Paint = plain, width: int | None = None) -> str:
    """What a person looks for first: whether it is healthy, what it did, and what blocks it."""
    finished = _moment(document["finished"])
    errors = [row for row in document["findings"] if row["severity"] == "error"]
    failed = [row for row in document["writes"] if row["outcome"] in NOT_WRITTEN]
    held_up = document.get("heldUp", "")
    good = document["result"] == "ok" and not document["stalled"] and not failed and not held_up and not errors
    word = paint("green", "healthy") if good else paint("red", "not healthy")
    wrong = ([f"{counted(len(failed), 'write')} did not succeed"] if failed else []) + (
        [f"{_documents(errors)} errors"] if errors else []
    )
    if wrong:
        word += f": {paint('red', ' and '.join(wrong))}"
    lines = [
        f"headroom {document['version']} on {document['cluster']} is {word}.",
        f"  time zones  {document['timeZoneData']}",
        f"  last pass   {finished}, number {document['passes']:,}, at {short_revision(document['revision'])}",
    ]
    if document.get("handledRequest"):
        lines.append(f"  requested   {document['handledRequest']}: a pass was made for it")
    if document["summary"]:
        lines.append(f"  it planned  {document['summary']}")
    if document.get("leads") is False:
        lines.append(f"  standby     {document['leader'] or 'nobody'} leads")
    lines += _schedule_lines(document)
    if held_up:
        lines.append(paint("red", f"  held up     {held_up}"))
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
    lines += _demand_lines(document["demands"], paint)
    return terminal_lines(
        [*lines, *_finding_lines(document["findings"], paint), *_history_lines(document)], paint, width
    )


def _demand_lines(rows: list[Mapping[str, Any]], paint: Paint) -> Iterator[str]:
    """Demands that are not served, and suspended ones. A negative answer to a request is not a shortage."""
    for row in rows:
        name = f"{row['kind']}/{row['namespace']}/{row['name']}"
        suspended = next((item["message"] for item in row["conditions"] if item["type"] == "Suspended"), None)
        why = row["service"]["why"]
        if not row["service"]["ready"]:
            yield paint("red", f"  not ready   {name}{': ' if why else ''}{why or ''}")
        elif row["desired"] is None:
            continue
        elif suspended is not None:
            yield f"  suspended   {name}: {suspended}"
        elif row["unplaced"] and row["kind"] == REQUEST_KIND:
            yield f"  no room     {name}: {row['unplaced']:,} of {row['desired']:,} pods"
        elif row["unplaced"]:
            yield paint("yellow", f"  short       {name}: {row['unplaced']:,} of {row['desired']:,} chunks unplaced")


def _history_lines(document: Mapping[str, Any]) -> list[str]:
    """Earlier passes that did something, the newest first, without the last one, which the other lines describe."""
    rows = [row for row in document.get("history", ()) if row["finished"] != document["finished"]][:MOST_HISTORY]
    lines = []
    for row in rows:
        statuses = row.get("statuses", 0)
        applied = row["applied"] - statuses
        wrote = ([f"{counted(applied, 'write')} applied"] if applied else []) + (
            [f"{statuses:,} {'status' if statuses == 1 else 'statuses'} written"] if statuses else []
        )
        failed = row.get("failed", 0)
        wrote += [f"{counted(failed, 'write')} did not succeed"] if failed else []
        what = ", ".join(wrote) or row["message"] or row["result"]
        if "times" in row:
            what += f", {row['times']:,} times since {_moment(row['since'])}"
        # If a pass wrote only statuses, its plan is no news.
        planned = f" ({row['summary']})" if row["summary"] and (applied or failed or not statuses) else ""
        lines.append(f"  before      {_moment(row['finished'])}, {row['trigger']}: {what}{planned}")
    return lines


def _schedule_lines(document: Mapping[str, Any]) -> list[str]:
    """The value of each schedule, the next one to change first, and when the next change causes a pass."""
    edge, rows = document["nextEdge"], document["schedules"]
    lines = [] if edge is None else [f"  next change {_moment(edge['time'])}: {edge['schedule']}"]
    for row in sorted(rows, key=lambda row: row["nextValueTime"] or "~")[:MOST_SCHEDULES]:
        then = (
            "no further change"
            if row["nextValueTime"] is None
            else f"{row['nextValue']:,} from {_moment(row['nextValueTime'])}"
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
    """Errors first, then warnings, each with its place, then what is only worth knowing."""
    rows = [row for severity in ("error", "warning") for row in findings if row["severity"] == severity]
    lines = []
    for row in rows[:MOST_FINDINGS]:
        where = f"{row['file']}:{row['line']}: " if row["file"] else ""
        severity = paint("red" if row["severity"] == "error" else "yellow", f"{row['severity']:11}")
        lines.append(f"  {severity} {where}{_about(row)}{row['message']}")
    if len(rows) > MOST_FINDINGS:
        lines.append(f"  … and {counted(len(rows) - MOST_FINDINGS, 'finding')} more (headroom validate shows them)")
    return [*lines, *_note_lines(row for row in findings if row["severity"] == "info")]


def _note_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each code: its first finding, and how many others there are. A repository may have hundreds of files of other tools."""
    by_code: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_code.setdefault(row["code"], []).append(row)
    for first, *others in by_code.values():
        where = f"{first['file']}:{first['line']}: " if first["file"] else ""
        more = f" (and {len(others):,} more of {first['code']})" if others else ""
        yield f"  {'info':11} {where}{_about(first)}{first['message']}{more}"


def _about(row: Mapping[str, Any]) -> str:
    return f"{ObjectRef('', row['kind'], row['namespace'], row['name'])}: " if row["kind"] else ""
