"""Disruption budgets: as JSON (`headroom.dev/budgets/v1`), and as text: what is allowed now and why, then each day hour by hour.

An hour by hour picture has a row for each day and a cell for each hour of the reader's time zone. A cell shows the fewest disruptions allowed at
any time of its hour, by number, by shade, and by colour where there is colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from itertools import groupby
from typing import Any

from reconciler.model.changes import BudgetOutcome
from reconciler.model.findings import Finding
from reconciler.model.nodes import DisruptionBudget
from reconciler.model.quantity import format_duration
from reconciler.model.refs import by_key, counted, listed
from reconciler.model.schedules import AllowWindow, PoolBudgets
from reconciler.model.timelines import UNBOUNDED, BudgetCells, BudgetPieces
from reconciler.report.day_rows import NAME_WIDTH, NO_TIME, SHADES, day_row, local_days
from reconciler.report.escaping import Paint, members, plain, terminal_lines, timestamp, to_json
from reconciler.report.findings import finding_lines, finding_row
from reconciler.report.words import moment

_ROWS_A_PART = 2000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1) // timedelta(microseconds=1)
BUDGETS_SCHEMA = "headroom.dev/budgets/v1"


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


def _budget(budget: DisruptionBudget) -> dict[str, Any]:
    duration = None if budget.duration is None else format_duration(budget.duration)
    return {**members(budget, "nodes", "reasons", "schedule"), "duration": duration}


def _window(window: AllowWindow) -> dict[str, Any]:
    return {**members(window, "reasons", "schedule"), "duration": format_duration(window.duration)}


MOST_POOLS = 40
MOST_GRIDS = 12
_STYLES = ("red", "yellow", "cyan", "cyan", "green")
_HOURS = 24
_WIDTH = 2
"""Columns of an hour."""
_EVERY = 3
_HOUR = timedelta(hours=1)


def budgets_text(
    outcomes: Sequence[BudgetOutcome],
    *,
    heading: str,
    now: datetime,
    zone: tzinfo | None,
    findings: Iterable[Finding] = (),
    paint: Paint = plain,
    width: int | None = None,
) -> str:
    """The present: each pool with its nodes, and for each reason what is allowed and why. heading: names the cluster."""
    lines = [paint("bold", f"{heading}, {moment(now, zone)}")]
    pools = [list(rows) for _, rows in groupby(outcomes, key=lambda row: row.node_pool)]
    told = tuple(findings)
    if not pools:
        lines += ["", _no_pool_words(told)]
    for rows in pools[:MOST_POOLS]:
        lines += ["", *_pool_lines(rows, paint)]
    if len(pools) > MOST_POOLS:
        lines += ["", f"… and {counted(len(pools) - MOST_POOLS, 'more NodePool')}: --output json has them all."]
    if told:
        lines += ["", paint("bold", "Findings"), *finding_lines(told, paint)]
    return terminal_lines(lines, paint, width)


def _no_pool_words(findings: Sequence[Finding]) -> str:
    """Why there is no row: no NodePool is declared, or all were left out because of findings."""
    left_out = list(dict.fromkeys(str(item.ref) for item in findings if item.ref is not None))
    if not left_out:
        return "There is no NodePool to show."
    words = "is left out; see the finding" if len(left_out) == 1 else "are left out; see the findings"
    return f"{listed(left_out)} {words}."


def hours_text(
    cells: Sequence[BudgetCells], grid: HourGrid, *, now: datetime, zone: tzinfo | None, paint: Paint = plain
) -> str:
    """What is allowed hour by hour: a picture for each pool, shared by equal reasons. A pool that never changes is one line."""
    lines = [paint("bold", f"Hour by hour, {moment(grid.edges[0], zone)} to {moment(grid.edges[-1], zone)}")]
    scale = sorted({value for row in cells for value in row.allowed})
    steady: list[str] = []
    changing: list[tuple[str, BudgetCells]] = []
    for node_pool, rows in groupby(cells, key=lambda row: row.node_pool):
        for same in by_key(((row.allowed, row.most), row) for row in rows).values():
            name = f"{node_pool}: {listed(row.reason for row in same)}"
            values = set(same[0].allowed)
            if len(values) == 1:
                steady.append(f"  {name}: {_steady(values.pop(), same[0].most)}")
            else:
                changing.append((name, same[0]))
    for name, row in changing[:MOST_GRIDS]:
        picture = grid.lines(row, values=scale, now=now, paint=paint)
        lines += ["", f"  {paint('bold', name)}", *_indented(picture)]
    if len(changing) > MOST_GRIDS:
        rest = counted(len(changing) - MOST_GRIDS, "more picture")
        lines += ["", f"  … and {rest}: --output json has all of it."]
    if steady:
        lines += ["", *steady[:MOST_POOLS]]
        if len(steady) > MOST_POOLS:
            lines.append(f"  … and {len(steady) - MOST_POOLS:,} more that never change")
    if changing:
        lines += ["", *_indented([paint("dim", _legend(cells))])]
    return terminal_lines(lines, paint)


def _pool_lines(rows: Sequence[BudgetOutcome], paint: Paint) -> list[str]:
    first = rows[0]
    parts = [counted(first.total, "node")]
    parts += [
        f"{count:,} {words}"
        for count, words in ((first.disrupting, "disrupting"), (first.not_ready, "not ready"))
        if count
    ]
    lines = [f"{paint('bold', f'NodePool {first.node_pool}')}: {', '.join(parts)}"]
    alike = by_key(((row.allowed, _why(row)), row.reason) for row in rows)
    width = max(len(listed(reasons)) for reasons in alike.values())
    words = max(len(_allowed(allowed)) for allowed, _ in alike)
    for (allowed, why), reasons in alike.items():
        style = "red" if allowed == 0 else "green"
        lines.append(f"  {listed(reasons):<{width}}  {paint(style, f'{_allowed(allowed):<{words}}')}  {why}")
    return lines


def _why(row: BudgetOutcome) -> str:
    """Reasons that differ only in their name share a line."""
    return row.why.replace(f" for {row.reason} ", " ").replace(f" names {row.reason}:", " names it:")


def _allowed(allowed: int | None) -> str:
    if allowed is None:
        return "no limit"
    return "none allowed" if allowed == 0 else f"{allowed:,} allowed"


def _count(allowed: int) -> str:
    if allowed == UNBOUNDED:
        return "no limit"
    return "none" if allowed == 0 else f"{allowed:,}"


def _steady(least: int, most: int) -> str:
    """The text for a row whose hours all have the same minimum."""
    if least == most:
        return f"{_count(least)} at all times"
    return f"{_count(least)} at some time of every hour, {'no limit' if most == UNBOUNDED else f'up to {most:,}'} at others"


def _legend(cells: Sequence[BudgetCells]) -> str:
    values = {value for row in cells for value in row.allowed}
    parts = [f"{SHADES[0]} none allowed"] if 0 in values else []
    if UNBOUNDED in values:
        parts.append(f"{SHADES[-1]} no limit (∞)")
    return "; ".join(
        ["each cell is the fewest disruptions allowed at any time of the hour, with the nodes as they are now", *parts]
    )


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}".rstrip() for line in lines]


class HourGrid:
    """Whole local days from the one of `start` to the last one before `end`. Cells outside [start, end) are blank.

    edges: the ascending instants between which the cells are, for `plan.budget_cells`.
    """

    def __init__(self, start: datetime, end: datetime, *, zone: tzinfo | None) -> None:
        self._zone = zone
        self._span = (start, end)
        self._days = list(local_days(start, end, zone))
        begins = {self._instant(day, hour) for day in self._days for hour in range(_HOURS)}
        inside = {instant for instant in begins if instant is not None and start < instant < end}
        self.edges = (start, *sorted(inside), end)
        self._index = {instant: index for index, instant in enumerate(self.edges[:-1])}

    def lines(self, cells: BudgetCells, *, values: Sequence[int], now: datetime, paint: Paint) -> list[str]:
        """The rows of one pool and reason under a ruler of hours, local and in UTC.

        values: those of all pictures of the output, ascending, since they share a scale.
        """
        look = partial(_look, values=values)
        rows = (
            day_row(day, self._cells(day, cells), look, now=now, zone=self._zone, paint=paint) for day in self._days
        )
        return [*self._rulers(paint), *rows]

    def _rulers(self, paint: Paint) -> list[str]:
        midnight = self._instant(self._days[0], 0) or self._span[0]
        local = [midnight + hour * _HOUR for hour in range(0, _HOURS, _EVERY)]
        name = local[0].astimezone(self._zone).tzname() or ""
        lines = [self._ruler(name, [f"{hour:02}" for hour in range(0, _HOURS, _EVERY)])]
        if midnight.astimezone(self._zone).utcoffset():
            minutes = "%H" if midnight.minute == 0 else "%H:%M"
            lines.append(self._ruler("UTC", [instant.astimezone(UTC).strftime(minutes) for instant in local]))
        return [paint("dim", line) for line in lines]

    def _ruler(self, name: str, hours: Sequence[str]) -> str:
        marks = "".join(f"{hour:<{_WIDTH * _EVERY}}" for hour in hours)
        return f"{name[:NAME_WIDTH]:>{NAME_WIDTH}}  {marks}".rstrip()

    def _cells(self, day: date, cells: BudgetCells) -> Iterator[int | str]:
        """The value of each hour, in all of its columns. Hours outside the span, and those that the clock skips, have none."""
        start, end = self._span
        for hour in range(_HOURS):
            instant = self._instant(day, hour)
            if instant is None or instant >= end or instant + _HOUR <= start:
                yield from NO_TIME * _WIDTH
            else:
                yield from [cells.allowed[self._index[max(instant, start)]]] * _WIDTH

    def _instant(self, day: date, hour: int) -> datetime | None:
        """Where a cell begins, in UTC; for an hour that occurs twice, the first one."""
        instant = datetime.combine(day, time(hour), self._zone).astimezone(UTC)
        return instant if instant.astimezone(self._zone).hour == hour else None


def _look(value: int, values: Sequence[int]) -> tuple[str, int, str]:
    """0 has the lightest shade, unbounded the darkest; the others are between, by rank."""
    between = [item for item in values if item not in {0, UNBOUNDED}]
    if value == 0:
        shade = 0
    elif value == UNBOUNDED:
        shade = len(SHADES) - 1
    else:
        shade = 1 + round(between.index(value) * (len(SHADES) - 3) / max(1, len(between) - 1))
    return "∞" if value == UNBOUNDED else str(value), shade, _STYLES[shade]
