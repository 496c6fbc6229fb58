"""What a plan and a difference have in common: one model of rows, which text, Markdown and HTML draw.

Rows contain only strings, numbers and lists of them. Text is drawn here; `report.md.j2` and `report.html.j2` draw the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta, tzinfo
from typing import Any

from reconciler.model.changes import Action, NodeClaimAction, NodeClaimCreation, ObjectChange, StaticPoolChange
from reconciler.model.findings import Finding
from reconciler.model.nodes import DisruptionBudget
from reconciler.model.quantity import format_duration
from reconciler.model.refs import counted
from reconciler.model.schedules import PoolBudgets
from reconciler.report.escaping import MOST_ROWS, Paint, masked_changes, plain, terminal_lines, visible
from reconciler.report.findings import finding_words, words_lines
from reconciler.report.plan.words import launch_price, place_words
from reconciler.report.words import Row, hourly, moment, table_row

_SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.DELETE: "-", Action.KEEP: "="}
_STYLES = {"+": "green", "-": "red", "~": "yellow", "=": "cyan"}
"""By sign: what is made, goes, changes or stays."""
_MOST_OF_A_VALUE = 2_000
"""The longest value to show, in characters. A longer one is a document of its own."""
_ONE_LINE = 80
"""Characters of what and why that stand in one line of text; the why of longer ones has a line of its own."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A plan or a difference in words. Every list is a `listing`, every section a `section`."""

    title: str
    """Of the page; `heading` is that of the text."""
    heading: str
    revision: str
    when: str
    summary: str
    cost: str
    demands: Row
    sections: list[Row]
    findings: list[Row]
    assumptions: list[str]
    """Behind the prices."""
    notes: list[str]
    warnings: list[str]
    base: str = ""
    """The base of a difference; "" for a plan."""
    verdict: str = ""
    is_refused: bool = False
    """Whether the merge is in conflict, or a bound is not kept."""
    whole: str = ""
    """The address of the complete report; "" for none."""
    week: Row | None = None
    """The coming week in blocks of text and as SVG, where it is shown."""

    @property
    def values(self) -> dict[str, object]:
        """By the names that the templates use."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def listing(rows: list[Row], title: str = "", note: str = "") -> Row:
    """All rows. count: how many things they stand for. left: how many things are left out, none as yet. note: a line below them."""
    return {"title": title, "rows": rows, "count": _things(rows), "left": 0, "note": note}


def _things(rows: Iterable[Mapping[str, Any]]) -> int:
    return sum(row.get("things", 1) for row in rows)


def section(title: str, rows: list[Row], *columns: str, notes: Iterable[str] = ()) -> Row:
    """A table of name, what and why. columns: the headings of the last two. Rows with fields have these in the third column.

    notes: lines below the table.
    """
    third = "Fields" if any(row["fields"] for row in rows) else "Why"
    second, third = columns or ("What", third)
    return {**listing(rows, title), "columns": ["Name", second, third], "notes": list(notes)}


def findings_listing(title: str, findings: Iterable[Finding]) -> Row:
    return listing([finding_words(finding) for finding in findings], title)


def trimmed(page: ReportPage, most: int) -> ReportPage:
    """The page with at most `most` rows in each list, and counts of what is left out. The summary stays complete."""

    def fewer(item: Mapping[str, Any]) -> Row:
        shown = [{**row, **_fewer_fields(row, most)} for row in item["rows"][:most]]
        return {**item, "rows": shown, "left": item["count"] - _things(shown)}

    return replace(
        page,
        demands=fewer(page.demands),
        sections=list(map(fewer, page.sections)),
        findings=list(map(fewer, page.findings)),
    )


def _fewer_fields(row: Mapping[str, Any], most: int) -> Row:
    fields = row.get("fields")
    if not fields or len(fields) <= most:
        return {}
    return {"fields": [*fields[:most], f"… and {len(fields) - most:,} more"]}


def local_budgets_section(pools: Collection[PoolBudgets], zone: tzinfo | None) -> Row:
    """pools: those of which a reader must know. The JSON has all of them."""
    rows = [
        table_row(
            f"NodePool/{pool.node_pool}",
            f"{written}, in {pool.written.time_zone}",
            "no window until then",
            fields=compiled,
        )
        for pool in pools
        for written, compiled in _written_and_compiled(pool)
    ]
    notes = [f"NodePool/{pool.node_pool}: {_validity(pool, zone)}." for pool in pools]
    return section("Budgets in local time", rows, "Written", "Applied, in UTC", notes=notes)


def _written_and_compiled(pool: PoolBudgets) -> list[tuple[str, list[str]]]:
    """What was written, and what it was compiled into, in words: `0 (Drifted): 0 9 * * mon-fri for 8h`."""
    pairs = [
        (_budget_words(budget), [_budget_words(item) for item, origin in _sourced(pool) if origin == index])
        for index, budget in enumerate(pool.written.budgets)
    ]
    if pool.written.allow_windows:
        windows = "; ".join(
            f"{window.schedule} for {_length(window.duration)}{_reasons(window.reasons)}"
            for window in pool.written.allow_windows
        )
        zeros = [_budget_words(item) for item, origin in _sourced(pool) if origin is None]
        pairs.append((f"only in {windows}", zeros))
    return pairs


def _validity(pool: PoolBudgets, zone: tzinfo | None) -> str:
    form = pool.compiled
    return f"valid until {moment(form.valid_until, zone)}; recompiled from {moment(form.renew_at, zone)}"


def _budget_words(budget: DisruptionBudget) -> str:
    when = "always" if budget.schedule is None else f"{budget.schedule} for {_length(budget.duration)}"
    return f"{budget.nodes}{_reasons(budget.reasons)}: {when}"


def _reasons(reasons: tuple[str, ...] | None) -> str:
    return "" if reasons is None else f" ({', '.join(reasons)})"


def _length(duration: timedelta | None) -> str:
    return "" if duration is None else format_duration(duration)


def _sourced(pool: PoolBudgets) -> Iterable[tuple[DisruptionBudget, int | None]]:
    return zip(pool.compiled.budgets, pool.compiled.origins, strict=True)


def creation_row(creation: NodeClaimCreation, sign: str = "+", domains: str = "") -> Row:
    """domains: the node's values of labels in its chunks' constraints, in words."""
    pool = creation.planned.node_pool
    within = f" with {domains}" if domains else ""
    why = f"NodePool {pool}{within}, {creation.reason}"
    return table_row(creation.name, _offered(creation), why, sign=sign)


def action_row(action: NodeClaimAction, sign: str) -> Row:
    price = "" if action.price is None else hourly(action.price)
    return table_row(_node_name(action), price, action.reason, sign=sign)


def object_row(change: ObjectChange) -> Row:
    """A row for an object. Only an update lists fields, since a new object's are in its manifest."""
    why = change.reason
    if change.action is Action.CREATE and change.position:
        why = f"declared in {change.position.in_file}"
    fields = []
    if change.action is Action.UPDATE:
        fields = [
            f"{item.path}: {_value(item.before)} → {_value(item.after)}" for item in masked_changes(change.changes)
        ]
    # The kind is part of the row, so that a deleted NodePool is not among "6 more" buffers.
    sign, kind = _SIGNS[change.action], change.ref.kind
    return table_row(str(change.ref), str(change.action), why, sign=sign, fields=fields, kind=kind)


