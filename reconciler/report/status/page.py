"""The daemon's pages as rows for the templates: the overview, a buffer or request, a NodePool; and the picture of the last days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.demand import REQUEST_KIND
from reconciler.model.placement import by_demand
from reconciler.model.quantity import format_duration
from reconciler.model.refs import counted, listed
from reconciler.model.timelines import BufferPast, FillPoint, NodeState, StandingNode
from reconciler.report.drawing import Drawing, width_of
from reconciler.report.escaping import timestamp
from reconciler.report.status.document import EXPIRES_SOON, Links
from reconciler.report.status.words import (
    WHY_MADE,
    Row,
    buffers_in,
    chunks_tile,
    findings_in,
    headline,
    held_back,
    name_of,
    pool_facts,
    request_words,
    requests_in,
    size_words,
    tile,
    unpriced_words,
    why_of,
)
from reconciler.report.words import an_hour, cluster_title, hourly

WIDE, NARROW = 1100, 358
"""Widths of pictures in pixels: each page has both, and shows the one that fits."""
MOST_CALM = 12
"""If more buffers than this are as they should be, they are folded."""
MOST_NODES = 8
"""The most nodes of one NodePool on the first page; its own page has all."""
MOST_BUDGETS = 40
MOST_COMING = 8
MOST_FINDINGS = 50
MOST_HOLDERS = 3
NO_POOL = "-"
"""Stands for the nodes of no NodePool in addresses, since no object can have this name."""
_TONES = {
    "ready": "good", "booked": "good", "filling": "warn", "waiting": "warn", "short": "bad", "not ready": "bad",
    "not_ready": "bad", "failed": "bad", "capacity_revoked": "bad",
}  # fmt: skip
_TALL, _LOW, _GAP = 72.0, 40.0, 26.0
_TICKS = tuple(
    timedelta(minutes=minutes) for minutes in (1, 5, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 4320, 10080)
)
_BETWEEN = 90
"""Pixels between two ticks, at least."""


def overview_page(
    document: Row, nodes: Sequence[StandingNode], points: Sequence[FillPoint], now: datetime, links: Links
) -> dict[str, Any]:
    """document: live."""
    buffers = [_demand_row(row) for row in buffers_in(document)]
    attention = [row for row in buffers if row["tone"] in {"bad", "warn"}]
    calm = [row for row in buffers if row["tone"] not in {"bad", "warn"}]
    budgets = _budget_rows(document["budgets"])
    findings = findings_in(document)
    return {
        **_frame(document, root=""),
        "headline": headline(document),
        "tiles": _tiles(document, buffers),
        "charts": _charts(points, now),
        "attention": attention,
        "calm": calm,
        "calm_is_open": len(calm) <= MOST_CALM,
        "requests": [_demand_row(row) for row in requests_in(document)],
        "pools": [_pool_row(row, nodes, now) for row in document["nodePools"]],
        "held_back": held_back(document),
        "coming": [row for row in document["waiting"][:MOST_COMING] if row["until"] >= timestamp(now)],
        "history": [_pass_row(row, links) for row in document["history"]],
        "findings": [{**row, "others": others} for row, others in findings[:MOST_FINDINGS]],
        "more_findings": max(0, len(findings) - MOST_FINDINGS),
        "schedules": document["schedules"],
        "budgets": budgets[:MOST_BUDGETS],
        "more_budgets": max(0, len(budgets) - MOST_BUDGETS),
        "closed": [row for row in budgets if row["allowed"] == 0],
        "assumptions": document["cost"]["assumptions"],
    }


def demand_page(
    document: Row, row: Row, nodes: Sequence[StandingNode], past: BufferPast, now: datetime
) -> dict[str, Any]:
    """One buffer or request. row: its row in the document."""
    name = f"{row['kind']}/{name_of(row)}"
    held = [node for node in nodes if any(str(item.demand) == name for item in node.holdings)]
    return {
        **_frame(document, root="../../"),
        "name": name,
        "row": _demand_row(row),
        "source": None if row["source"] is None else f"{row['source']['file']}:{row['source']['line']}",
        "source_url": row["url"],
        "keeper": keeper_words_of(row),
        "explanation": row["explanation"],
        "conditions": row["conditions"],
        "reasons": row["unplacedReasons"],
        "nodes": [_node_row(node, now, only=name) for node in held],
        "refills": [{"ended": timestamp(item.ended), "took": _seconds(item.seconds)} for item in past.refills],
        "charts": _charts(past.points, now),
        "findings": [
            {**item, "others": 0}
            for item in document["findings"]
            if (item["kind"], item["namespace"], item["name"]) == (row["kind"], row["namespace"], row["name"])
        ],
    }


def pool_page(document: Row, row: Row, nodes: Sequence[StandingNode], now: datetime) -> dict[str, Any]:
    """One NodePool with all of its nodes. row: its row in the document."""
    own = [node for node in nodes if node.node_pool == row["name"]]
    return {
        **_frame(document, root="../"),
        "pool": _pool_row(row, nodes, now),
        "nodes": [_node_row(node, now) for node in sorted(own, key=lambda node: _urgency(node, now))],
        "types": [f"{count:,} × {name}" for name, count in row["instanceTypes"].items()],
        "budgets": _budget_rows(item for item in document["budgets"] if item["nodePool"] == row["name"]),
    }


def _frame(document: Row, *, root: str) -> dict[str, Any]:
    """What every page has at its top."""
    name, _, commit = (document["revision"] or "").partition("@sha1:")
    name = name or ("no commit yet" if document["planned"] is None else "the working tree")
    return {
        **{key: document[key] for key in ("version", "health", "finished", "passes")},
        "root": root,
        "cluster": cluster_title(document["cluster"]),
        "late_after": int(document["lateAfter"]),
        "commit": {"name": name, "short": commit[:12], "committed": None, "url": None, **(document["commit"] or {})},
        "leader": (document.get("leader") or "nobody") if document.get("leads") is False else "",
    }


def _tiles(document: Row, buffers: Sequence[Row]) -> list[dict[str, str]]:
    """The few numbers that are looked at first."""
    wanted, ready, kept = (sum(row[key] for row in buffers) for key in ("wanted", "ready", "pricePerHour"))
    nodes, held, coming = (sum(row[key] for row in document["nodePools"]) for key in ("nodes", "held", "coming"))
    counts = document["counts"]
    now, after = document["cost"]["perHour"], document["cost"]["perHourAfter"]
    moving = f"{an_hour(after)} once the plan is carried out" if an_hour(after) != an_hour(now) else ""
    more = ", ".join(filter(None, (unpriced_words(document), moving))) or f"{an_hour(kept)} for buffers alone"
    return [
        chunks_tile(ready, wanted, len(buffers)),
        tile("Nodes", f"{nodes:,}", ", ".join([f"{held:,} held", *([f"{coming:,} coming"] if coming else [])])),
        tile("Cost an hour", an_hour(now), more),
        tile(
            "Findings",
            counted(counts["error"], "error"),
            counted(counts["warning"], "warning"),
            "bad" if counts["error"] else "",
        ),
    ]


def _charts(points: Sequence[FillPoint], now: datetime) -> list[dict[str, str]]:
    return [
        {"look": look, "svg": svg}
        for look, width in (("wide", WIDE), ("slim", NARROW))
        if (svg := fill_chart(points, now, width))
    ]


def _demand_row(row: Row) -> dict[str, Any]:
    capacity = row["capacity"]
    return {
        **capacity,
        "name": name_of(row),
        "kind": row["kind"],
        "path": f"{row['kind']}/{name_of(row)}",
        "tone": _TONES.get(capacity["state"], ""),
        "size": request_words(row) if row["kind"] == REQUEST_KIND else size_words(row),
        "wanted": row["desired"] or 0,
        "why": why_of(row),
        "nodes": len(capacity["nodes"]),
        "cost": f"{an_hour(capacity['pricePerHour'])}/h",
    }


def keeper_words_of(row: Row) -> str:
    """`headroom`, `Karpenter`, `balloon pods`."""
    service = row["service"]
    return service["autoscaler"] or ("an autoscaler" if service["by"] == "autoscaler" else service["by"])


def _pool_row(row: Row, nodes: Sequence[StandingNode], now: datetime) -> dict[str, Any]:
    own = sorted((node for node in nodes if node.node_pool == row["name"]), key=lambda node: _urgency(node, now))
    return {
        "name": f"NodePool/{row['name']}" if row["name"] else "Nodes of no NodePool",
        "path": f"NodePool/{row['name'] or NO_POOL}",
        "count": counted(row["nodes"], "node"),
        "counts": ", ".join(pool_facts(row)),
        "tone": "bad" if row["notReady"] else "",
        "cpu": _percent(row["cpuUsed"]),
        "memory": _percent(row["memoryUsed"]),
        "cost": f"{an_hour(row['pricePerHour'])}/h",
        "nodes": [_node_row(node, now) for node in own[:MOST_NODES]],
        "more": max(0, len(own) - MOST_NODES),
    }


def _urgency(node: StandingNode, now: datetime) -> tuple[int, str]:
    """The sort key of nodes: those that change come first, then those that hold chunks."""
    flags = (
        node.state is NodeState.NOT_READY,
        node.state is NodeState.GOING,
        node.state is NodeState.COMING,
        node.drifted,
        _expires_soon(node, now),
        node.held,
        bool(node.holdings),
    )
    return next((number for number, flag in enumerate(flags) if flag), len(flags)), node.name


def _expires_soon(node: StandingNode, now: datetime) -> bool:
    return node.expires is not None and node.expires < now + EXPIRES_SOON


def _node_row(node: StandingNode, now: datetime, *, only: str = "") -> dict[str, Any]:
    """only: the one demand whose chunks are told, "" for all of them."""
    shown = {ref: count for ref, count in by_demand(node.holdings).items() if not only or str(ref) == only}
    marks = [word for flag, word in ((node.held, "held"), (node.drifted, "drifted")) if flag]
    return {
        "name": node.name,
        "pool": node.node_pool,
        "state": str(node.state),
        "tone": {"ready": "good", "not ready": "bad"}.get(node.state, "warn"),
        "marks": ", ".join(marks),
        "kind": " ".join(part for part in (node.instance_type, node.zone, node.capacity_type) if part),
        "cpu": _percent(node.cpu),
        "memory": _percent(node.memory),
        "cost": "" if node.price is None else hourly(node.price),
        "holds": listed((f"{count:,} of {ref}" for ref, count in shown.items()), most=MOST_HOLDERS),
        "expires": timestamp(node.expires) if node.expires is not None and _expires_soon(node, now) else None,
    }


def _budget_rows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Reasons for which a NodePool allows the same share a row."""
    merged: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(value for name, value in row.items() if name != "reason")
        if key in merged:
            merged[key]["reasons"] += f", {row['reason']}"
        else:
            merged[key] = {**row, "reasons": row["reason"]}
    return list(merged.values())


