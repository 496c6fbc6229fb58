"""One row of a chart over time: values as bars, budgets as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, inf

from reconciler.model.refs import counted
from reconciler.model.timelines import BudgetSpan, joined
from reconciler.report.drawing.svg import NORMAL, Drawing, TimeAxis, on_step, span_words, step_of, width_of

NUMBER_ROOM = 13
"""The room above bars for their numbers, in pixels."""
UNBOUNDED = "∞"


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """A value over [start, end), and why in words; None: unbounded."""

    start: datetime
    end: datetime
    value: int | None
    why: str = ""


def allowed_spans(spans: Sequence[BudgetSpan]) -> list[ValueSpan]:
    """What one NodePool's budgets for one reason allow, as values."""
    return [ValueSpan(span.start, span.end, span.outcome.allowed, span.outcome.why) for span in spans]


def merged(spans: Sequence[ValueSpan]) -> list[ValueSpan]:
    """Neighbouring spans of equal value and reason as one, so that the number is written once."""
    return joined(spans, lambda span: (span.value, span.why))


@dataclass(frozen=True, slots=True)
class Stroke:
    """A span with the pixels [left, right) in which it is drawn."""

    left: float
    right: float
    span: ValueSpan


def visible(spans: Sequence[ValueSpan], axis: TimeAxis, *, lowest: bool) -> list[Stroke]:
    """Merged spans with their pixel columns. Where several share a column, the lowest or the highest is drawn.

    Strokes follow one another without a gap. A span without a column of its own is not drawn.
    """
    those = merged(spans)
    owners: dict[int, int] = {}
    sign = -1 if lowest else 1
    for index, span in enumerate(those):
        for column in _columns(span, axis):
            owner = owners.get(column)
            if owner is None or sign * _size(span) > sign * _size(those[owner]):
                owners[column] = index
    strokes: list[Stroke] = []
    for column in sorted(owners):
        span = those[owners[column]]
        left, right = axis.left + column, axis.left + min(column + 1, axis.width)
        if strokes and strokes[-1].span is span and strokes[-1].right == left:
            left = strokes.pop().left
        strokes.append(Stroke(left, right, span))
    return strokes


def _columns(span: ValueSpan, axis: TimeAxis) -> range:
    """The columns that a span overlaps, counted from the axis's first; in integers, so that rounding cannot add a neighbour's."""
    length = axis.end - axis.start
    count = ceil(axis.width)
    first = (span.start - axis.start) * count // length
    last = -((axis.start - span.end) * count // length)
    return range(max(0, first), min(count, last))


def _size(span: ValueSpan) -> float:
    return inf if span.value is None else span.value


def draw_values(
    drawing: Drawing,
    axis: TimeAxis,
    spans: Sequence[ValueSpan],
    *,
    top: float,
    height: float,
    values: Sequence[int] = (),
) -> None:
    """Draws bars on a base line, each with its number above it if there is room. 0 is only a line.

    values: those of the scale, if other lanes share it.
    """
    shown = visible(spans, axis, lowest=False)
    scale = values or [span.value or 0 for span in spans]
    most = max((*scale, 1))
    base = top + height
    numbered = axis.left
    for index, stroke in enumerate(shown):
        span, left, right = stroke.span, stroke.left, stroke.right
        value = span.value or 0
        words = f"{value:,}: {span_words(span.start, span.end, axis.zone)}" + (f", {span.why}" if span.why else "")
        tall = max(3.0, (height - NUMBER_ROOM) * value / most) if value else 1.5
        look = f"v{step_of(value, scale)}"
        drawing.rectangle(left, base - tall, max(1.0, right - left - 0.5), tall, look, tooltip=words)
        number, middle = f"{value:,}", (left + right) / 2
        begins = middle - width_of(number) / 2
        # The number of a narrow peak has room above its neighbours.
        around = (*shown[max(0, index - 1) : index], *shown[index + 1 : index + 2])
        is_peak = all((other.span.value or 0) < value for other in around)
        inside = axis.left <= begins and begins + width_of(number) <= axis.left + axis.width
        is_wide = width_of(number) <= right - left + 1 and begins >= numbered - 1
        if is_wide or (is_peak and inside and begins >= numbered):
            drawing.text(middle, base - tall - 3, number, "small", anchor="middle", tooltip=words)
            numbered = begins + width_of(number)
    drawing.line(axis.left, base, axis.left + axis.width, base)


def draw_allowed(
    drawing: Drawing, axis: TimeAxis, spans: Sequence[ValueSpan], *, top: float, height: float, values: Sequence[int]
) -> None:
    """Draws boxes: 0 is struck through, unbounded is an empty dashed box with ∞, others have a colour of the scale of `values`."""
    for stroke in visible(spans, axis, lowest=True):
        span, left = stroke.span, stroke.left
        width = max(1.0, stroke.right - left - 1)
        allowed = span.value
        words = f"{span_words(span.start, span.end, axis.zone)}: {allowed_words(allowed)}. {span.why}"
        number, look = number_of(allowed), "strong bad" if allowed == 0 else "soft"
        if allowed == 0:
            drawing.crossed(left, top, width, height, tooltip=words)
        elif allowed is None:
            drawing.rectangle(left, top, width, height, "page", tooltip=words)
            drawing.rectangle(left + 0.5, top + 0.5, max(0.5, width - 1), height - 1, "free", tooltip=words)
        else:
            step = step_of(allowed, values)
            drawing.rectangle(left, top, width, height, f"v{step}", tooltip=words)
            look = on_step(step)
        room = width_of(number, NORMAL)
        if room + 2 <= width:
            middle = left + width / 2
            if allowed == 0:
                drawing.rectangle(middle - room / 2 - 3, top + 1.5, room + 6, height - 3, "page", tooltip=words)
            drawing.text(middle, top + height / 2 + 4, number, look, anchor="middle", tooltip=words)


def number_of(value: int | None) -> str:
    return UNBOUNDED if value is None else f"{value:,}"


def allowed_words(allowed: int | None) -> str:
    if allowed is None:
        return "any number of nodes may be disrupted"
    return "no node may be disrupted" if allowed == 0 else f"{counted(allowed, 'node')} at once may be disrupted"
