"""What merging would change, as text for a terminal. Called by `headroom diff`."""

from __future__ import annotations

from datetime import tzinfo

from reconciler.model.timelines import CapacityTimeline
from reconciler.report.difference.cost_rows import demand_rows, pool_rows, window_rows
from reconciler.report.difference.difference import Difference
from reconciler.report.difference.headline import SPAN, headline, hourly_words, title, verdict
from reconciler.report.difference.page import assumptions, notes, warnings
from reconciler.report.difference.room import size_words
from reconciler.report.difference.shortfall import loss_words
from reconciler.report.drawing.time_axis import local_zone
from reconciler.report.escaping import terminal_lines
from reconciler.report.findings.text import finding_lines
from reconciler.report.paint import Paint, plain
from reconciler.report.plan.objects import local_budget_section, object_lines
from reconciler.report.plan.words import held, made_by_words, node_name, offered, static_words
from reconciler.report.terminal_rows import MOST_ROWS, rest_lines
from reconciler.report.timeline.rows import change_rows
from reconciler.report.words import change_words, dollars, moment


def difference_text(
    change: Difference,
    *,
    timelines: tuple[CapacityTimeline, CapacityTimeline] | None = None,
    zone: tzinfo | None = None,
    paint: Paint = plain,
    width: int | None = None,
) -> str:
    """The output of `headroom diff`. timelines: of the coming week, base and head."""
    lines = [
        paint(
            "bold",
            f"{title(change)}, {moment(change.head.now, zone)}",
        )
    ]
    style = "red" if change.conflicts or change.failed_gates else "bold"
    lines.append(paint(style, f"  {headline(change, zone)}."))
    lines += [paint("red", f"  {line}.") for line in warnings(change)]
    lines += _demand_lines(change, paint)
    for style, word, rooms in (("red", "less", change.less_later), ("green", "more", change.more_later)):
        for room in rooms[:MOST_ROWS]:
            lines.append(f"  ~ {room.ref}: {paint(style, f'{word} room')}, {size_words(room, zone)}")
        lines += rest_lines(rooms)
    for ref, loss in change.later[:MOST_ROWS]:
        lines += [f"  ~ {ref}: {paint('red', sentence)}" for sentence in loss_words(loss, zone)]
    lines += rest_lines(change.later)
    for sign, style, items in (("+", "green", change.added_nodes), ("-", "red", change.removed_nodes)):
        for creation in items[:MOST_ROWS]:
            words = f"{offered(creation)}, for {held(creation.planned.holdings)}{made_by_words(creation)}"
            lines.append(f"  {paint(style, sign)} node in NodePool {creation.planned.node_pool}: {words}")
        lines += rest_lines(items)
    for pool in change.static_pools:
        sign, style = ("+", "green") if pool.after > pool.before else ("-", "red")
        lines.append(f"  {paint(style, sign)} NodePool {pool.node_pool}: {static_words(pool)}")
    lines += [f"  {paint('yellow', '-')} released: {node_name(action)}" for action in change.released]
    lines += [f"  {paint('cyan', '=')} kept: {node_name(action)}" for action in change.kept]
    for item_change in (*change.objects, *change.templates):
        lines += object_lines(item_change, paint)
    lines += local_budget_section(change.head, change.objects, zone, paint)
    if change.new_findings:
        lines += ["", paint("bold", "New findings"), *finding_lines(change.new_findings, paint)]
    if change.fixed_findings:
        lines += ["", paint("bold", "Fixed findings"), *finding_lines(change.fixed_findings, paint)]
    lines += _week_lines(change, timelines, zone)
    lines += [paint("yellow", note if note.endswith(".") else f"{note}.") for note in notes(change)]
    advice = verdict(change)
    lines += ["", *_cost_lines(change, paint), *([paint("bold", f"{advice}.")] if advice else [])]
    return terminal_lines(lines, paint, width)


def _demand_lines(change: Difference, paint: Paint) -> list[str]:
    lines = []
    for item in change.demands[:MOST_ROWS]:
        before, after = item.size_words
        words = after if before == after else f"{before} → {after}"
        wanted = None if item.after is None else item.after.wanted
        words += "" if wanted is None else " chunk" if wanted == 1 else " chunks"
        if item.unplaced:
            was = f" ({item.unplaced_before:,} before)" if item.unplaced_before else ""
            words += paint("red", f", {item.unplaced:,} of them without a place{was}")
        lines.append(f"  ~ {item.ref}: {words}")
        lines += [f"      {paint('yellow', reason)}" for reason in change.why(item)]
    return lines + rest_lines(change.demands)


def _week_lines(
    change: Difference, timelines: tuple[CapacityTimeline, CapacityTimeline] | None, zone: tzinfo | None
) -> list[str]:
    if timelines is None:
        return []
    week = change_rows(*timelines, zone or local_zone(change.head.now))
    if not week["lines"]:
        return []
    lines = ["", week["title"], f"  {'':6} {week['heading']}"]
    for row in week["lines"]:
        lines.append(f"  {row['name']}")
        lines += [f"  {name:6} {blocks}" for name, blocks in row["blocks"]]
        lines.append(f"         {row['words']}")
    lines += [f"  … and {week['left']:,} more that change"] if week["left"] else []
    return [*lines, f"  {week['legend']} Times are {week['zone']}."]


def _cost_lines(change: Difference, paint: Paint) -> list[str]:
    lines = [f"Cost: {hourly_words(change)}"]
    cost = change.cost
    if cost is not None:
        lines[0] += (
            f"; over {SPAN} {dollars(cost.before)} → {dollars(cost.after)} ({change_words(cost.before, cost.after)})"
        )
        for rows in (demand_rows(cost), pool_rows(cost), window_rows(cost)):
            lines += [f"  {row['name']}: {row['what']} ({row['why']})" for row in rows[:MOST_ROWS]]
            lines += rest_lines(rows)
    return lines + [paint("dim", f"  {assumption}") for assumption in assumptions(change)]
