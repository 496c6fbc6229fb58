"""Disruption budgets as JSON (`headroom.dev/budgets/v1`), and as written in local time beside UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from reconciler.model.changes import BudgetOutcome, ObjectChange, Plan
from reconciler.model.findings import Finding
from reconciler.model.nodes import DisruptionBudget
from reconciler.model.quantity import format_duration
from reconciler.model.refs import listed
from reconciler.model.schedules import AllowWindow, PoolBudgets
from reconciler.model.timelines import BudgetPieces
from reconciler.report.escaping import members, timestamp, to_json
from reconciler.report.findings import finding_row
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


def no_pool_words(findings: Sequence[Finding]) -> str:
    """Why there is no row: no NodePool is declared, or all were left out because of findings."""
    left_out = list(dict.fromkeys(str(item.ref) for item in findings if item.ref is not None))
    if not left_out:
        return "There is no NodePool."
    words = "is left out; see the finding" if len(left_out) == 1 else "are left out; see the findings"
    return f"{listed(left_out)} {words}."
