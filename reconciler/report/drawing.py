"""SVG: shapes, texts that fit, colours for light and dark mode, where instants are on a chart, and lanes of values over time: bars, and
budgets as a heat map. No other module writes SVG.

A drawing has a title and a description in words, is self-contained, and is the same bytes for the same input. What a colour shows is
always shown by a number, a height or a pattern too.

Days begin at local midnight, even if daylight saving makes one 23 or 25 hours long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from math import ceil, inf
from textwrap import wrap

from reconciler.model.refs import counted
from reconciler.model.schedules import MONTHS, WEEKDAYS
from reconciler.model.timelines import joined
from reconciler.report.escaping import visible, xml_text

STEPS = 6
"""The number of colours of a scale."""
_CHARACTER = 0.57
"""The average width of a character in wide fonts, as a share of the font size. Texts are cut by it so that they fit."""
_NUMERAL = 0.64
NORMAL, SMALL = 12, 11
"""Font sizes; the class `small` has the latter."""

_STYLE = """
.chart { font: 12px/1 system-ui, -apple-system, "Segoe UI", sans-serif; font-variant-numeric: tabular-nums;
  --page: #ffffff; --ink: #1f2328; --soft: #57606a; --line: #d0d7de; --faint: #f6f8fa; --bad: #b42318; --badfill: #fde3df;
  --v0: #e3ecf7; --v1: #bcd5ee; --v2: #8ab6e0; --v3: #2f6fad; --v4: #1f5a94; --v5: #0b3d6e; --onlow: #1f2328; --onhigh: #ffffff; }
@media (prefers-color-scheme: dark) { .chart {
  --page: #0d1117; --ink: #e6edf3; --soft: #9198a1; --line: #30363d; --faint: #161b22; --bad: #ff7b72; --badfill: #4a1d1a;
  --v0: #1b3350; --v1: #1d4670; --v2: #235a8f; --v3: #5a9bd8; --v4: #8fbdea; --v5: #c7e0f8; --onlow: #e6edf3; --onhigh: #0d1117; } }
.chart text { fill: var(--ink); } .chart .soft { fill: var(--soft); } .chart .bad { fill: var(--bad); }
.chart .strong { font-weight: 600; } .chart .head { font-size: 15px; font-weight: 600; } .chart .small { font-size: 11px; }
.chart .page { fill: var(--page); } .chart .faint { fill: var(--faint); }
.chart .line { stroke: var(--line); stroke-width: 1; } .chart .now { stroke: var(--bad); stroke-width: 1.5; }
.chart .none { fill: var(--badfill); stroke: var(--bad); stroke-width: 1; } .chart .cross { stroke: var(--bad); stroke-width: 1; }
.chart .free { fill: none; stroke: var(--soft); stroke-width: 1; stroke-dasharray: 2 2; } .chart .mark { fill: none; stroke: var(--bad); stroke-width: 2; }
.chart .v0 { fill: var(--v0); } .chart .v1 { fill: var(--v1); } .chart .v2 { fill: var(--v2); }
.chart .v3 { fill: var(--v3); } .chart .v4 { fill: var(--v4); } .chart .v5 { fill: var(--v5); }
.chart text.onlow { fill: var(--onlow); } .chart text.onhigh { fill: var(--onhigh); }
"""


def step_of(value: int, values: Sequence[int]) -> int:
    """The colour of a value among all values of a chart: by rank, so that 1, 2 and 300 differ."""
    ranks = sorted(set(values))
    if len(ranks) < 2:  # noqa: PLR2004 - one value has no scale
        return 1
    # With more values than colours, 0 keeps a colour of its own, so that no other value looks like 0.
    if len(ranks) > STEPS and ranks[0] == 0:
        return 0 if value == 0 else 1 + _spread(ranks.index(value) - 1, len(ranks) - 1, STEPS - 1)
    return _spread(ranks.index(value), len(ranks), STEPS)


def _spread(rank: int, ranks: int, steps: int) -> int:
    """The step of a rank. Halves are rounded up, as in the page's script, so that both use the same colours."""
    return (2 * rank * (steps - 1) + ranks - 1) // (2 * (ranks - 1))


def on_step(step: int) -> str:
    """The class of a text on a colour of the scale."""
    return "onlow" if step < STEPS // 2 else "onhigh"


def width_of(text: str, size: int = SMALL) -> float:
    """The largest width of a text, in pixels."""
    return size * sum(_NUMERAL if character.isdigit() else _CHARACTER for character in text)


def lines_of(text: str, width: float) -> list[str]:
    """A small text in lines that fit."""
    return wrap(text, int(width / (_CHARACTER * SMALL))) or [""]


def fitting(text: str, width: float, size: int = SMALL) -> str:
    """The text, or as much of its beginning and end as fits: names differ most at their ends."""
    most = int(width / (_CHARACTER * size))
    if len(text) <= most:
        return text
    if most < 4:  # noqa: PLR2004 - fewer characters say nothing
        return "…"
    tail = (most - 1) * 2 // 3
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


class Drawing:
    """Collects shapes and texts; `svg` writes them, texts on top. Measures are pixels from the top left corner."""

    def __init__(self, width: int, title: str, description: str) -> None:
        self.width = width
        self._title = title
        self._description = description
        self._shapes: list[str] = []
        self._texts: list[str] = []

    def rectangle(
        self, x: float, y: float, width: float, height: float, look: str, *, tooltip: str = "", round_by: int = 0
    ) -> None:
        """tooltip: shown when the pointer rests on the shape."""
        corner = f' rx="{round_by}"' if round_by else ""
        shape = f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"{corner} class="{look}"'
        self._shapes.append(f"{shape}><title>{xml_text(tooltip)}</title></rect>" if tooltip else f"{shape}/>")

    def text(self, x: float, y: float, words: str, look: str = "", *, anchor: str = "start", tooltip: str = "") -> None:
        """x: where the anchor (start, middle, end) is; y: the base line."""
        attributes = (f' class="{look}"' if look else "") + (f' text-anchor="{anchor}"' if anchor != "start" else "")
        title = f"<title>{xml_text(tooltip)}</title>" if tooltip else ""
        self._texts.append(f'<text x="{_n(x)}" y="{_n(y)}"{attributes}>{xml_text(words)}{title}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, look: str = "line") -> None:
        self._shapes.append(f'<path d="M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}" class="{look}"/>')

    def steps(self, places: Sequence[tuple[float, float]], base: float, look: str) -> None:
        """The area between a line of steps and `base`. places: where each step begins; the last one only ends the step before."""
        path = [f"M{_n(places[0][0])} {_n(base)}V{_n(places[0][1])}"]
        path += [f"H{_n(x)}V{_n(y)}" for x, y in places[1:]]
        self._shapes.append(f'<path d="{"".join(path)}V{_n(base)}Z" class="{look}"/>')

    def crossed(self, x: float, y: float, width: float, height: float, *, tooltip: str) -> None:
        """Strikes a box through every 8 pixels, so that it means "none" even without colour."""
        self.rectangle(x, y, width, height, "none", tooltip=tooltip)
        strokes = []
        at = 0.0
        while at < width:
            along = min(height, width - at)
            strokes.append(f"M{_n(x + at)} {_n(y + height)}l{_n(along)} {_n(-along)}")
            at += 8
        self._shapes.append(f'<path d="{"".join(strokes)}" class="cross" pointer-events="none"/>')

    def svg(self, height: float) -> str:
        size = f'width="{self.width}" height="{_n(height)}" viewBox="0 0 {self.width} {_n(height)}"'
        from xml.sax.saxutils import quoteattr

        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" {size} aria-label={quoteattr(visible(self._title))}>'
        parts = [
            head,
            f"<title>{xml_text(self._title)}</title>",
            f"<desc>{xml_text(self._description)}</desc>",
            f"<style>{_STYLE}</style>",
            f'<rect width="{self.width}" height="{_n(height)}" class="page"/>',
            *self._shapes,
            *self._texts,
            "</svg>",
        ]
        return "\n".join(parts) + "\n"


def _n(value: float) -> str:
    """A number with at most one decimal: short, and the same on every machine."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


_BETWEEN = 6
"""The least distance of two names of days, in pixels."""
MOST_DAYS = 400
"""The longest span with a mark for each day, in days. A longer one has no marks."""


def day_words(day: date) -> str:
    """`Mon 23 Nov`."""
    return f"{WEEKDAYS[day.isoweekday() % 7]} {day.day} {MONTHS[day.month - 1]}"


def instant_words(time: datetime, zone: tzinfo) -> str:
    """`Mon 23 Nov 09:00`, in the zone; with seconds only if they are not 0."""
    local = time.astimezone(zone)
    return f"{day_words(local.date())} {local:%H:%M:%S}" if local.second else f"{day_words(local.date())} {local:%H:%M}"


def span_words(start: datetime, end: datetime, zone: tzinfo) -> str:
    """`Mon 23 Nov 09:00 to 17:00`; with the day of the end only if it is another."""
    first, last = start.astimezone(zone), end.astimezone(zone)
    clock = f"{last:%H:%M:%S}" if last.second else f"{last:%H:%M}"
    until = clock if first.date() == last.date() else instant_words(end, zone)
    return f"{instant_words(start, zone)} to {until}"


def midnight(day: date, zone: tzinfo) -> datetime:
    """The instant at which a local day begins, in UTC; where its midnight does not exist, the first instant that does."""
    # A midnight that daylight saving skips is read with the offset before the change, which is the instant of the change.
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def midnights(start: datetime, end: datetime, zone: tzinfo) -> Iterator[tuple[date, datetime]]:
    """Each local day that overlaps [start, end), with the instant at which it begins."""
    day = start.astimezone(zone).date()
    for _ in range(MOST_DAYS):
        begins = midnight(day, zone)
        if begins >= end:
            return
        yield day, begins
        day += timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The axis. start and end are at `left` and `left + width`, in pixels."""

    start: datetime
    end: datetime
    zone: tzinfo
    left: float
    width: float

    def x(self, time: datetime) -> float:
        share = (time - self.start) / (self.end - self.start)
        return self.left + self.width * min(1.0, max(0.0, share))

    def draw(self, drawing: Drawing, top: float, bottom: float) -> None:
        """Draws the names of days that fit above `top`, and a line down to `bottom` where each begins."""
        free_from = self.left
        for day, begins in midnights(self.start, self.end, self.zone):
            x = self.x(begins)
            if begins > self.start:
                drawing.line(x, top - 4, x, bottom)
            words = day_words(day)
            # If the first day is nearly over, its name is left out in favour of the next one's.
            next_day = self.x(midnight(day + timedelta(days=1), self.zone))
            fits = begins > self.start or next_day - x >= width_of(words) + _BETWEEN
            if fits and x >= free_from and x + width_of(words) <= self.left + self.width:
                drawing.text(x + 3, top - 8, words, "soft small")
                free_from = x + width_of(words) + _BETWEEN


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

    @property
    def size(self) -> float:
        return inf if self.value is None else self.value


def merged(spans: Sequence[ValueSpan]) -> list[ValueSpan]:
    """Neighbouring spans of equal value and reason as one, so that the number is written once."""
    return joined(spans, lambda span: (span.value, span.why))


@dataclass(frozen=True, slots=True)
class Stroke:
    """A span with the pixels [left, right) in which it is drawn."""

    left: float
    right: float
    span: ValueSpan


def strokes(spans: Sequence[ValueSpan], axis: TimeAxis, *, lowest: bool) -> list[Stroke]:
    """Merged spans with their pixel columns. Where several share a column, the lowest or the highest is drawn.

    Strokes follow one another without a gap. A span without a column of its own is not drawn.
    """
    owners: dict[int, ValueSpan] = {}
    for span in merged(spans):
        for column in _columns(span, axis):
            owner = owners.get(column)
            if owner is None or (span.size < owner.size if lowest else span.size > owner.size):
                owners[column] = span
    found: list[Stroke] = []
    for column in sorted(owners):
        span, left, right = owners[column], axis.left + column, axis.left + min(column + 1, axis.width)
        if found and found[-1].span is span and found[-1].right == left:
            left = found.pop().left
        found.append(Stroke(left, right, span))
    return found


def _columns(span: ValueSpan, axis: TimeAxis) -> range:
    """The columns that a span overlaps, counted from the axis's first; in integers, so that rounding cannot add a neighbour's."""
    length = axis.end - axis.start
    count = ceil(axis.width)
    first = (span.start - axis.start) * count // length
    last = -((axis.start - span.end) * count // length)
    return range(max(0, first), min(count, last))


def draw_values(
    drawing: Drawing, axis: TimeAxis, spans: Sequence[ValueSpan], *, top: float, height: float, values: Sequence[int]
) -> None:
    """Draws bars on a base line, each with its number above it if there is room. 0 is only a line. values: those of the scale."""
    shown = strokes(spans, axis, lowest=False)
    most = max((*values, 1))
    base = top + height
    numbered = axis.left
    for index, stroke in enumerate(shown):
        span, left, right = stroke.span, stroke.left, stroke.right
        value = span.value or 0
        words = f"{value:,}: {span_words(span.start, span.end, axis.zone)}" + (f", {span.why}" if span.why else "")
        tall = max(3.0, (height - NUMBER_ROOM) * value / most) if value else 1.5
        look = f"v{step_of(value, values)}"
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
    for stroke in strokes(spans, axis, lowest=True):
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
