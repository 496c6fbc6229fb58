"""What merging would change, as text for a terminal: the rows of the page, each on lines of its own. Called by `headroom diff`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.report.escaping import terminal_lines
from reconciler.report.terminal import MOST_ROWS, Paint, plain, rest_lines

_STYLES = {
    "error": "red",
    "warning": "yellow",
    "info": "cyan",
    "create": "green",
    "update": "yellow",
    "delete": "red",
    "keep": "cyan",
}
"""Of severities, and of what becomes of an object."""
Row = Mapping[str, Any]


def difference_text(page: Mapping[str, Any], *, paint: Paint = plain, width: int | None = None) -> str:
    """The output of `headroom diff`. page: of `difference_page`. width: the columns to wrap at."""
    lines = [paint("bold", f"{page['heading']}, {page['when']}")]
    lines.append(paint("red" if page["is_refused"] else "bold", f"  {page['summary']}."))
    lines += [paint("red", f"  {line}.") for line in page["warnings"]]
    for row in page["demands"]["rows"][:MOST_ROWS]:
        lines += _demand_lines(row, paint)
    lines += rest_lines(page["demands"]["rows"])
    for section in page["sections"]:
        lines += ["", paint("bold", f"{section['title']} ({section['count']:,})")]
        lines += [line for row in section["rows"][:MOST_ROWS] for line in _row_lines(row, paint)]
        lines += [*rest_lines(section["rows"]), *(f"  {note}" for note in section["notes"])]
    for title, part in (
        ("New findings", "findings"),
        (page["standing_title"], "standing"),
        ("Findings that merging fixes", "fixed"),
    ):
        rows = page[part]["rows"]
        lines += ["", paint("bold", title)] if rows else []
        lines += [line for row in rows for line in _finding_lines(row, paint)]
    lines += _week_lines(page["week"]) if page["week"] else []
    lines += [paint("yellow", note if note.endswith(".") else f"{note}.") for note in page["notes"]]
    return terminal_lines([*lines, "", *_last_lines(page, paint)], paint, width)


def _demand_lines(row: Row, paint: Paint) -> Iterator[str]:
    size = str(row["desired"])
    is_count = size[-1].isdigit() and "chunk" not in size
    noun = "" if not is_count else " chunk" if size.rpartition(" ")[2] == "1" else " chunks"
    missing = str(row["unplaced"])
    without = "" if missing in {"", "0", "–"} else paint("red", f", {missing} without a place")
    yield f"  ~ {row['name']}: {size}{noun}{without}"
    yield from (f"      {paint('yellow', reason)}" for reason in row["why"].split("; ") if reason)


def _row_lines(row: Row, paint: Paint) -> Iterator[str]:
    style = _STYLES.get(row["what"])
    what = paint(style, row["what"]) if style else row["what"]
    bar = row.get("bar")
    why = f"{paint('red' if row['why'].startswith('+') else 'green', bar)} {row['why']}" if bar else row["why"]
    yield f"  {row['name']}: {'; '.join(filter(None, (what, '' if row['fields'] else why)))}"
    yield from (f"      {field}" for field in row["fields"])


def _finding_lines(row: Row, paint: Paint) -> Iterator[str]:
    where = f"{row['where']}: " if row["where"] else ""
    severity = paint(_STYLES[row["severity"]], row["severity"])
    yield f"  {where}{severity}: {row['message']} {paint('dim', '[' + row['code'] + ']')}"
    if row["hint"]:
        yield paint("dim", f"      {row['hint']}")


def _week_lines(week: Row) -> Iterator[str]:
    if not week["lines"]:
        return
    yield from ("", week["title"], f"  {'':6} {week['heading']}")
    for row in week["lines"]:
        yield f"  {row['name']}"
        yield from (f"  {name:6} {blocks}" for name, blocks in row["blocks"])
        yield f"         {row['words']}"
    if week["left"]:
        yield f"  … and {week['left']:,} more that change"
    yield f"  {week['legend']} Times are {week['zone']}."


def _last_lines(page: Mapping[str, Any], paint: Paint) -> Iterator[str]:
    month = page["month"]
    over = f"; over {month['span']} {month['before']} → {month['after']} ({month['delta']})" if month else ""
    if page["hourly"]:
        yield f"Cost: {page['hourly']}{over}"
    yield from (paint("dim", f"  {line}") for line in page["assumptions"])
    if page["verdict"]:
        yield paint("bold", f"{page['verdict']}.")