def static_pool_row(item: StaticPoolChange) -> Row:
    sign = "+" if item.after > item.before else "-"
    why = f"{item.before:,} → {item.after:,}, made by Karpenter itself"
    return table_row(f"NodePool {item.node_pool}", _static_words(item), why, sign=sign)


def _offered(creation: NodeClaimCreation) -> str:
    """The possible kinds of a new node: `on-demand in zone-a: c-4x-amd64-linux or 5 other types, $0.1086/h`."""
    planned = creation.planned
    types = planned.instance_types[0] if planned.instance_types else "any type"
    if len(planned.instance_types) > 1:
        types += f" or {counted(len(planned.instance_types) - 1, 'other type')}"
    price = launch_price(planned.price, planned.capacity_types) if planned.price_known else "price not known"
    return f"{place_words(planned)}: {types}, {price}"


def _node_name(action: NodeClaimAction) -> str:
    if action.node is None:
        return action.node_claim or ""
    if action.node_claim is None or action.node_claim == action.node:
        return action.node
    return f"{action.node_claim} ({action.node})"


def _value(item: Any) -> str:
    """A field's value on one line; `(absent)` for none. `masked_changes` decides what may be shown."""
    import json

    if item is None:
        return "(absent)"
    text = visible(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, sort_keys=True))
    return text if len(text) <= _MOST_OF_A_VALUE else f"{text[: _MOST_OF_A_VALUE - 1]}…"


