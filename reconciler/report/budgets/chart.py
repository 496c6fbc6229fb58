"""Disruption budgets as a heat map: a lane for each NodePool and reason, week by week. Called by `headroom budgets`.

Each box has a number and a colour: 0 is struck through, no limit is an empty dashed box with ∞. The tooltip has the times and the budget
that binds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from itertools import groupby

from reconciler.model.findings import Finding
from reconciler.model.timelines import BudgetSpan, CapacityTimeline
from reconciler.report.drawing.svg import NORMAL, Drawing, lines_of
from reconciler.report.drawing.time_axis import TimeAxis
from reconciler.report.timeline.chart import ALLOWED, DESK, Lane, Present, described, draw_group, lanes
from reconciler.report.words import listed, moment

_WEEK = timedelta(days=7)


def no_pool_words(findings: Sequence[Finding]) -> str:
    """Why there is no row: no NodePool is declared, or all were left out because of findings."""
    left_out = list(dict.fromkeys(str(item.ref) for item in findings if item.ref is not None))
    if not left_out:
        return "There is no NodePool."
    words = "is left out; see the finding" if len(left_out) == 1 else "are left out; see the findings"
    return f"{listed(left_out)} {words}."


def by_row(spans: Sequence[BudgetSpan]) -> dict[tuple[str, str], tuple[BudgetSpan, ...]]:
    """Spans by NodePool and reason. Pools are sorted by name; reasons and spans keep their order."""
    ordered = sorted(spans, key=lambda span: span.outcome.node_pool)
    return {key: tuple(own) for key, own in groupby(ordered, key=lambda s: (s.outcome.node_pool, s.outcome.reason))}


def budget_chart(
    spans: Sequence[BudgetSpan], *, zone: tzinfo, now: datetime, findings: Sequence[Finding] = (), alone: bool = True
) -> str:
    """One SVG of all spans, which must be in order within each NodePool and reason. Times are in `zone`.

    alone: with a title and the time; a page around it has its own.
    """
    width, none = DESK.width, no_pool_words(findings)
    ordered = sorted(spans, key=lambda span: span.outcome.node_pool)
    first, last = min((item.start for item in spans), default=now), max((item.end for item in spans), default=now)
    rows = lanes(CapacityTimeline(first, last, budgets=tuple(ordered)))
    drawing = Drawing(width, "Disruption budgets", described([[(lane.name, lane)] for lane in rows]) or none)
    y = 46.0 if alone else 8.0
    if alone:
        drawing.text(12, 26, "Disruption budgets", "head")
        drawing.text(width - 12, 26, moment(now, zone), "soft small", anchor="end")
    if not rows:
        for line in lines_of(none, width - 24, NORMAL):
            drawing.text(12, y + 4, line, "soft")
            y += 16
    begins = first
    while begins < last:
        ends = min(last, begins + _WEEK)  # a week in a row, so that an hour is wide enough to see
        axis = TimeAxis(begins, ends, zone, DESK.left, width - DESK.left - 12)
        week = [[(lane.name, _within(lane, begins, ends))] for lane in rows]
        present = Present(now) if begins < now < ends else None
        y = draw_group(drawing, axis, ALLOWED, week, top=y, layout=DESK, present=present)
        begins = ends
    return drawing.svg(y)


def _within(lane: Lane, start: datetime, end: datetime) -> Lane:
    return replace(
        lane,
        spans=tuple(
            replace(span, start=max(span.start, start), end=min(span.end, end))
            for span in lane.spans
            if span.start < end and span.end > start
        ),
    )
