"""What merging would change: the plans of two revisions on one cluster, compared.

Called by `headroom diff`. Both plans start from the same cluster, so whatever both would do is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from reconciler.model.changes import (
    HOURS_PER_MONTH,
    DemandOutcome,
    NodeClaimAction,
    NodeClaimCreation,
    ObjectChange,
    Plan,
    StaticPoolChange,
)
from reconciler.model.findings import Finding
from reconciler.model.refs import ObjectRef
from reconciler.report.difference.objects import object_differences


@dataclass(frozen=True, slots=True)
class DemandChange:
    """before, after: chunks; None: absent or not ready on that side, as the words say."""

    ref: ObjectRef
    before: int | None
    after: int | None
    before_words: str
    after_words: str
    unplaced: int


@dataclass(frozen=True, slots=True)
class Difference:
    """added_nodes, removed_nodes: created only by the head, only by the base. released, kept: likewise, of existing nodes.
    static_pools: nodes of each after the base and after the head. objects: how each manifest differs between the two."""

    base: Plan
    head: Plan
    demands: tuple[DemandChange, ...]
    added_nodes: tuple[NodeClaimCreation, ...]
    removed_nodes: tuple[NodeClaimCreation, ...]
    released: tuple[NodeClaimAction, ...]
    kept: tuple[NodeClaimAction, ...]
    objects: tuple[ObjectChange, ...]
    static_pools: tuple[StaticPoolChange, ...]
    new_findings: tuple[Finding, ...]
    fixed_findings: tuple[Finding, ...]

    def with_findings(self, findings: Iterable[Finding]) -> Difference:
        """With findings that only the two revisions together show."""
        new = tuple(sorted({*self.new_findings, *findings}, key=lambda finding: finding.sort_key))
        return replace(self, new_findings=new)

    @property
    def per_hour_before(self) -> float:
        return self.base.cost.per_hour_after

    @property
    def per_hour_after(self) -> float:
        return self.head.cost.per_hour_after

    @property
    def per_month_delta(self) -> float:
        return (self.per_hour_after - self.per_hour_before) * HOURS_PER_MONTH

    @property
    def has_changes(self) -> bool:
        return bool(
            self.demands
            or self.added_nodes
            or self.removed_nodes
            or self.released
            or self.kept
            or self.objects
            or self.static_pools
        )


def difference(base: Plan, head: Plan) -> Difference:
    """Compare by content, not by name: two placeholders with equal specs are the same."""
    left = {outcome.demand.ref: outcome for outcome in base.demands if not outcome.demand.is_pending_pod}
    right = {outcome.demand.ref: outcome for outcome in head.demands if not outcome.demand.is_pending_pod}
    demands = []
    for ref in sorted(left.keys() | right.keys()):
        before = left[ref].demand.desired if ref in left else None
        after = right[ref].demand.desired if ref in right else None
        if before != after or (ref in left) != (ref in right):
            demands.append(
                DemandChange(
                    ref,
                    before,
                    after,
                    _size_words(left.get(ref)),
                    _size_words(right.get(ref)),
                    right[ref].unplaced if ref in right else 0,
                ),
            )
    return Difference(
        base=base,
        head=head,
        demands=tuple(demands),
        added_nodes=_only(head.node_claims.create, base.node_claims.create),
        removed_nodes=_only(base.node_claims.create, head.node_claims.create),
        released=_missing(_going(head), _going(base)),
        kept=_missing(_going(base), _going(head)),
        objects=object_differences(base.objects, head.objects),
        static_pools=_static_pools(base, head),
        new_findings=_findings_only(head.findings, base.findings),
        fixed_findings=_findings_only(base.findings, head.findings),
    )


def _size_words(outcome: DemandOutcome | None) -> str:
    if outcome is None:
        return "absent"
    return "not ready" if outcome.demand.desired is None else f"{outcome.demand.desired:,}"


def _only(
    these: Iterable[NodeClaimCreation],
    others: Iterable[NodeClaimCreation],
) -> tuple[NodeClaimCreation, ...]:
    def content(creation: NodeClaimCreation) -> object:
        planned = creation.planned
        return (planned.node_pool, planned.instance_types, planned.zones, planned.capacity_types, planned.holdings)

    spare = Counter(content(creation) for creation in others)
    result = []
    for creation in these:
        if spare[content(creation)]:
            spare[content(creation)] -= 1
        else:
            result.append(creation)
    return tuple(result)


def _static_pools(base: Plan, head: Plan) -> tuple[StaticPoolChange, ...]:
    """A pool that one side does not change has its current nodes on that side."""
    left, right = ({item.node_pool: item for item in plan.static_pools} for plan in (base, head))
    found = []
    for name in sorted(left.keys() | right.keys()):
        one, other = left.get(name), right.get(name)
        before = one.after if one is not None else right[name].before
        after = other.after if other is not None else left[name].before
        if before == after:
            continue
        grown = next((item for item in (other, one) if item is not None and item.price is not None), None)
        if grown is None or after < before:
            found.append(StaticPoolChange(name, before, after))
        else:
            found.append(StaticPoolChange(name, before, after, grown.instance_type, grown.price))
    return tuple(found)


def _going(plan: Plan) -> tuple[NodeClaimAction, ...]:
    return (*plan.node_claims.release, *plan.node_claims.delete)


def _missing(
    these: Iterable[NodeClaimAction],
    others: Iterable[NodeClaimAction],
) -> tuple[NodeClaimAction, ...]:
    known = {(action.node_claim, action.node) for action in others}
    return tuple(action for action in these if (action.node_claim, action.node) not in known)


def _findings_only(these: Iterable[Finding], others: Iterable[Finding]) -> tuple[Finding, ...]:
    """Identified by code, object and message, not by line, since lines move when a file is edited."""

    def identity(finding: Finding) -> tuple[str, str, str, str]:
        return (finding.code, str(finding.ref), finding.path, finding.message)

    known = {identity(finding) for finding in others}
    return tuple(finding for finding in these if identity(finding) not in known)
