"""What merging would change, as text for a terminal. Called by `headroom diff`."""

from __future__ import annotations

from datetime import tzinfo

from reconciler.model.changes import HOURS_PER_MONTH
from reconciler.report.difference.difference import Difference
from reconciler.report.escaping import terminal_lines
from reconciler.report.findings.text import finding_lines
from reconciler.report.paint import Paint, plain
from reconciler.report.plan.objects import local_budget_section, object_lines
from reconciler.report.plan.words import held, node_name, offered, static_words
from reconciler.report.terminal_rows import MOST_ROWS, rest_lines
from reconciler.report.words import dollars, moment, short_revision, signed_dollars


def difference_text(
    change: Difference, *, zone: tzinfo | None = None, paint: Paint = plain, width: int | None = None
) -> str:
    """What `headroom diff` prints."""
    base, head = short_revision(change.base.revision), short_revision(change.head.revision)
    lines = [paint("bold", f"What merging {head} into {base} would change, {moment(change.head.now, zone)}")]
    for item in change.demands:
        unplaced = paint("red", f" ({item.unplaced:,} unplaced)") if item.unplaced else ""
        lines.append(f"  ~ {item.ref}: {item.before_words} → {item.after_words} chunks{unplaced}")
    for sign, style, items in (("+", "green", change.added_nodes), ("-", "red", change.removed_nodes)):
        for creation in items[:MOST_ROWS]:
            words = f"{offered(creation)}, for {held(creation.planned.holdings)}"
            lines.append(f"  {paint(style, sign)} node in NodePool {creation.planned.node_pool}: {words}")
        lines += rest_lines(items)
    for pool in change.static_pools:
        sign, style = ("+", "green") if pool.after > pool.before else ("-", "red")
        lines.append(f"  {paint(style, sign)} NodePool {pool.node_pool}: {static_words(pool)}")
    lines += [f"  {paint('yellow', '-')} released: {node_name(action)}" for action in change.released]
    lines += [f"  {paint('cyan', '=')} kept: {node_name(action)}" for action in change.kept]
    for item_change in change.objects:
        lines += object_lines(item_change, paint)
    lines += local_budget_section(change.head, change.objects, zone, paint)
    if change.new_findings:
        lines += ["", paint("bold", "New findings"), *finding_lines(change.new_findings, paint)]
    if change.fixed_findings:
        lines += ["", paint("bold", "Fixed findings"), *finding_lines(change.fixed_findings, paint)]
    if not change.has_changes:
        lines.append("  No change in capacity.")
    lines += [
        "",
        (
            f"Cost once applied: {dollars(change.per_hour_before)}/h → {dollars(change.per_hour_after)}/h"
            f" ({signed_dollars(change.per_month_delta)} a month of {HOURS_PER_MONTH} h)"
        ),
    ]
    return terminal_lines(lines, paint, width)
