"""The last days as a picture: chunks that were asked for and that were ready, and what all nodes cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from reconciler.model.quantity import format_duration
from reconciler.model.timelines import FillPoint
from reconciler.report.drawing.svg import Drawing, width_of
from reconciler.report.words import dollars

_TALL, _LOW, _GAP = 72.0, 40.0, 26.0
_TICKS = tuple(
    timedelta(minutes=minutes) for minutes in (1, 5, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 4320, 10080)
)
_BETWEEN = 90
"""Pixels between two ticks, at least."""


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
    description = f"{last.ready:,} of {last.wanted:,} chunks are ready; {lack}; {dollars(last.price)} an hour"
    drawing = Drawing(width, title, description)
    left = 12 + max(width_of(f"{most:,}"), width_of(f"${dearest:,.2f}") if dearest else 0)
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
        drawing.text(left - 5, base - _LOW + 9, f"${dearest:,.2f}", "soft small", anchor="end")
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
