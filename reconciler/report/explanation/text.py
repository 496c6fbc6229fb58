"""An explanation as text for a terminal. Called by `headroom explain`."""

from __future__ import annotations

from reconciler.report.escaping import terminal_lines
from reconciler.report.explanation.demand import Explanation
from reconciler.report.findings.text import finding_lines
from reconciler.report.paint import Paint, plain
from reconciler.report.plan.domains import bin_words, domain_lines
from reconciler.report.plan.words import candidates
from reconciler.report.words import counted


def explanation_text(found: Explanation, *, paint: Paint = plain, width: int | None = None) -> str:
    outcome = found.outcome
    demand = outcome.demand
    where = f"  {paint('dim', f'{demand.source.file}:{demand.source.line}')}" if demand.source else ""
    lines = [paint("bold", str(demand.ref)) + where]
    noun = "pod" if demand.is_pending_pod else "chunk"
    size = "not ready" if demand.desired is None else counted(demand.desired, noun)
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
    if outcome.unplaced:
        lines.append(paint("red", f"  {counted(outcome.unplaced, noun)} unplaced:"))
        lines += [f"    {reason.cause} ({candidates(reason)}): {reason.example}" for reason in outcome.unplaced_reasons]
    lines += [
        f"  {condition.type}={condition.status} {condition.reason}{f': {condition.message}' if condition.message else ''}"
        for condition in outcome.conditions
    ]
    if found.findings:
        lines += ["  findings:", *(f"  {line}" for line in finding_lines(found.findings, paint))]
    return terminal_lines(lines, paint, width)
