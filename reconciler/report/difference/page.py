"""What merging would change, as rows for the Markdown and HTML templates, and as text of these rows. Called by `headroom diff`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from reconciler.model.changes import Cost, NodeClaimCreation
from reconciler.model.nodes import ForetoldDrift
from reconciler.model.timelines import CapacityTimeline
from reconciler.report.costs import cost_parts, loss_words, short_words
from reconciler.report.difference.difference import DemandChange, Difference
from reconciler.report.difference.headline import SPAN, headline, hourly_words, pace_words, title, verdict
from reconciler.report.difference.room import size_words
from reconciler.report.drawing.time_axis import local_zone
from reconciler.report.escaping import terminal_lines
from reconciler.report.findings import finding_words
from reconciler.report.plan.page import (
    action_row,
    cost_row,
    creation_row,
    listing,
    local_budgets_section,
    object_row,
    section,
    static_pool_row,
)
from reconciler.report.plan.words import sample_words
from reconciler.report.terminal import MOST_ROWS, Paint, plain, rest_lines
from reconciler.report.timeline.chart import difference_chart
from reconciler.report.timeline.rows import change_rows
from reconciler.report.words import change_words, cluster_title, dollars, grouped, listed, moment

_NO_PRICES = "No prices are known: name a catalog, or a snapshot of a cluster, that has them"
_WORKED_OUT = (
    f"over {SPAN}: what each state of the schedules asks for, placed and priced for as long as it holds, whatever the caps of"
    " one pass and whatever nodes headroom has made before; percentages and the nodes of pods stay as they are now, and nodes that"
    " drift are replaced"
)
_STYLES = {
    "error": "red",
    "warning": "yellow",
    "info": "cyan",
    "create": "green",
    "update": "yellow",
    "delete": "red",
    "keep": "cyan",
}
"""Of severities, and of what becomes of an object."""
Cells = Mapping[str, Any]


def difference_page(
    change: Difference,
    *,
    cluster: str,
    snapshot: str = "",
    timelines: tuple[CapacityTimeline, CapacityTimeline] | None = None,
    zone: tzinfo | None = None,
    whole: str = "",
) -> dict[str, Any]:
    """The same structure as `plan_page`, for what merging would change. timelines: the base's and the head's.

    whole: the address of the complete report, "" if there is none. snapshot: in words, the published snapshot that both were planned with. Sample prices are left out: on a pull request they would look
    real.
    """
    place = zone or local_zone(change.head.now)
    is_sample = bool(sample_words(change.base, change.head))
    if is_sample:
        change = _without_prices(change)
    return {
        "title": f"{cluster_title(cluster)}: {'what merging changes' if change.names is None else 'what differs'}",
        "heading": title(change),
        "is_refused": bool(change.conflicts or change.failed_gates),
        "revision": change.head_name,
        "base": change.base_name,
        "when": ", ".join(filter(None, (moment(change.head.now, zone), snapshot))),
        "summary": headline(change, zone, is_priced=not is_sample),
        "verdict": verdict(change),
        "warnings": [*([_NO_PRICES] if is_sample else []), *warnings(change)],
        "has_changes": change.has_changes,
        "cost": cost_row(change.per_hour_before, change.per_hour_after),
        "month": None if is_sample else _month(change),
        "hourly": "" if is_sample else hourly_words(change),
        "assumptions": [] if is_sample else assumptions(change),
        "demands": listing(grouped([*_demand_rows(change), *_room_later(change, zone), *_later(change, zone)])),
        "sections": [item for item in _sections(change, zone, is_priced=not is_sample) if item["count"]],
        "findings": listing([finding_words(item) for item in change.new_findings]),
        "fixed": listing([finding_words(item) for item in change.fixed_findings]),
        "standing": listing([finding_words(item) for item in change.left_errors]),
        "standing_title": f"Errors that {change.base_branch} has too",
        "whole": whole,
        "notes": notes(change),
        "week": None if timelines is None else change_rows(*timelines, place),
        "week_chart": "" if timelines is None else difference_chart(*timelines, zone=place),
    }


def _without_prices(change: Difference) -> Difference:
    def unpriced(creations: Iterable[NodeClaimCreation]) -> tuple[NodeClaimCreation, ...]:
        return tuple(replace(item, planned=replace(item.planned, price_known=False)) for item in creations)

    return replace(
        change,
        base=replace(change.base, cost=Cost()),
        head=replace(change.head, cost=Cost()),
        added_nodes=unpriced(change.added_nodes),
        removed_nodes=unpriced(change.removed_nodes),
        released=tuple(replace(item, price=None) for item in change.released),
        kept=tuple(replace(item, price=None) for item in change.kept),
        static_pools=tuple(replace(item, price=None) for item in change.static_pools),
    )


def warnings(change: Difference) -> list[str]:
    """What comes before everything else: prices that are none, and bounds that are not kept."""
    sample = sample_words(change.base, change.head)
    return [*([sample] if sample else []), *(f"Not kept: {sentence}" for sentence in change.failed_gates)]


def notes(change: Difference) -> list[str]:
    """Further notes, one sentence each."""
    blocked = (f"Nothing is deleted or released: {reason}" for reason in change.head.blocked)
    edited = {item.ref for item in change.objects}
    filled = (
        f"{outcome.demand.ref} has been filled once and is not filled again, so that another size changes nothing"
        for outcome in change.head.demands
        if outcome.demand.left_of is not None and outcome.demand.ref in edited
    )
    return list(dict.fromkeys((*change.afterwards, *change.notes, *blocked, *filled, *change.head.notes)))


def assumptions(change: Difference) -> list[str]:
    """The assumptions behind the prices of both sides."""
    own = () if change.cost is None else (_WORKED_OUT, *change.cost.notes)
    return list(dict.fromkeys((*change.head.cost.assumptions, *change.base.cost.assumptions, *own)))


def _month(change: Difference) -> dict[str, str] | None:
    if change.cost is None:
        return None
    return {
        "before": dollars(change.cost.before),
        "after": dollars(change.cost.after),
        "delta": change_words(change.cost.before, change.cost.after),
        "span": SPAN,
    }


def _sections(change: Difference, zone: tzinfo | None, *, is_priced: bool) -> list[dict[str, Any]]:
    costs = []
    if change.cost is not None and is_priced:
        costs = [
            {
                **section(f"Cost over {SPAN}, {by}", rows),
                "columns": ["Name", "Before → after", "Change"],
                "third": "Change",
            }
            for by, rows in cost_parts(change.cost)
        ]
    return [
        section("Nodes that drift", [_drift_row(item, zone) for item in change.drift]),
        section("Objects that change", grouped(object_row(item) for item in change.objects)),
        section("Objects that other templates change", grouped(object_row(item) for item in change.templates)),
        *costs,
        section("Nodes that appear", grouped((creation_row(item) for item in change.added_nodes), noun="node")),
        section("Nodes no longer needed", grouped((creation_row(item) for item in change.removed_nodes), noun="node")),
        section("Nodes released to Karpenter", [action_row(item) for item in change.released]),
        section("Nodes kept", [action_row(item) for item in change.kept]),
        section("Nodes of static NodePools", [static_pool_row(item) for item in change.static_pools]),
        local_budgets_section(change.head, change.objects, zone),
    ]


def _drift_row(item: ForetoldDrift, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "name": f"NodePool {item.node_pool}",
        "what": f"{len(item.nodes):,} of {item.total:,}",
        "why": f"{listed(item.why)}; {pace_words(item, zone)} ({item.budget_why}): {', '.join(item.nodes)}",
        "fields": [],
        "things": len(item.nodes),
    }


def _demand_rows(change: Difference) -> list[dict[str, Any]]:
    return [_demand_change(item, change.why(item)) for item in change.demands]


def _demand_change(item: DemandChange, why: list[str]) -> dict[str, Any]:
    before, after = item.size_words
    size = after if before == after else f"{before} → {after}"
    left, right = ("–" if count is None else f"{count:,}" for count in (item.unplaced_before, item.unplaced))
    return {
        "name": str(item.ref),
        "desired": size,
        "existing": "",
        "new": "",
        "unplaced": f"{left} → {right}" if item.unplaced_before else right,
        "why": "; ".join(why),
    }


def _room_later(change: Difference, zone: tzinfo | None) -> list[dict[str, Any]]:
    """Demands whose room differs only at some times, because of schedules."""
    return [
        {
            "name": str(item.ref),
            "desired": size_words(item, zone),
            "existing": "",
            "new": "",
            "unplaced": "",
            "why": "; ".join(filter(None, (word, item.why))),
        }
        for word, items in (("less room", change.less_later), ("more room", change.more_later))
        for item in items
    ]


def _later(change: Difference, zone: tzinfo | None) -> list[dict[str, Any]]:
    """Demands that lose something only at a later time, when schedules have another value."""
    return [
        {
            "name": str(ref),
            "desired": f"from {moment(loss.at, zone)}",
            "existing": "",
            "new": "",
            "unplaced": f"{loss.worst.chunks:,}",
            "why": "; ".join(short_words(loss.worst, "then") if loss.since == loss.at else loss_words(loss, zone)),
        }
        for ref, loss in change.later
    ]


def difference_text(page: Mapping[str, Any], *, paint: Paint = plain, width: int | None = None) -> str:
    """The output of `headroom diff`. page: of `difference_page`. width: the columns to wrap at."""
    lines = [paint("bold", f"{page['heading']}, {page['when']}")]
    lines.append(paint("red" if page["is_refused"] else "bold", f"  {page['summary']}."))
    lines += [paint("red", f"  {line}.") for line in page["warnings"]]
    for row in page["demands"]["rows"][:MOST_ROWS]:
        lines += _demand_lines(row, paint)
    lines += rest_lines(page["demands"]["rows"])
    for part in page["sections"]:
        lines += ["", paint("bold", f"{part['title']} ({part['count']:,})")]
        lines += [line for row in part["rows"][:MOST_ROWS] for line in _section_row_lines(row, paint)]
        lines += [*rest_lines(part["rows"]), *(f"  {note}" for note in part["notes"])]
    for words, name in (
        ("New findings", "findings"),
        (page["standing_title"], "standing"),
        ("Findings that merging fixes", "fixed"),
    ):
        rows = page[name]["rows"]
        lines += ["", paint("bold", words)] if rows else []
        lines += [line for row in rows for line in _finding_lines(row, paint)]
    lines += _week_lines(page["week"]) if page["week"] else []
    lines += [paint("yellow", note if note.endswith(".") else f"{note}.") for note in page["notes"]]
    return terminal_lines([*lines, "", *_last_lines(page, paint)], paint, width)


def _demand_lines(row: Cells, paint: Paint) -> Iterator[str]:
    size = str(row["desired"])
    is_count = size[-1].isdigit() and "chunk" not in size
    noun = "" if not is_count else " chunk" if size.rpartition(" ")[2] == "1" else " chunks"
    missing = str(row["unplaced"])
    without = "" if missing in {"", "0", "–"} else paint("red", f", {missing} without a place")
    yield f"  ~ {row['name']}: {size}{noun}{without}"
    yield from (f"      {paint('yellow', reason)}" for reason in row["why"].split("; ") if reason)


def _section_row_lines(row: Cells, paint: Paint) -> Iterator[str]:
    style = _STYLES.get(row["what"])
    what = paint(style, row["what"]) if style else row["what"]
    bar = row.get("bar")
    why = f"{paint('red' if row['why'].startswith('+') else 'green', bar)} {row['why']}" if bar else row["why"]
    yield f"  {row['name']}: {'; '.join(filter(None, (what, '' if row['fields'] else why)))}"
    yield from (f"      {field}" for field in row["fields"])


def _finding_lines(row: Cells, paint: Paint) -> Iterator[str]:
    where = f"{row['where']}: " if row["where"] else ""
    severity = paint(_STYLES[row["severity"]], row["severity"])
    yield f"  {where}{severity}: {row['message']} {paint('dim', '[' + row['code'] + ']')}"
    if row["hint"]:
        yield paint("dim", f"      {row['hint']}")


def _week_lines(week: Cells) -> Iterator[str]:
    if not week["lines"]:
        return
    yield from ("", week["title"], f"  {'':6} {week['heading']}")
    for row in week["lines"]:
        yield f"  {row['name']}"
        yield from (f"  {name:6} {blocks}" for name, blocks in row["blocks"])
        yield f"         {row['words']}"
    if week["left"]:
        yield f"  … and {week['left']:,} more that change"
    yield f"  {week['legend']} Times are {week['zone']}."


def _last_lines(page: Mapping[str, Any], paint: Paint) -> Iterator[str]:
    month = page["month"]
    over = f"; over {month['span']} {month['before']} → {month['after']} ({month['delta']})" if month else ""
    if page["hourly"]:
        yield f"Cost: {page['hourly']}{over}"
    yield from (paint("dim", f"  {line}") for line in page["assumptions"])
    if page["verdict"]:
        yield paint("bold", f"{page['verdict']}.")
