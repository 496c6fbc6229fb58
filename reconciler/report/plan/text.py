"""A plan as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo

from reconciler.model.changes import Action, ChangeSet, DemandOutcome, ObjectChange, Outcome, Plan
from reconciler.model.demand import Keeper
from reconciler.model.spending import Spending
from reconciler.report.budgets.local import changing_local_budgets, local_budget_lines
from reconciler.report.costs import cost_parts
from reconciler.report.escaping import masked_changes, terminal_lines
from reconciler.report.findings import finding_lines
from reconciler.report.plan.pending import launches, left_over, pending_words
from reconciler.report.plan.words import (
    HOURS_OF_SPAN,
    SPAN,
    domain_lines,
    held,
    node_actions,
    node_name,
    offered,
    one_shot_words,
    order_words,
    own_domains,
    precedence_words,
    price_notes,
    reason_words,
    rendered_lines,
    request_words,
    sample_words,
    spending_words,
    static_words,
    summary,
    value,
)
from reconciler.report.terminal import MOST_ROWS, Paint, plain, rest_lines
from reconciler.report.words import (
    NOT_SHOWN,
    counted,
    dollars,
    keeper_words,
    listed,
    moment,
    short_revision,
    signed_dollars,
    size_words,
)

_NODE_SIGNS = {"hold": ("cyan", "="), "release": ("yellow", "-"), "untaint": ("cyan", "="), "delete": ("red", "-")}
_SIGNS = {
    Action.CREATE: ("green", "+"),
    Action.UPDATE: ("yellow", "~"),
    Action.DELETE: ("red", "-"),
    Action.KEEP: ("cyan", "="),
}
MOST_WAITING = 3
"""The most objects to name that wait for the same."""


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


def applied_words(change_set: ChangeSet) -> str:
    """A node that is held takes a write of its NodeClaim and one of itself, so the writes are not counted as changes are."""
    outcomes = [result.outcome for result in change_set.results]
    applied, waiting = outcomes.count(Outcome.APPLIED), outcomes.count(Outcome.SKIPPED)
    if waiting == len(change_set.failures):
        later = f"; {waiting:,} more {'waits' if waiting == 1 else 'wait'}" if waiting else ""
        return f"Applied, with {counted(applied, 'write')} to the cluster{later}."
    return f"Applied in part: {applied:,} of {counted(len(change_set.results), 'write')} to the cluster succeeded."


def waiting_lines(change_set: ChangeSet) -> list[str]:
    """What the writes that a later pass makes wait for, each cause once."""
    objects: dict[str, list[str]] = {}
    for result in change_set.results:
        if result.outcome is Outcome.SKIPPED:
            objects.setdefault(result.message, []).append(str(result.write.ref))
    return [f"  {message}: {listed(refs, most=MOST_WAITING)}" for message, refs in objects.items()]


def plan_text(
    plan: Plan,
    *,
    cluster: str,
    snapshot: str = "",
    spending: Spending | None = None,
    zone: tzinfo | None = None,
    paint: Paint = plain,
    width: int | None = None,
) -> str:
    """The whole plan, with the summary in its last line. spending: over the coming 30 days, if it was computed. width: the columns to
    wrap at. snapshot: in words, the published snapshot that it was planned with."""
    when = ", ".join(filter(None, (moment(plan.now, zone), snapshot)))
    lines = [paint("bold", f"Plan for {cluster} at {short_revision(plan.revision)}, {when}")]
    lines += _demand_lines(plan, paint)
    lines += _change_lines(plan, paint)
    lines += local_budget_section(plan, plan.objects, zone, paint)
    lines += _pending_lines(plan, paint)
    lines += _budget_lines(plan, paint)
    if plan.findings:
        lines += ["", paint("bold", "Findings"), *finding_lines(plan.findings, paint)]
    lines += _notes(plan, paint)
    lines += ["", *_cost_lines(plan, spending, paint), paint("bold", f"{summary(plan, zone)}.")]
    return terminal_lines(lines, paint, width)


def pass_text(
    plan: Plan, change_set: ChangeSet | None, *, cluster: str, zone: tzinfo | None = None, paint: Paint = plain
) -> str:
    """A plan and the result of applying it, as the daemon prints after a pass. change_set None: it was not applied."""
    text = plan_text(plan, cluster=cluster, zone=zone, paint=paint)
    if change_set is None:
        return text
    lines = [paint("bold", applied_words(change_set))]
    lines += waiting_lines(change_set)
    lines += [
        f"  {result.write.ref}: {result.message or result.outcome.value}"
        for result in change_set.failures
        if result.outcome is not Outcome.SKIPPED
    ]
    return text + terminal_lines(lines, paint)


def _demand_lines(plan: Plan, paint: Paint) -> list[str]:
    outcomes = [outcome for outcome in plan.demands if not outcome.demand.is_pending_pod]
    if not outcomes:
        why = "what is declared has errors" if plan.has_errors else "no buffer or request is declared"
        return ["", f"Nothing to keep ready: {why}."]
    width = max(len(str(outcome.demand.ref)) for outcome in outcomes)
    lines = ["", paint("bold", "Demands")]
    for outcome in outcomes[:MOST_ROWS]:
        source = outcome.demand.source
        where = f"  {paint('dim', f'{source.file}:{source.line}')}" if source else ""
        lines.append(f"  {outcome.demand.ref!s:<{width}}  {_demand_words(outcome, paint)}{where}")
        lines += [f"      {paint('dim', line)}" for line in domain_lines(outcome)]
        lines += [f"      {paint('yellow', reason_words(reason))}" for reason in outcome.unplaced_reasons]
    lines += rest_lines(outcomes)
    if len(outcomes) > 1 and any(outcome.unplaced for outcome in outcomes):
        lines.append(f"  {paint('dim', order_words(outcomes))}")
    return lines


def _demand_words(outcome: DemandOutcome, paint: Paint) -> str:
    demand = outcome.demand
    service = outcome.service
    if demand.desired is None:
        words = f"{size_words(service)}{': ' if service.why else ''}{service.why}"
        return words if service.is_left else paint("red", words)
    parts = [
        f"{count:,} {words}"
        for count, words in ((outcome.on_existing, "on existing nodes"), (outcome.on_new, "on new nodes"))
        if count
    ]
    if outcome.unplaced:
        parts.append(paint("red", f"{outcome.unplaced:,} unplaced"))
    if service.by is not Keeper.HEADROOM:
        parts.append(f"kept by {keeper_words(service)}")
    if not service.certain:
        parts.append(NOT_SHOWN)
    if demand.suspended:
        parts.append("suspended")
    parts += request_words(outcome)
    first = precedence_words(demand)
    size = counted(demand.desired, "chunk") + one_shot_words(demand)
    return f"{size}{': ' if parts else ''}{', '.join(parts)}{first and f' ({first})'}"


def _change_lines(plan: Plan, paint: Paint) -> list[str]:
    claims = plan.node_claims
    lines: list[str] = []
    labels = own_domains(plan)
    for creation in claims.create[:MOST_ROWS]:
        lines.append(
            f"  {paint('green', '+')} NodeClaim {creation.name}  {offered(creation)}",
        )
        own = f" with {labels[creation.name]}" if creation.name in labels else ""
        lines.append(
            paint("dim", f"      in NodePool {creation.planned.node_pool}{own}, for {held(creation.planned.holdings)}")
        )
    lines += rest_lines(claims.create)
    for verb, actions in node_actions(claims):
        style, sign = _NODE_SIGNS[verb]
        for action in actions[:MOST_ROWS]:
            holds = f", for {held(action.holdings)}" if action.holdings else ""
            # The reason of a hold repeats what the node holds.
            reason = f": {action.reason}" if action.reason and not (verb == "hold" and holds) else ""
            lines.append(f"  {paint(style, sign)} {verb} {node_name(action)}{holds}{reason}")
        lines += rest_lines(actions)
    for change in plan.objects[:MOST_ROWS]:
        lines += object_lines(change, paint)
    lines += rest_lines(plan.objects)
    for item in plan.static_pools[:MOST_ROWS]:
        sign, style = ("+", "green") if item.after > item.before else ("-", "red")
        lines.append(f"  {paint(style, sign)} NodePool {item.node_pool}: {static_words(item)}")
    lines += rest_lines(plan.static_pools)
    return ["", paint("bold", "Changes"), *lines] if lines else []


def _pending_lines(plan: Plan, paint: Paint) -> list[str]:
    words = pending_words(plan)
    if not words:
        return []
    if not plan.include_pending:
        return ["", f"{words}."]
    lines = ["", paint("bold", "Pending pods"), f"  {words}."]
    lines += [f"  {paint('green', '+')} NodePool {row.node_pool}: {row.size}: {row.kinds}" for row in launches(plan)]
    rows = left_over(plan)
    for row in rows[:MOST_ROWS]:
        lines.append(f"  {paint('red', '!')} {row.title}")
        lines += [f"      {paint('yellow', reason)}" for reason in row.reasons]
    lines += rest_lines(rows)
    if plan.pending.placed_on_new:
        lines.append(paint("dim", "  What-if only: Karpenter makes nodes for pending pods; headroom apply never does."))
    return lines


def _budget_lines(plan: Plan, paint: Paint) -> list[str]:
    """NodePools that allow no disruption now; `headroom budgets` has the rest."""
    closed: dict[tuple[str, str], list[str]] = {}
    for row in plan.budgets:
        if row.allowed == 0 and row.total:
            closed.setdefault((row.node_pool, row.why), []).append(row.reason)
    lines = [
        f"  NodePool {node_pool}: no disruption allowed for {listed(reasons)}: {why}"
        for (node_pool, why), reasons in closed.items()
    ]
    return ["", paint("bold", "Disruption budgets"), *lines[:MOST_ROWS], *rest_lines(lines)] if lines else []


def _notes(plan: Plan, paint: Paint) -> list[str]:
    lines = [f"Nothing is deleted or released in this pass: {reason}." for reason in plan.blocked]
    lines += [note if note.endswith(".") else f"{note}." for note in plan.notes]
    return ["", *(paint("yellow", line) for line in lines)] if lines else []


def _cost_lines(plan: Plan, spending: Spending | None, paint: Paint) -> list[str]:
    before, after = plan.cost.per_hour_before, plan.cost.per_hour_after
    sample = sample_words(plan)
    loud = [paint("red", f"{sample}.")] if sample else []
    if spending is not None:
        lines = [*loud, f"Cost: {dollars(before)}/h now, {dollars(after)}/h after; {spending_words(plan, spending)}"]
        for _, rows in cost_parts(spending):
            for row in rows[:MOST_ROWS]:
                why = f" ({row['why']})" if row["why"] else ""
                lines.append(f"  {row['name']}: {row['what']}{why}")
            lines += rest_lines(rows)
        return lines + [paint("dim", f"  {note}") for note in (*plan.cost.assumptions, *spending.notes)]
    lines = [
        *loud,
        (
            f"Cost: {dollars(before)}/h now, {dollars(after)}/h after"
            f" ({signed_dollars((after - before) * HOURS_OF_SPAN)} over {SPAN} at this price)"
        ),
    ]
    notes = (*price_notes(plan), *plan.cost.assumptions)
    return lines + [paint("dim", f"  {note}") for note in notes]
