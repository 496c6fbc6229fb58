"""One demand of a plan, explained: its size, where its chunks are, every excuse. Called by `headroom explain`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.placement import Holding
from reconciler.model.refs import ObjectRef
from reconciler.report.domains import bin_words, domain_lines, domain_totals
from reconciler.report.machine import demand_row, finding_row, timestamp
from reconciler.report.text import Paint, finding_lines, plain
from reconciler.report.words import candidates, counted

EXPLAIN_SCHEMA = "headroom.dev/explain/v1"


@dataclass(frozen=True, slots=True)
class ChunkBin:
    """`count` chunks in one node; new: the plan makes it; node_pool None: a node that is there already."""

    node: str
    new: bool
    node_pool: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Explanation:
    plan: Plan
    outcome: DemandOutcome
    bins: tuple[ChunkBin, ...]
    findings: tuple[Finding, ...]


def explanation(plan: Plan, name: str) -> Explanation:
    """`name` as KIND/NAMESPACE/NAME, or any part of it that fits one demand only. Raises `Invalid` naming near ones."""
    names = {str(outcome.demand.ref): outcome for outcome in plan.demands}
    matching = [outcome for text, outcome in names.items() if text == name] or [
        outcome for text, outcome in names.items() if text.endswith(f"/{name}") or text.startswith(f"{name}/")
    ]
    if len(matching) != 1:
        near = [str(item.demand.ref) for item in matching] or difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        what = "fits several demands" if matching else "is not a demand here"
        hint = f"did you mean {' or '.join(near)}?" if near else "`headroom plan` lists every demand"
        if name.startswith("Pod/") and not any(text.startswith("Pod/") for text in names):
            hint = "pending pods are explained with --include-pending"
        if name.startswith("Pod/"):
            hint = next((note for note in plan.notes if f"{name} " in note), hint)
        raise Invalid(f"{name!r} {what}", hint=hint)
    ref = matching[0].demand.ref
    bins = [
        ChunkBin(place.node or place.node_claim or "", new=False, node_pool=None, count=count)
        for place in plan.occupied
        if (count := _count(place.holdings, ref))
    ] + [
        ChunkBin(creation.name, new=True, node_pool=creation.planned.node_pool, count=count)
        for creation in plan.node_claims.create
        if (count := _count(creation.planned.holdings, ref))
    ]
    return Explanation(plan, matching[0], tuple(bins), tuple(item for item in plan.findings if _concerns(item, ref)))


def _concerns(finding: Finding, ref: ObjectRef) -> bool:
    """Also what is of no object and no file: that the placement was rejected concerns every demand in it."""
    return finding.ref == ref or (finding.ref is None and finding.position is None)


def _count(holdings: Iterable[Holding], ref: ObjectRef) -> int:
    return sum(holding.count for holding in holdings if holding.demand == ref)


def explanation_document(found: Explanation) -> dict[str, Any]:
    """As `headroom.dev/explain/v1`."""
    return {
        "schemaVersion": EXPLAIN_SCHEMA,
        "now": timestamp(found.plan.now),
        "demand": demand_row(found.outcome),
        "bins": [
            {
                "node": item.node,
                "new": item.new,
                "nodePool": item.node_pool,
                "count": item.count,
                "labels": {count.key: list(count.values) for count in found.outcome.domains if count.bin == item.node},
            }
            for item in found.bins
        ],
        "domains": [
            {"key": key, "value": value, "count": count}
            for key, values in domain_totals(found.outcome).items()
            for value, count in values.items()
        ],
        "findings": [finding_row(finding) for finding in found.findings],
    }


def explanation_text(found: Explanation, *, paint: Paint = plain) -> str:
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
        kind = f"new node in NodePool {item.node_pool}" if item.new else "node that is there"
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
    return "\n".join(lines) + "\n"
