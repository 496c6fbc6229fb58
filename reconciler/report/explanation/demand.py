"""One demand of a plan: its outcome, the nodes that its chunks are on, the findings about it. Called by `headroom explain`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.model.changes import DemandOutcome, Plan
from reconciler.model.errors import Invalid
from reconciler.model.findings import Finding
from reconciler.model.placement import Holding
from reconciler.model.refs import ObjectRef
from reconciler.report.explanation.names import matching, near_words


@dataclass(frozen=True, slots=True)
class ChunkBin:
    """`count` chunks on one node. new: the plan creates it; node_pool None: an existing node."""

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

    @property
    def unused(self) -> dict[str, str]:
        """Nodes that take no more chunks, with the reason; none where every chunk is on an existing node that stays."""
        settled = not self.outcome.unplaced and not any(item.new for item in self.bins)
        return {} if settled else dict(self.plan.unused)


def explanation(plan: Plan, name: str, others: Iterable[str] = ()) -> Explanation:
    """Explains one demand. name: KIND/NAMESPACE/NAME, or a part that only one demand matches. Raises `Invalid` with similar names.

    others: names that may have been meant too.
    """
    outcomes = {str(outcome.demand.ref): outcome for outcome in plan.demands}
    names = matching(name, outcomes)
    if len(names) != 1:
        what = "fits several demands" if names else "is not a demand, schedule or NodePool here"
        hint = near_words(name, names or [*outcomes, *others]) or "`headroom plan` lists every demand"
        if name.startswith("Pod/") and not any(text.startswith("Pod/") for text in outcomes):
            hint = "pending pods are explained with --include-pending"
        if name.startswith("Pod/"):
            hint = next((note for note in plan.notes if f"{name} " in note), hint)
        raise Invalid(f"{name!r} {what}", hint=hint)
    outcome = outcomes[names[0]]
    ref = outcome.demand.ref
    bins = [
        ChunkBin(place.node or place.node_claim or "", new=False, node_pool=None, count=count)
        for place in plan.occupied
        if (count := _count(place.holdings, ref))
    ] + [
        ChunkBin(creation.name, new=True, node_pool=creation.planned.node_pool, count=count)
        for creation in plan.node_claims.create
        if (count := _count(creation.planned.holdings, ref))
    ]
    return Explanation(plan, outcome, tuple(bins), tuple(item for item in plan.findings if _concerns(item, ref)))


def _concerns(finding: Finding, ref: ObjectRef) -> bool:
    """Findings without object and file concern every demand, such as a rejected placement."""
    return finding.ref == ref or (finding.ref is None and finding.position is None)


def _count(holdings: Iterable[Holding], ref: ObjectRef) -> int:
    return sum(holding.count for holding in holdings if holding.demand == ref)
