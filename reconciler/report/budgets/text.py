"""Disruption budgets as text for a terminal: what is allowed now and why, then each day hour by hour. Called by `headroom budgets`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from itertools import groupby

from reconciler.model.changes import BudgetOutcome
from reconciler.model.findings import Finding
from reconciler.model.timelines import UNBOUNDED, BudgetCells
from reconciler.report.budgets.grid import SHADES, HourGrid
from reconciler.report.budgets.pools import no_pool_words
from reconciler.report.escaping import terminal_lines
from reconciler.report.findings.text import finding_lines
from reconciler.report.paint import Paint, plain
from reconciler.report.words import counted, listed, moment

MOST_POOLS = 40
MOST_GRIDS = 12


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
