"""Explains one demand of a plan, as text and as JSON (`headroom.dev/explain/v1`). Called by `headroom explain`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.demand import Keeper
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.placement import UnplacedReason, Wait, by_demand
from reconciler.model.refs import ObjectRef, counted, listed
from reconciler.report.escaping import Paint, members, plain, terminal_lines, timestamp
from reconciler.report.findings import finding_lines, finding_row
from reconciler.report.plan.document import demand_row
from reconciler.report.plan.words import bin_words, candidates, domain_lines, domain_totals
from reconciler.report.words import NOT_SHOWN, keeper_words, size_words

_MOST = 5
_OTHER_COMMANDS = {
    "MetricsProducer": "`headroom schedule` shows what a MetricsProducer is worth, and when",
    "NodePool": "`headroom plan` lists the nodes that are made in a NodePool, and `headroom budgets` what may be disrupted there",
}
EXPLAIN_SCHEMA = "headroom.dev/explain/v1"
MOST_UNUSED = 5
"""Nodes that are listed as not used."""


def matching(wanted: str, names: Iterable[str]) -> list[str]:
    """The names (`KIND/NAMESPACE/NAME`) that are `wanted`, or else those that end with it: `checkout`, `shop/checkout`."""
    known = list(names)
    return [wanted] if wanted in known else [name for name in known if name.endswith(f"/{wanted}")]


def near_words(wanted: str, names: Collection[str]) -> str:
    """`did you mean A or B?`, for similar names; "" if there are none."""
    last = wanted.rpartition("/")[2]
    near = matching(wanted, names) or [name for name in names if last and last in name.partition("/")[2]]
    if not near:
        # A name alone is short compared with one that has kind and namespace, so it is compared with names alone.
        ends = {name.rpartition("/")[2]: name for name in names}
        near = [ends[end] for end in difflib.get_close_matches(last, ends, n=3)]
    if not near:
        return ""
    more = f" (or one of {len(near) - _MOST:,} more)" if len(near) > _MOST else ""
    return f"did you mean {listed(near[:_MOST], last='or')}?{more}"


@dataclass(frozen=True, slots=True)
class ChunkBin:
    """`count` chunks on one node. node_pool: of a node that the plan creates; None for one that exists. coming: it is a NodeClaim without
    a node yet."""

    node: str
    node_pool: str | None
    count: int
    coming: bool = False

    @property
    def new(self) -> bool:
        return self.node_pool is not None


@dataclass(frozen=True, slots=True)
class Explanation:
    plan: Plan
    outcome: DemandOutcome
    bins: tuple[ChunkBin, ...]
    findings: tuple[Finding, ...]
    waits: tuple[Wait, ...] = ()

    @property
    def unused(self) -> dict[str, str]:
        """Nodes that take no more chunks, with the reason; none where every chunk is on an existing node that stays."""
        settled = not self.outcome.unplaced and not any(item.new for item in self.bins)
        return {} if settled else dict(self.plan.unused)


def explanation(plan: Plan, name: str) -> Explanation:
    """Explains one demand. name: KIND/NAMESPACE/NAME, or the end of one that only one demand has. Raises `Invalid` with similar names."""
    outcomes = {str(outcome.demand.ref): outcome for outcome in plan.demands}
    names = matching(name, outcomes)
    if len(names) != 1:
        what = "fits several demands" if names else "is not a demand here"
        hint = near_words(name, names or [*outcomes]) or "`headroom plan` lists every demand"
        hint = _OTHER_COMMANDS.get(name.partition("/")[0], hint)
        if name.startswith("Pod/") and not any(text.startswith("Pod/") for text in outcomes):
            hint = "pending pods are explained with --include-pending"
        if name.startswith("Pod/"):
            hint = next((note for note in plan.notes if f"{name} " in note), hint)
        raise Invalid(f"{name!r} {what}", hint=hint)
    outcome = outcomes[names[0]]
    ref = outcome.demand.ref
    bins = [
        ChunkBin(place.node or place.node_claim or "", None, held[ref], coming=place.node is None)
        for place in plan.occupied
        if ref in (held := by_demand(place.holdings))
    ]
    bins += [
        ChunkBin(new.name, new.planned.node_pool, held[ref])
        for new in plan.node_claims.create
        if ref in (held := by_demand(new.planned.holdings))
    ]
    findings = tuple(item for item in plan.findings if _concerns(item, ref))
    return Explanation(plan, outcome, tuple(bins), findings, tuple(wait for wait in plan.waits if wait.demand == ref))


def _concerns(finding: Finding, ref: ObjectRef) -> bool:
    """Findings without object and file concern every demand, such as a rejected placement."""
    return finding.ref == ref or (finding.ref is None and finding.position is None)


def explanation_document(found: Explanation) -> dict[str, Any]:
    """As `headroom.dev/explain/v1`."""
    return {
        "schemaVersion": EXPLAIN_SCHEMA,
        "now": timestamp(found.plan.now),
        "demand": demand_row(found.outcome),
        "bins": [
            {
                **members(item, "node", "new", "node_pool", "count"),
                "labels": {count.key: list(count.values) for count in found.outcome.domains if count.bin == item.node},
            }
            for item in found.bins
        ],
        "domains": [
            {"key": key, "value": value, "count": count}
            for key, values in domain_totals(found.outcome).items()
            for value, count in values.items()
        ],
        "chunks": [
            {"count": group.count, "requests": dict(group.shape.requests.quantities())}
            for group in found.outcome.demand.groups
        ],
        "unused": [{"node": name, "why": why} for name, why in found.unused.items()],
        "surge": [
            {
                "message": wait.words,
                **members(wait, "waiting", "promised", "alone"),
                "order": [{"demand": str(item.demand), "node": item.node or None} for item in wait.bindings],
            }
            for wait in found.waits
        ],
        "findings": [finding_row(finding) for finding in found.findings],
    }


def explanation_text(found: Explanation, *, paint: Paint = plain, width: int | None = None, surge: bool = False) -> str:
    """surge: with the worst order that pods may come in."""
    outcome = found.outcome
    demand = outcome.demand
    where = f"  {paint('dim', demand.source.in_file)}" if demand.source else ""
    lines = [paint("bold", str(demand.ref)) + where]
    noun = "pod" if demand.is_pending_pod else "chunk"
    service = outcome.service
    size = size_words(service) if demand.desired is None else counted(demand.desired, noun)
    lines += [f"  size: {size}", *(f"    {fact}" for fact in demand.explanation)]
    for group in demand.groups:
        requests = ", ".join(f"{name} {text}" for name, text in group.shape.requests.quantities().items())
        lines.append(f"    each {noun} asks for {requests}")
    for item in found.bins:
        kind = "NodeClaim on its way" if item.coming else "existing node"
        kind = f"new node in NodePool {item.node_pool}" if item.new else kind
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
    above_orders = {wait.words for wait in found.waits if surge}
    lines += _finding_lines([item for item in found.findings if item.message not in above_orders], paint)
    if surge:
        lines += _surge_lines(found)
    return terminal_lines(lines, paint, width)


def _surge_lines(found: Explanation) -> list[str]:
    """Runs of equal pods are one line."""
    placed = found.outcome.on_existing + found.outcome.on_new
    lines = []
    if not found.outcome.demand.is_rehearsed:
        lines.append("  no order of pods is tried: it does not promise that its room is free for pods that come")
    elif not placed:
        lines.append("  no order of pods is tried: it has room for no pod")
    elif not found.waits:
        lines.append(
            f"  it has room for {counted(placed, 'pod')}, and in no order that was tried does one of them wait"
        )
    for wait in found.waits:
        lines.append(f"  {wait.words}. The order, and where kube-scheduler would bind each pod:")
        for (ref, node), run in groupby(wait.bindings, key=lambda item: (item.demand, item.node)):
            lines.append(f"    {counted(len(list(run)), 'pod')} of {ref}: {node or 'waits'}")
    return lines


def _cause(reason: UnplacedReason) -> str:
    """The cause, with the number of candidates if there are several. Some reasons have none, such as that there is no node."""
    return reason.cause if reason.count == 1 else f"{reason.cause} ({candidates(reason)})"


def _finding_lines(findings: Sequence[Finding], paint: Paint) -> list[str]:
    return ["  findings:", *(f"  {line}" for line in finding_lines(findings, paint))] if findings else []
