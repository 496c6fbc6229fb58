"""An explanation as text for a terminal. Called by `headroom explain`."""

from __future__ import annotations

from reconciler.model.placement import UnplacedReason
from reconciler.model.service import Keeper
from reconciler.report.escaping import terminal_lines
from reconciler.report.explanation.demand import Explanation
from reconciler.report.findings.text import finding_lines
from reconciler.report.paint import Paint, plain
from reconciler.report.plan.domains import bin_words, domain_lines
from reconciler.report.plan.words import candidates
from reconciler.report.service import NOT_SHOWN, keeper_words, size_words
from reconciler.report.words import counted

MOST_UNUSED = 5
"""Nodes that are listed as not used."""


def explanation_text(found: Explanation, *, paint: Paint = plain, width: int | None = None) -> str:
    outcome = found.outcome
    demand = outcome.demand
    where = f"  {paint('dim', f'{demand.source.file}:{demand.source.line}')}" if demand.source else ""
    lines = [paint("bold", str(demand.ref)) + where]
    noun = "pod" if demand.is_pending_pod else "chunk"
    service = outcome.service
    size = size_words(service) if demand.desired is None else counted(demand.desired, noun)
    lines += [f"  size: {size}", *(f"    {fact}" for fact in demand.explanation)]
    for group in demand.groups:
        requests = ", ".join(f"{name} {text}" for name, text in group.shape.requests.quantities().items())
        lines.append(f"    each {noun} asks for {requests}")
    for item in found.bins:
        kind = f"new node in NodePool {item.node_pool}" if item.new else "existing node"
        labels = bin_words(outcome, item.node)
        lines.append(f"  {counted(item.count, noun)} in {item.node} ({kind}{f'; {labels}' if labels else ''})")
    if len(found.bins) > 1:
        lines += [f"  {line}" for line in domain_lines(outcome)]
    if found.unused:
        rest = len(found.unused) - MOST_UNUSED
        lines.append("  not used:")
        lines += [f"    {name} {why}" for name, why in list(found.unused.items())[:MOST_UNUSED]]
        lines += [f"    … and {rest:,} more (--output json has them all)"] if rest > 0 else []
    if service.by is not Keeper.HEADROOM and not service.is_left:
        lines.append(f"  kept by {keeper_words(service)}")
    if not service.certain:
        lines.append(paint("yellow", f"  {NOT_SHOWN}"))
    if outcome.unplaced:
        lines.append(paint("red", f"  {counted(outcome.unplaced, noun)} unplaced:"))
        reasons = [f"{_cause(reason)}: {reason.example}" for reason in outcome.unplaced_reasons]
        lines += [f"    {reason}" for reason in reasons or [service.why]]
    lines += [
        f"  {condition.type}={condition.status} {condition.reason}{f': {condition.message}' if condition.message else ''}"
        for condition in outcome.conditions
    ]
    if found.findings:
        lines += ["  findings:", *(f"  {line}" for line in finding_lines(found.findings, paint))]
    return terminal_lines(lines, paint, width)


def _cause(reason: UnplacedReason) -> str:
    """The cause, with the number of candidates if there are several. Some reasons have none, such as that there is no node."""
    return reason.cause if reason.count == 1 else f"{reason.cause} ({candidates(reason)})"
