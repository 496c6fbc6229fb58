"""Disruption budgets as JSON (`headroom.dev/budgets/v1`), as rows for `budgets.html.j2`, and as written in local time beside UTC.

And as a heat map: a lane for each NodePool and reason, week by week. Each box has a number and a colour: 0 is struck through, no limit is an
empty dashed box with ∞. The tooltip has the times and the budget that binds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import groupby
from typing import Any

from reconciler.model.changes import BudgetOutcome, ObjectChange, Plan
from reconciler.model.findings import Finding
from reconciler.model.nodes import DisruptionBudget
from reconciler.model.quantity import format_duration
from reconciler.model.refs import counted
from reconciler.model.schedules import AllowWindow, PoolBudgets
from reconciler.model.timelines import BudgetPieces, BudgetSpan, CapacityTimeline
from reconciler.report.drawing.svg import NORMAL, Drawing, TimeAxis, lines_of, span_words
from reconciler.report.drawing.value_lanes import allowed_spans, merged, number_of
from reconciler.report.escaping import members, timestamp, to_json
from reconciler.report.findings import finding_row, finding_words
from reconciler.report.timeline.chart import ALLOWED, DESK, Lane, Present, described, draw_group, lanes
from reconciler.report.words import listed, local_zone, moment

_ROWS_A_PART = 2000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1) // timedelta(microseconds=1)
BUDGETS_SCHEMA = "headroom.dev/budgets/v1"
MOST_SPANS = 60
"""The most spans to list for one reason."""


def budgets_document(
    outcomes: Sequence[BudgetOutcome], *, now: datetime, findings: Iterable[Finding] = ()
) -> dict[str, Any]:
    """Every pool and reason at one instant."""
    return _document([budget_row(outcome) for outcome in outcomes], now, findings)


def budget_spans_json(
    pieces: Iterable[BudgetPieces], *, now: datetime, findings: Iterable[Finding] = ()
) -> Iterator[str]:
    """Every pool and reason over a span, as parts of the text. A row lasts as long as nothing changes; `to` is exclusive.

    It comes in parts, without an object for each row, since a year of two hundred pools has millions of rows.
    """
    whole = to_json(_document([{}], now, findings))
    before, after = whole.split("{}", 1)
    separator = ""
    for rows in _rows(pieces):
        yield before + separator + ",\n    ".join(rows)
        before, separator = "", ",\n    "
    yield after if separator else to_json(_document([], now, findings))


def _rows(pieces: Iterable[BudgetPieces]) -> Iterator[list[str]]:
    """Rows as text, in batches. Each loop over all rows is a comprehension, which takes half as long."""
    days, times = _Days(), _Times()
    for item in pieces:
        distinct = {id(outcome): outcome for outcome in item.outcomes}
        said = {key: _below(to_json(budget_row(outcome))) for key, outcome in distinct.items()}
        for first in range(0, len(item.outcomes), _ROWS_A_PART):
            words = [
                f"{days[edge // _DAY]}T{times[edge % _DAY]}" for edge in item.edges[first : first + _ROWS_A_PART + 1]
            ]
            outcomes = item.outcomes[first : first + _ROWS_A_PART]
            yield [
                f'{{\n      "from": "{begin}",\n      "to": "{end}",{said[id(outcome)]}'
                for begin, end, outcome in zip(words[:-1], words[1:], outcomes, strict=True)
            ]


def _below(row: str) -> str:
    """The rest of a row, after its span, at its depth in the document."""
    return row.strip()[1:].replace("\n", "\n    ")


class _Days(dict[int, str]):
    """Text for days since 1970. Cached, since many instants share few days."""

    def __missing__(self, day: int) -> str:
        self[day] = words = timestamp(_EPOCH + timedelta(days=day)).partition("T")[0]
        return words


class _Times(dict[int, str]):
    """Text for times of day in microseconds, cached likewise."""

    def __missing__(self, time: int) -> str:
        self[time] = words = timestamp(_EPOCH + timedelta(microseconds=time)).partition("T")[2]
        return words


def _document(rows: list[dict[str, Any]], now: datetime, findings: Iterable[Finding]) -> dict[str, Any]:
    return {
        "schemaVersion": BUDGETS_SCHEMA,
        "now": timestamp(now),
        "budgets": rows,
        "findings": [finding_row(finding) for finding in findings],
    }


def budget_row(row: BudgetOutcome) -> dict[str, Any]:
    return members(row, "node_pool", "reason", "budget", "allowed", "disrupting", "not_ready", "total", "why")


def budget_page(
    outcomes: Sequence[BudgetOutcome],
    spans: Sequence[BudgetSpan],
    *,
    heading: str,
    now: datetime,
    zone: tzinfo | None = None,
    findings: Sequence[Finding] = (),
) -> dict[str, Any]:
    """outcomes: what holds now. spans: what will hold, in order within each NodePool and reason."""
    place = zone or local_zone(now)
    return {
        "title": heading,
        "when": moment(now, place),
        "now": [_outcome(item) for item in outcomes],
        "chart": budget_chart(spans, zone=place, now=now, findings=findings, alone=False),
        "ahead": [_ahead(f"{pool} {reason}", own, place) for (pool, reason), own in by_row(spans).items()],
        "findings": [finding_words(finding) for finding in findings],
    }


def _outcome(item: BudgetOutcome) -> dict[str, str]:
    return {
        "name": item.node_pool,
        "reason": item.reason,
        "allowed": number_of(item.allowed),
        "budget": number_of(item.budget),
        "total": f"{item.total:,}",
        "why": item.why,
    }


def _ahead(name: str, spans: Sequence[BudgetSpan], zone: tzinfo) -> dict[str, Any]:
    merged_spans = merged(allowed_spans(spans))
    rows = [
        {"when": span_words(span.start, span.end, zone), "allowed": number_of(span.value), "why": span.why}
        for span in merged_spans[:MOST_SPANS]
    ]
    changes = counted(len(merged_spans) - 1, "change")
    return {"name": name, "changes": changes, "rows": rows, "left": max(0, len(merged_spans) - MOST_SPANS)}


def local_budgets_row(pool: PoolBudgets) -> dict[str, Any]:
    """For the plan's JSON: written and compiled budgets in the form of a NodePool's, times in UTC."""
    written, form = pool.written, pool.compiled
    return {
        "nodePool": pool.node_pool,
        "timeZone": written.time_zone,
        "written": {
            "budgets": [_budget(budget) for budget in written.budgets],
            "allowWindows": [_window(window) for window in written.allow_windows],
        },
        "compiled": [_budget(budget) for budget in form.budgets],
        **members(form, "renew_at", "valid_until"),
    }


def changing_local_budgets(plan: Plan, objects: Iterable[ObjectChange]) -> list[PoolBudgets]:
    """The budgets of NodePools that change. The JSON has all of them.

    objects: the plan's own, or those that merging would change.
    """
    changing = {change.ref.name for change in objects if change.ref.kind == "NodePool"}
    return [pool for pool in plan.local_budgets if pool.node_pool in changing]


def written_and_compiled(pool: PoolBudgets) -> list[tuple[str, list[str]]]:
    """What was written, and what it was compiled into, in words: `0 (Drifted): 0 9 * * mon-fri for 8h`."""
    pairs = [
        (budget_words(budget), [budget_words(item) for item, origin in _sourced(pool) if origin == index])
        for index, budget in enumerate(pool.written.budgets)
    ]
    if pool.written.allow_windows:
        windows = "; ".join(
            f"{window.schedule} for {_length(window.duration)}{_reasons(window.reasons)}"
            for window in pool.written.allow_windows
        )
        zeros = [budget_words(item) for item, origin in _sourced(pool) if origin is None]
        pairs.append((f"only in {windows}", zeros))
    return pairs


def validity(pool: PoolBudgets, zone: tzinfo | None) -> str:
    form = pool.compiled
    return f"valid until {moment(form.valid_until, zone)}; recompiled from {moment(form.renew_at, zone)}"


def budget_words(budget: DisruptionBudget) -> str:
    when = "always" if budget.schedule is None else f"{budget.schedule} for {_length(budget.duration)}"
    return f"{budget.nodes}{_reasons(budget.reasons)}: {when}"


def _reasons(reasons: tuple[str, ...] | None) -> str:
    return "" if reasons is None else f" ({', '.join(reasons)})"


def _length(duration: timedelta | None) -> str:
    return "" if duration is None else format_duration(duration)


def _sourced(pool: PoolBudgets) -> Iterable[tuple[DisruptionBudget, int | None]]:
    return zip(pool.compiled.budgets, pool.compiled.origins, strict=True)


def _budget(budget: DisruptionBudget) -> dict[str, Any]:
    duration = None if budget.duration is None else format_duration(budget.duration)
    return {**members(budget, "nodes", "reasons", "schedule"), "duration": duration}


def _window(window: AllowWindow) -> dict[str, Any]:
    return {**members(window, "reasons", "schedule"), "duration": format_duration(window.duration)}


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
