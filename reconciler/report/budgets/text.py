"""Disruption budgets as text for a terminal: what is allowed now and why, then each day hour by hour. Called by `headroom budgets`.

An hour by hour picture has a row for each day and a cell for each hour of the reader's time zone. A cell shows the fewest disruptions allowed at
any time of its hour, by number, by shade, and by colour where there is colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from itertools import groupby

from reconciler.model.changes import BudgetOutcome
from reconciler.model.findings import Finding
from reconciler.model.refs import counted, listed
from reconciler.model.timelines import UNBOUNDED, BudgetCells
from reconciler.report.budgets.document import no_pool_words
from reconciler.report.day_rows import NAME_WIDTH, NO_TIME, SHADES, day_row, local_days
from reconciler.report.escaping import Paint, plain, terminal_lines
from reconciler.report.findings import finding_lines
from reconciler.report.words import moment

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
        lines += ["", no_pool_words(told)]
    for rows in pools[:MOST_POOLS]:
        lines += ["", *_pool_lines(rows, paint)]
    if len(pools) > MOST_POOLS:
        lines += ["", f"… and {counted(len(pools) - MOST_POOLS, 'more NodePool')}: --output json has them all."]
    if told:
        lines += ["", paint("bold", "Findings"), *finding_lines(told, paint)]
    return terminal_lines(lines, paint, width)


def hours_text(
    cells: Sequence[BudgetCells], grid: HourGrid, *, now: datetime, zone: tzinfo | None, paint: Paint = plain
) -> str:
    """What is allowed hour by hour: a picture for each pool, shared by equal reasons. A pool that never changes is one line."""
    lines = [paint("bold", f"Hour by hour, {_between(grid.edges[0], grid.edges[-1], zone)}")]
    scale = sorted({value for row in cells for value in row.allowed})
    steady: list[str] = []
    pictures: list[list[str]] = []
    for node_pool, rows in groupby(cells, key=lambda row: row.node_pool):
        alike: dict[tuple[tuple[int, ...], int], list[BudgetCells]] = {}
        for row in rows:
            alike.setdefault((row.allowed, row.most), []).append(row)
        for same in alike.values():
            name = f"{node_pool}: {listed(row.reason for row in same)}"
            values = set(same[0].allowed)
            if len(values) == 1:
                steady.append(f"  {name}: {_steady(values.pop(), same[0].most)}")
            else:
                rows_of = grid.lines(same[0], values=scale, now=now, paint=paint)
                pictures.append([f"  {paint('bold', name)}", *_indented(rows_of)])
    for picture in pictures[:MOST_GRIDS]:
        lines += ["", *picture]
    if len(pictures) > MOST_GRIDS:
        rest = counted(len(pictures) - MOST_GRIDS, "more picture")
        lines += ["", f"  … and {rest}: --output json has all of it."]
    if steady:
        lines += ["", *steady[:MOST_POOLS]]
        if len(steady) > MOST_POOLS:
            lines.append(f"  … and {len(steady) - MOST_POOLS:,} more that never change")
    if pictures:
        lines += ["", *_indented([paint("dim", _legend(cells))])]
    return terminal_lines(lines, paint)


def _between(start: datetime, end: datetime, zone: tzinfo | None) -> str:
    """Both ends, with seconds where the minutes are equal."""
    seconds = moment(start, zone) == moment(end, zone)
    return f"{moment(start, zone, seconds=seconds)} to {moment(end, zone, seconds=seconds)}"


def _pool_lines(rows: Sequence[BudgetOutcome], paint: Paint) -> list[str]:
    first = rows[0]
    parts = [counted(first.total, "node")]
    parts += [
        f"{count:,} {words}"
        for count, words in ((first.disrupting, "disrupting"), (first.not_ready, "not ready"))
        if count
    ]
    lines = [f"{paint('bold', f'NodePool {first.node_pool}')}: {', '.join(parts)}"]
    alike: dict[tuple[int | None, str], list[str]] = {}
    for row in rows:
        alike.setdefault((row.allowed, _why(row)), []).append(row.reason)
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
