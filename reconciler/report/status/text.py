"""The daemon's status as text for a terminal. Printed by `headroom status`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from reconciler.model.changes import Outcome
from reconciler.model.refs import ObjectRef, counted
from reconciler.report.escaping import Paint, plain, terminal_lines
from reconciler.report.status.document import ATTENTION
from reconciler.report.status.words import (
    WHY_MADE,
    Row,
    buffers_in,
    findings_in,
    headline,
    held_back,
    holding_words,
    name_of,
    pool_facts,
    request_words,
    requests_in,
    size_words,
    unpriced_words,
    why_of,
)
from reconciler.report.words import an_hour, moment, short_revision

MOST_BUFFERS = 40
"""The most buffers in the text, those first that lack something; the rest is counted. The JSON has all of them."""
MOST_FINDINGS = 10
MOST_SCHEDULES = 5
MOST_HISTORY = 5
MOST_COMING = 3
"""The most findings, schedules, earlier passes and coming instants, likewise."""
_COLOURS = {"ready": "green", "filling": "yellow", "short": "red", "not ready": "red"}


def daemon_status_text(document: Row, *, paint: Paint = plain, width: int | None = None) -> str:
    """What a person looks for first: whether buffers are full, whether the daemon is healthy, and what blocks it. document: live."""
    health, cost = document["health"], document["cost"]
    word = paint("green", "healthy") if health["healthy"] else paint("red", "not healthy")
    why = f": {paint('red', '; '.join(health['why']))}" if health["why"] else ""
    is_good = all(row["capacity"]["state"] not in ATTENTION for row in buffers_in(document))
    lines = [
        paint("bold" if is_good else "red", f"{headline(document)}."),
        f"headroom {document['version']} on {document['cluster']} is {word}{why}.",
        *([f"              {document['hint']}"] if document["hint"] else []),
        *_buffer_lines(buffers_in(document), paint),
        *(f"  request     {name_of(row)}  {_facts(row, request_words(row))}" for row in requests_in(document)),
        *_node_lines(document["nodePools"]),
    ]
    if document["planned"] is not None:
        now, after = an_hour(cost["perHour"]), an_hour(cost["perHourAfter"])
        facts = [
            f"{now}/h of all nodes",
            unpriced_words(document),
            "" if now == after else f"{after}/h once that is done",
        ]
        lines.append(f"  cost        {', '.join(filter(None, facts))}")
    lines += [f"  waits       {what}{_until(until)}" for until, what in held_back(document)]
    lines += _finding_lines(document, paint)
    lines.append(_last_pass_line(document))
    if document["summary"]:
        lines.append(f"  it planned  {document['summary']}")
    applied = [row for row in document["writes"] if row["outcome"] == Outcome.APPLIED]
    lines += [f"  applied     {counted(len(applied), 'write')}"] if applied else []
    others = [row for row in document["writes"] if row["outcome"] != Outcome.APPLIED]
    lines += dict.fromkeys(f"  {row['outcome']:11} {row['object']}: {row['message']}" for row in others)
    if document["handledRequest"]:
        lines.append(f"  requested   {document['handledRequest']}: a pass was made for it")
    lines += _schedule_lines(document)
    told = None if document["nextEdge"] is None else document["nextEdge"]["time"]
    coming = [row for row in document["waiting"] if row["until"] != told]
    told_of = dict.fromkeys(f"  coming      {_moment(row['until'])}: {row['what']}" for row in coming)
    lines += list(told_of)[:MOST_COMING]
    lines += [*_history_lines(document), f"  time zones  {document['timeZoneData']}"]
    return terminal_lines(lines, paint, width)


def _last_pass_line(document: Row) -> str:
    if not document["passes"]:
        return f"  started     {_moment(document['started'])}, no pass yet"
    nothing_read = document["revision"] is None and document["planned"] is None
    at = "nothing read from Git yet" if nothing_read else f"at {short_revision(document['revision'])}"
    return f"  last pass   {_moment(document['finished'])}, number {document['passes']:,}, {at}"


def _buffer_lines(rows: Sequence[Row], paint: Paint) -> Iterator[str]:
    """`shop/web   2/2 ready, 2 nodes, $0.42/h`. A name of more than 50 letters moves its own line alone."""
    longest = min(50, max((len(name_of(row)) for row in rows[:MOST_BUFFERS]), default=0))
    for row in rows[:MOST_BUFFERS]:
        size = paint(_COLOURS.get(row["capacity"]["state"], "dim"), size_words(row))
        yield f"  buffer      {name_of(row):{longest}}  {_facts(row, size)}"
    if len(rows) > MOST_BUFFERS:
        yield f"  … and {counted(len(rows) - MOST_BUFFERS, 'buffer')} more, none of them worse"


def _facts(row: Row, size: str) -> str:
    """`2/2 ready, 2 nodes, $0.42/h`, and why something is missing."""
    why = why_of(row)
    return f"{', '.join(filter(None, (size, holding_words(row))))}{': ' if why else ''}{why}"


def _node_lines(rows: Iterable[Row]) -> Iterator[str]:
    """`general: 4 nodes, 3 held, 1 drifted, CPU 27%, memory 18% used, $0.66/h`."""
    for row in rows:
        facts = [counted(row["nodes"], "node"), *pool_facts(row)]
        if row["cpuUsed"] is not None:
            facts.append(f"CPU {row['cpuUsed']:.0%}, memory {row['memoryUsed'] or 0:.0%} used")
        yield f"  nodes       {row['name'] or 'no NodePool'}: {', '.join(facts)}, {an_hour(row['pricePerHour'])}/h"


def _until(time: str | None) -> str:
    return "" if time is None else f", until {_moment(time)}"


def _history_lines(document: Row) -> list[str]:
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
        why = WHY_MADE.get(row["trigger"], row["trigger"])
        lines.append(f"  before      {_moment(row['finished'])}, {why}: {what}{planned}")
    return lines


def _schedule_lines(document: Row) -> list[str]:
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


def _finding_lines(document: Row, paint: Paint) -> Iterator[str]:
    """Each with its place."""
    rows = findings_in(document)
    serious = [item for item in rows if item[0]["severity"] != "info"]
    shown = serious[:MOST_FINDINGS]
    for row, others in (*shown, *rows[len(serious) :]):
        where = f"{row['file']}:{row['line']}: " if row["file"] else ""
        colour = {"error": "red", "warning": "yellow"}.get(row["severity"])
        severity = f"{row['severity']:11}" if colour is None else paint(colour, f"{row['severity']:11}")
        more = f" (and {others:,} more of {row['code']})" if others else ""
        yield f"  {severity} {where}{_about(row)}{row['message']}{more}"
        if row["hint"] and row["severity"] != "info":
            yield f"              {row['hint']}"
    if len(serious) > MOST_FINDINGS:
        yield f"  … and {counted(len(serious) - MOST_FINDINGS, 'finding')} more (headroom validate shows them)"


def _about(row: Row) -> str:
    return f"{ObjectRef('', row['kind'], row['namespace'], row['name'])}: " if row["kind"] else ""
