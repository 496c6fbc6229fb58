"""Disruption budgets as a heat map: a row for each NodePool and reason, hour by hour. Called by `headroom budgets`.

Each box has a number and a colour: 0 is struck through, no limit is an empty dashed box with ∞. The tooltip has the
times and the budget that binds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import groupby

from reconciler.model.findings import Finding
from reconciler.model.timelines import BudgetSpan
from reconciler.report.drawing.svg import NORMAL, Drawing, fitting, lines_of, step_of, width_of
from reconciler.report.drawing.time_axis import TimeAxis, span_words
from reconciler.report.drawing.value_lanes import UNBOUNDED, ValueSpan, allowed_spans, draw_allowed, number_of
from reconciler.report.words import counted, listed, moment

WIDTH = 980
LEFT = 118
GRID = WIDTH - LEFT - 12
ROW = 24
_TITLE = 30.0
"""The height of the title."""
_WEEK = timedelta(days=7)
MOST_LEGEND = 12
"""The most values in the legend's scale. Boxes have their numbers in any case."""


def no_pool_words(findings: Sequence[Finding]) -> str:
    """Why there is no row: no NodePool is declared, or all were left out because of findings."""
    left_out = list(dict.fromkeys(str(item.ref) for item in findings if item.ref is not None))
    if not left_out:
        return "There is no NodePool."
    words = "is left out; see the finding" if len(left_out) == 1 else "are left out; see the findings"
    return f"{listed(left_out)} {words}."


def by_row(spans: Sequence[BudgetSpan]) -> dict[str, dict[str, tuple[BudgetSpan, ...]]]:
    """Spans by NodePool and reason. Pools are sorted by name; reasons and spans keep their order."""
    pools: dict[str, dict[str, tuple[BudgetSpan, ...]]] = {}
    for pool in sorted({span.outcome.node_pool for span in spans}):
        own = [span for span in spans if span.outcome.node_pool == pool]
        reasons = dict.fromkeys(span.outcome.reason for span in own)
        pools[pool] = {reason: tuple(span for span in own if span.outcome.reason == reason) for reason in reasons}
    return pools


def budget_chart(
    spans: Sequence[BudgetSpan], *, zone: tzinfo, now: datetime, findings: Sequence[Finding] = (), alone: bool = True
) -> str:
    """One SVG of all spans, which must be in order within each NodePool and reason. Times are in `zone`.

    alone: with a title and the time; a page around it has its own.
    """
    pools = by_row(spans)
    none = no_pool_words(findings)
    drawing = Drawing(WIDTH, "Disruption budgets", _description(pools, zone) or none)
    top = _TITLE if alone else 0.0
    if alone:
        drawing.text(12, 26, "Disruption budgets", "head")
        drawing.text(WIDTH - 12, 26, moment(now, zone), "soft small", anchor="end")
    if not spans:
        lines = lines_of(none, WIDTH - 24, NORMAL)
        for index, line in enumerate(lines):
            drawing.text(12, top + 20 + 16 * index, line, "soft")
        return drawing.svg(top + 20 + 16 * len(lines))
    values = [span.outcome.allowed for span in spans if span.outcome.allowed]
    _legend(drawing, values, top + 18)
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    y = top + 54
    for pool, reasons in pools.items():
        y = _pool(drawing, pool, reasons, top=y)
        begins = first
        while begins < last:
            # A row is a week, so that an hour is wide enough to see.
            ends = min(last, begins + _WEEK)
            y = _week(drawing, TimeAxis(begins, ends, zone, LEFT, GRID), reasons, top=y, values=values, now=now)
            begins = ends
    return drawing.svg(y)


def _pool(drawing: Drawing, pool: str, reasons: Mapping[str, Sequence[BudgetSpan]], *, top: float) -> float:
    """Draws a NodePool's name and size. Returns the y at which its rows begin."""
    outcome = next(iter(reasons.values()))[0].outcome
    size = [counted(outcome.total, "node")]
    size += [f"{outcome.not_ready:,} not ready"] if outcome.not_ready else []
    size += [f"{outcome.disrupting:,} disrupting"] if outcome.disrupting else []
    drawing.text(12, top + 8, fitting(f"NodePool/{pool}", 620), "strong small", tooltip=f"NodePool/{pool}")
    drawing.text(WIDTH - 12, top + 8, ", ".join(size), "soft small", anchor="end")
    return top + 34


def _week(
    drawing: Drawing,
    axis: TimeAxis,
    reasons: Mapping[str, Sequence[BudgetSpan]],
    *,
    top: float,
    values: Sequence[int],
    now: datetime,
) -> float:
    """Draws a row for each reason. Returns the y at which the next part begins."""
    bottom = top + ROW * len(reasons)
    axis.draw(drawing, top, bottom, margin=LEFT - 20)
    for index, (reason, spans) in enumerate(reasons.items()):
        y = top + ROW * index
        drawing.text(LEFT - 8, y + 15, fitting(reason, LEFT - 20), "small", anchor="end", tooltip=reason)
        shown = [
            ValueSpan(max(span.start, axis.start), min(span.end, axis.end), span.value, span.why)
            for span in allowed_spans(spans)
            if span.start < axis.end and span.end > axis.start
        ]
        draw_allowed(drawing, axis, shown, top=y + 1, height=ROW - 3, values=values)
    if axis.start < now < axis.end:
        drawing.line(axis.x(now), top - 3, axis.x(now), bottom, "now")
    return bottom + 24


def _legend(drawing: Drawing, values: Sequence[int], y: float) -> None:
    x = 12.0
    drawing.text(x, y, "Nodes that may be disrupted at once:", "soft small")
    x += width_of("Nodes that may be disrupted at once:") + 8
    drawing.crossed(x, y - 11, 16, 14, tooltip="none")
    drawing.text(x + 21, y, "none", "small")
    x += 60
    for value in sorted(set(values))[:MOST_LEGEND]:
        drawing.rectangle(x, y - 11, 16, 14, f"v{step_of(value, values)}")
        drawing.text(x + 21, y, f"{value:,}", "small")
        x += 34 + width_of(f"{value:,}")
    drawing.rectangle(x + 0.5, y - 10.5, 15, 13, "free")
    drawing.text(x + 21, y, f"{UNBOUNDED} no limit", "small")


def _description(pools: Mapping[str, Mapping[str, Sequence[BudgetSpan]]], zone: tzinfo) -> str:
    """The picture in words: for each row the number allowed first, and how often it changes."""
    lines = []
    for pool, reasons in pools.items():
        for reason, spans in reasons.items():
            levels = [
                (allowed, next(group)) for allowed, group in groupby(spans, key=lambda span: span.outcome.allowed)
            ]
            first = number_of(levels[0][0])
            if len(levels) > 1:
                after = f", {number_of(levels[1][0])} {span_words(levels[1][1].start, levels[1][1].end, zone)}"
                first += f"{after}, {counted(len(levels) - 1, 'change')}"
            lines.append(f"{pool} {reason}: {first}")
    return "; ".join(lines)
