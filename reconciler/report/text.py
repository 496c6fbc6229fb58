"""A plan, a difference and findings as text for a terminal. Called by cli, which says how to paint."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo

from reconciler.model.changes import HOURS_PER_MONTH, Action, ChangeSet, DemandOutcome, ObjectChange, Outcome, Plan
from reconciler.model.findings import Finding, Severity
from reconciler.report.difference import Difference
from reconciler.report.domains import domain_lines, own_domains
from reconciler.report.local_budgets import changing_local_budgets, local_budget_lines
from reconciler.report.pending import launches, left_over, pending_words
from reconciler.report.words import (
    counted,
    dollars,
    held,
    listed,
    moment,
    node_name,
    offered,
    reason_words,
    short_revision,
    signed_dollars,
    static_words,
    summary,
    value,
)
from reconciler.report.wrapping import wrapped

Paint = Callable[[str, str], str]
"""Style name (bold, dim, red, green, yellow, cyan) and text → text; returns the text itself where there is no colour."""

MOST_ROWS = 40
"""Rows of one kind before the rest is counted: a terminal page. The JSON output has them all."""


def plain(_style: str, text: str) -> str:
    """No colour at all."""
    return text


def plan_text(plan: Plan, *, cluster: str, zone: tzinfo | None = None, paint: Paint = plain) -> str:
    """The plan for a terminal; times in `zone`, styles by `paint`."""
    lines = [paint("bold", f"Plan for {cluster} at {short_revision(plan.revision)}, {moment(plan.now, zone)}")]
    lines += _demand_lines(plan, paint)
    lines += _change_lines(plan, paint)
    lines += _local_budget_lines(plan, plan.objects, zone, paint)
    lines += _pending_lines(plan, paint)
    lines += _budget_lines(plan, paint)
    if plan.findings:
        lines += ["", paint("bold", "Findings"), *finding_lines(plan.findings, paint)]
    lines += _notes(plan, paint)
    lines += ["", *_cost_lines(plan, paint), paint("bold", f"{summary(plan)}.")]
    return "\n".join(lines) + "\n"


def pass_text(
    plan: Plan, change_set: ChangeSet | None, *, cluster: str, zone: tzinfo | None = None, paint: Paint = plain
) -> str:
    """A plan and what became of it: what the daemon shows after a pass. change_set None: it was not applied."""
    text = plan_text(plan, cluster=cluster, zone=zone, paint=paint)
    if change_set is None:
        return text
    applied = sum(result.outcome is Outcome.APPLIED for result in change_set.results)
    lines = [paint("bold", f"Applied {counted(applied, 'write')} of {len(change_set.results):,}.")]
    lines += [
        f"  {result.write.ref}: {result.message or result.outcome.value}"
        for result in change_set.results
        if not result.ok
    ]
    return text + "\n".join(lines) + "\n"


def _demand_lines(plan: Plan, paint: Paint) -> list[str]:
    outcomes = [outcome for outcome in plan.demands if not outcome.demand.is_pending_pod]
    if not outcomes:
        return ["", "Nothing is asked for: no buffer or request is declared."]
    width = max(len(str(outcome.demand.ref)) for outcome in outcomes)
    lines = ["", paint("bold", "Demands")]
    for outcome in outcomes[:MOST_ROWS]:
        source = outcome.demand.source
        where = f"  {paint('dim', f'{source.file}:{source.line}')}" if source else ""
        lines.append(f"  {outcome.demand.ref!s:<{width}}  {_demand_words(outcome, paint)}{where}")
        lines += [f"      {paint('dim', line)}" for line in domain_lines(outcome)]
        lines += [f"      {paint('yellow', reason_words(reason))}" for reason in outcome.unplaced_reasons]
    return lines + _rest(outcomes)


def _demand_words(outcome: DemandOutcome, paint: Paint) -> str:
    demand = outcome.demand
    if demand.desired is None:
        why = next((item for item in outcome.conditions if item.type == "ReadyForProvisioning"), None)
        reason = "" if why is None else f": {why.message or why.reason}"
        return paint("red", f"not ready{reason}")
    parts = [
        f"{count:,} {words}"
        for count, words in ((outcome.on_existing, "on existing nodes"), (outcome.on_new, "on new nodes"))
        if count
    ]
    if outcome.unplaced:
        parts.append(paint("red", f"{outcome.unplaced:,} unplaced"))
    return f"{counted(demand.desired, 'chunk')}{': ' if parts else ''}{', '.join(parts)}"


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
    lines += _rest(claims.create)
    for sign, style, verb, actions in (
        ("=", "cyan", "hold", claims.hold),
        ("-", "yellow", "release", claims.release),
        ("-", "red", "delete", claims.delete),
    ):
        for action in actions[:MOST_ROWS]:
            holds = f", for {held(action.holdings)}" if action.holdings else ""
            # Why a node is held is what it holds: said once.
            reason = f": {action.reason}" if action.reason and not (verb == "hold" and holds) else ""
            lines.append(f"  {paint(style, sign)} {verb} {node_name(action)}{holds}{reason}")
        lines += _rest(actions)
    for change in plan.objects[:MOST_ROWS]:
        lines += _object_lines(change, paint)
    lines += _rest(plan.objects)
    for item in plan.static_pools[:MOST_ROWS]:
        sign, style = ("+", "green") if item.after > item.before else ("-", "red")
        lines.append(f"  {paint(style, sign)} NodePool {item.node_pool}: {static_words(item)}")
    lines += _rest(plan.static_pools)
    return ["", paint("bold", "Changes"), *lines] if lines else []


def _local_budget_lines(plan: Plan, objects: Iterable[ObjectChange], zone: tzinfo | None, paint: Paint) -> list[str]:
    lines = local_budget_lines(changing_local_budgets(plan, objects), zone)
    return ["", paint("bold", "Budgets in local time, and the form in UTC that is applied"), *lines] if lines else []


_SIGNS = {Action.CREATE: ("green", "+"), Action.UPDATE: ("yellow", "~"), Action.DELETE: ("red", "-")}


def _object_lines(change: ObjectChange, paint: Paint) -> list[str]:
    style, sign = _SIGNS[change.action]
    where = f"  {paint('dim', f'{change.position.file}:{change.position.line}')}" if change.position else ""
    lines = [f"  {paint(style, sign)} {change.ref}{where}"]
    if change.action is Action.UPDATE:
        lines += [
            f"      {item.path}: {value(item.before)} → {value(item.after)}" for item in change.changes[:MOST_ROWS]
        ]
    return lines


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
    lines += _rest(rows)
    if plan.pending.placed_on_new:
        lines.append(paint("dim", "  A what-if: nodes for pods are Karpenter's to make; headroom apply never does."))
    return lines


def _budget_lines(plan: Plan, paint: Paint) -> list[str]:
    """NodePools of which no node may be disrupted at present; `headroom budgets` has the rest."""
    closed: dict[tuple[str, str], list[str]] = {}
    for row in plan.budgets:
        if row.allowed == 0 and row.total:
            closed.setdefault((row.node_pool, row.why), []).append(row.reason)
    lines = [
        f"  NodePool {node_pool}: no node may go for {listed(reasons)}: {why}"
        for (node_pool, why), reasons in closed.items()
    ]
    return ["", paint("bold", "Disruption budgets"), *lines[:MOST_ROWS], *_rest(lines)] if lines else []


def _notes(plan: Plan, paint: Paint) -> list[str]:
    lines = [f"Nothing is deleted or released in this pass: {reason}." for reason in plan.blocked]
    lines += [note if note.endswith(".") else f"{note}." for note in plan.notes]
    return ["", *(paint("yellow", line) for line in lines)] if lines else []


def _cost_lines(plan: Plan, paint: Paint) -> list[str]:
    before, after = plan.cost.per_hour_before, plan.cost.per_hour_after
    lines = [
        (
            f"Cost: {dollars(before)}/h now, {dollars(after)}/h after"
            f" ({signed_dollars((after - before) * HOURS_PER_MONTH)} a month of {HOURS_PER_MONTH} h)"
        ),
    ]
    return lines + [paint("dim", f"  {assumption}") for assumption in plan.cost.assumptions]


def _rest(items: Iterable[object]) -> list[str]:
    count = len(list(items)) - MOST_ROWS
    return [f"  … and {count:,} more (--output json has them all)"] if count > 0 else []


_SEVERITY_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def finding_lines(findings: Iterable[Finding], paint: Paint = plain, width: int | None = None) -> list[str]:
    """Two lines a finding: where and what, then what to write instead. width: columns in which they are wrapped."""
    lines: list[str] = []
    for finding in findings:
        where = f"{finding.position}: " if finding.position else ""
        severity = paint(_SEVERITY_STYLES[finding.severity], str(finding.severity))
        about = f"{finding.ref}: " if finding.ref else ""
        told = f"  {where}{severity}: {about}{finding.message} {paint('dim', f'[{finding.code}]')}"
        lines += wrapped(told, width)
        if finding.hint:
            lines += [paint("dim", line) for line in wrapped(f"      {finding.hint}", width)]
    return lines


def findings_text(
    findings: Iterable[Finding], *, documents: int, files: int, paint: Paint = plain, width: int | None = None
) -> str:
    """What `headroom validate` prints: every finding, then one line that counts."""
    rows = list(findings)
    counts = [
        counted(sum(finding.severity is severity for finding in rows), noun)
        for severity, noun in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note"))
    ]
    read = f"{counted(documents, 'document')} in {counted(files, 'file')}"
    return "\n".join([*finding_lines(rows, paint, width), paint("bold", f"{read}: {', '.join(counts)}.")]) + "\n"


def difference_text(change: Difference, *, zone: tzinfo | None = None, paint: Paint = plain) -> str:
    """What `headroom diff` prints."""
    base, head = short_revision(change.base.revision), short_revision(change.head.revision)
    lines = [paint("bold", f"What merging {head} into {base} would change, {moment(change.head.now, zone)}")]
    for item in change.demands:
        unplaced = paint("red", f" ({item.unplaced:,} unplaced)") if item.unplaced else ""
        lines.append(f"  ~ {item.ref}: {item.before_words} → {item.after_words} chunks{unplaced}")
    for sign, style, items in (("+", "green", change.added_nodes), ("-", "red", change.removed_nodes)):
        for creation in items[:MOST_ROWS]:
            words = f"{offered(creation)}, for {held(creation.planned.holdings)}"
            lines.append(f"  {paint(style, sign)} node in NodePool {creation.planned.node_pool}: {words}")
        lines += _rest(items)
    for pool in change.static_pools:
        sign, style = ("+", "green") if pool.after > pool.before else ("-", "red")
        lines.append(f"  {paint(style, sign)} NodePool {pool.node_pool}: {static_words(pool)}")
    lines += [f"  {paint('yellow', '-')} released: {node_name(action)}" for action in change.released]
    lines += [f"  {paint('cyan', '=')} kept: {node_name(action)}" for action in change.kept]
    for item_change in change.objects:
        lines += _object_lines(item_change, paint)
    lines += _local_budget_lines(change.head, change.objects, zone, paint)
    if change.new_findings:
        lines += ["", paint("bold", "New findings"), *finding_lines(change.new_findings, paint)]
    if change.fixed_findings:
        lines += ["", paint("bold", "Fixed findings"), *finding_lines(change.fixed_findings, paint)]
    if not change.has_changes:
        lines.append("  No change in capacity.")
    lines += [
        "",
        (
            f"Cost once applied: {dollars(change.per_hour_before)}/h → {dollars(change.per_hour_after)}/h"
            f" ({signed_dollars(change.per_month_delta)} a month of {HOURS_PER_MONTH} h)"
        ),
    ]
    return "\n".join(lines) + "\n"