def _pass_row(row: Row, links: Links) -> dict[str, Any]:
    words = (("nodesMade", "made"), ("nodesDeleted", "deleted"))
    before, after = (None if row[key] is None else an_hour(row[key]) for key in ("perHourBefore", "perHourAfter"))
    return {
        "times": 1,
        **row,
        "trigger": WHY_MADE.get(row["trigger"], row["trigger"]),
        "commit": (row["revision"] or "").partition("@sha1:")[2][:12],
        "url": links.commit(row["revision"]),
        "what": row["message"] or row["summary"] or row["result"],
        "tone": "" if row["result"] == "ok" else "bad",
        "nodes": ", ".join(f"{row[key]:,} {word}" for key, word in words if row[key]),
        "cost": (after or "") if before == after else f"{before} → {after}",
    }


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _seconds(seconds: float) -> str:
    """`4.2 s`, `3 min 5 s`."""
    if seconds < 60:  # noqa: PLR2004 - seconds of a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s"


def fill_chart(points: Sequence[FillPoint], now: datetime, width: int) -> str:
    """One SVG of this width in pixels; "" where there is nothing to tell. points: the oldest first. Without prices only the fill."""
    if not any(point.wanted or point.price for point in points) or now <= points[0].since:
        return ""
    most = max(1, *(max(point.wanted, point.ready) for point in points))
    dearest = max(point.price for point in points)
    start, last = points[0].since, points[-1]
    worst = max(points, key=lambda point: point.wanted - point.ready)
    title = f"The last {_age(now - start)}"
    lack = f"at the worst {worst.wanted - worst.ready:,} of {worst.wanted:,} chunks were missing"
    description = f"{last.ready:,} of {last.wanted:,} chunks are ready; {lack}; {an_hour(last.price)} an hour"
    drawing = Drawing(width, title, description)
    left = 12 + max(width_of(f"{most:,}"), width_of(an_hour(dearest)) if dearest else 0)
    right = width - 8.0

    def x(time: datetime) -> float:
        return left + (right - left) * ((time - start) / (now - start))

    base = 20 + _TALL
    drawing.text(left, 12, "Chunks asked for and ready", "soft small")

    def steps(value: Callable[[FillPoint], float], height: float, look: str) -> None:
        places = [(x(point.since), base - value(point) * height) for point in points]
        drawing.steps([*places, (right, places[-1][1])], base, look)

    steps(lambda point: point.wanted, _TALL / most, "none")
    steps(lambda point: min(point.wanted, point.ready), _TALL / most, "v3")
    drawing.text(left - 5, 20 + 9, f"{most:,}", "soft small", anchor="end")
    drawing.text(left - 5, base, "0", "soft small", anchor="end")
    drawing.line(left, base, right, base)
    if dearest:
        drawing.text(left, base + _GAP - 8, "All nodes, USD an hour", "soft small")
        base += _GAP + _LOW
        steps(lambda point: point.price, _LOW / dearest, "v1")
        drawing.text(left - 5, base - _LOW + 9, an_hour(dearest), "soft small", anchor="end")
        drawing.line(left, base, right, base)
    _axis(drawing, now - start, left, right, base)
    return drawing.svg(base + 20)


def _axis(drawing: Drawing, span: timedelta, left: float, right: float, base: float) -> None:
    """Marks back from now, since pictures know no viewer's clock."""
    most = max(1, int((right - left) / _BETWEEN))
    step = next((tick for tick in _TICKS if span <= tick * most), _TICKS[-1])
    drawing.text(right, base + 14, "now", "soft small", anchor="end")
    back = step
    while back <= span:
        at = right - (right - left) * (back / span)
        drawing.line(at, base, at, base + 4)
        drawing.text(max(at, left + 20), base + 14, f"{_age(back)} ago", "soft small", anchor="middle")
        back += step


def _age(span: timedelta) -> str:
    """`45m`, `6h`, `3 days`."""
    if span >= timedelta(days=2):
        return f"{span.days} days"
    return format_duration(timedelta(minutes=max(1, round(span / timedelta(minutes=1)))))
