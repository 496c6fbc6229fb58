"""Objects that change, and NodePools whose budgets are compiled, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo

from reconciler.model.changes import Action, ObjectChange, Plan
from reconciler.report.budgets.local import changing_local_budgets, local_budget_lines
from reconciler.report.escaping import masked_changes
from reconciler.report.plan.words import rendered_lines, value
from reconciler.report.terminal import MOST_ROWS, Paint

_SIGNS = {
    Action.CREATE: ("green", "+"),
    Action.UPDATE: ("yellow", "~"),
    Action.DELETE: ("red", "-"),
    Action.KEEP: ("cyan", "="),
}


def local_budget_section(plan: Plan, objects: Iterable[ObjectChange], zone: tzinfo | None, paint: Paint) -> list[str]:
    lines = local_budget_lines(changing_local_budgets(plan, objects), zone)
    return ["", paint("bold", "Budgets in local time, and the UTC budgets that are applied"), *lines] if lines else []


def object_lines(change: ObjectChange, paint: Paint) -> list[str]:
    style, sign = _SIGNS[change.action]
    where = f"  {paint('dim', f'{change.position.file}:{change.position.line}')}" if change.position else ""
    why = f": {change.reason}" if change.action is Action.KEEP else ""
    lines = [f"  {paint(style, sign)} {change.ref}{why}{where}"]
    if change.action is Action.UPDATE:
        lines += [
            f"      {item.path}: {value(item.before)} → {value(item.after)}"
            for item in masked_changes(change.changes[:MOST_ROWS])
        ]
    if rendered := rendered_lines(change):
        lines.append(f"      {paint('dim', 'as the template of this repository renders it:')}")
        lines += [f"        {line}" for line in rendered]
    return lines