def _static_words(change: StaticPoolChange) -> str:
    """`3 more nodes (static)`, with the price of one if that is known."""
    difference = change.after - change.before
    words = f"{counted(abs(difference), 'more node' if difference > 0 else 'fewer node')} (static)"
    if change.never:
        words += f", and {change.never:,} that never come, since its limit is {change.after:,} nodes"
    if change.price is None:
        return words
    return f"{words}: {change.instance_type}, {hourly(change.price)}{' each' if difference > 1 else ''}"


def page_text(page: ReportPage, *, paint: Paint = plain, width: int | None = None) -> str:
    """The page for a terminal. What a difference says in one line comes first; of a plan that is the last line. width: to wrap at."""
    page = trimmed(page, MOST_ROWS)
    lines = [paint("bold", f"{page.heading}, {page.when}")]
    if page.base:
        lines.append(paint("red" if page.is_refused else "bold", f"  {page.summary}."))
    lines += [paint("red", f"  {line}.") for line in page.warnings]
    demands = page.demands
    if demands["rows"]:
        lines += ["", paint("bold", f"Demands ({demands['count']:,})")]
        lines += [line for row in demands["rows"] for line in _demand_lines(row, paint)]
    lines += [*_rest_lines(demands), *([paint("dim", f"  {demands['note']}")] if demands["note"] else [])]
    for part in page.sections:
        lines += ["", paint("bold", f"{part['title']} ({part['count']:,})")]
        lines += [line for row in part["rows"] for line in row_lines(row, paint)]
        lines += [*_rest_lines(part), *(paint("dim", f"  {note}") for note in part["notes"])]
    for part in page.findings:
        lines += ["", paint("bold", part["title"])] if part["rows"] else []
        lines += [line for row in part["rows"] for line in words_lines(row, paint)]
        lines += _rest_lines(part)
    lines += _week_lines(page.week) if page.week else []
    lines += [""] if page.notes else []
    lines += [paint("yellow", note if note.endswith(".") else f"{note}.") for note in page.notes]
    lines += ["", *([f"Cost: {page.cost}."] if page.cost else [])]
    lines += [paint("dim", f"  {line}") for line in page.assumptions]
    last = page.verdict if page.base else page.summary
    return terminal_lines([*lines, *([paint("bold", f"{last}.")] if last else [])], paint, width)


def _rest_lines(item: Mapping[str, Any]) -> list[str]:
    return [f"  … and {item['left']:,} more (--output json has them all)"] if item["left"] > 0 else []


def _demand_lines(row: Row, paint: Paint) -> Iterator[str]:
    size = str(row["desired"])
    is_count = size[-1].isdigit() and "chunk" not in size
    noun = "" if not is_count else " chunk" if size.rpartition(" ")[2] == "1" else " chunks"
    places = ((row["existing"], "on existing nodes"), (row["new"], "on new nodes"))
    there = "".join(f", {count} {words}" for count, words in places if count not in {"", "0"})
    missing = str(row["unplaced"])
    without = "" if missing in {"", "0", "–"} else paint("red", f", {missing} without a place")
    where = f"  {paint('dim', row['where'])}" if row["where"] else ""
    yield f"  {row['name']}: {size}{noun}{there}{without}{where}"
    yield from (f"      {paint('yellow', reason)}" for reason in row["why"])
    yield from (f"      {paint('dim', fact)}" for fact in row["facts"])


def row_lines(row: Row, paint: Paint) -> Iterator[str]:
    """A row of a section for a terminal: its sign, name, what and why, and its fields."""
    sign, bar = row["sign"], row.get("bar")
    why = f"{paint('red' if row['why'].startswith('+') else 'green', bar)} {row['why']}" if bar else row["why"]
    words = [word for word in (row["what"], "" if row["fields"] else why) if word]
    below = words[1:] if sign and len("; ".join(words)) > _ONE_LINE else []
    yield f"  {f'{paint(_STYLES[sign], sign)} ' if sign else ''}{row['name']}: {'; '.join(words[: len(words) - len(below)])}"
    yield from (f"      {line}" for line in (*below, *row["fields"]))


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
