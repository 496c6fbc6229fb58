"""What merging would change: the plans of two revisions on one cluster, compared.

Called by `headroom diff`. Both plans start from the same cluster, so whatever both would do is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace

from reconciler.model.changes import (
    DemandOutcome,
    NodeClaimAction,
    NodeClaimCreation,
    ObjectChange,
    Plan,
    StaticPoolChange,
)
from reconciler.model.declared import DeclaredManifest
from reconciler.model.demand import Keeper, Service
from reconciler.model.findings import Finding, Severity
from reconciler.model.nodes import ForetoldDrift
from reconciler.model.placement import UnplacedReason
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.timelines import HOURS_PER_MONTH, Spending
from reconciler.report.costs import CostChange, Rise, Shortfall, shortfall
from reconciler.report.difference.objects import written_differences
from reconciler.report.difference.room import RoomChanges, room_changes
from reconciler.report.plan.words import lack_words
from reconciler.report.words import NOT_SHOWN, keeper_words, short_revision, size_words

_LINES = re.compile(r":\d+:\d+|(?<=\bline )\d+")
"""Lines as messages name them: `web.yaml:3:1`, `line 3`."""


@dataclass(frozen=True, slots=True)
class DemandChange:
    """before, after: whether it is served on that side; None if it is absent there. reasons: why chunks have no place in the head."""

    ref: ObjectRef
    before: Service | None
    after: Service | None
    reasons: tuple[UnplacedReason, ...] = ()

    @property
    def shortfall(self) -> Shortfall:
        """What it loses by merging."""
        return shortfall(self.before, self.after)

    @property
    def size_words(self) -> tuple[str, str]:
        """How many chunks are asked for before and after: `10`, `absent`, `not ready`."""
        return size_words(self.before), size_words(self.after)

    @property
    def handed_to(self) -> str:
        """Who keeps the capacity from now on, if that changes; otherwise ""."""
        if self.after is None or not self.after.ready:
            return ""
        before = Keeper.HEADROOM if self.before is None else self.before.by
        return "" if before is self.after.by else keeper_words(self.after)

    @property
    def why(self) -> list[str]:
        """Everything to report about it, the worst first."""
        after = self.after
        if after is None:
            return []
        words = lack_words(self.reasons, after)
        if self.handed_to:
            instead = "" if self.before is None else f" instead of {keeper_words(self.before)}"
            words.append(f"kept by {self.handed_to}{instead}")
        if not after.certain:
            words.append(NOT_SHOWN)
        return words


def demand_changes(base: Sequence[DemandOutcome], head: Sequence[DemandOutcome]) -> tuple[DemandChange, ...]:
    """Demands whose service changes, by reference. Pending pods are left out, since no manifest declares them."""
    old, new = (
        {item.demand.ref: item.service for item in side if not item.demand.is_pending_pod} for side in (base, head)
    )
    reasons = {item.demand.ref: item.unplaced_reasons for item in head}
    return tuple(
        DemandChange(ref, old.get(ref), new.get(ref), reasons.get(ref, ()))
        for ref in sorted(old.keys() | new.keys())
        if _told(old.get(ref)) != _told(new.get(ref))
    )


def _told(service: Service | None) -> tuple[object, ...]:
    """The service without its reason, whose words may differ where nothing else does."""
    if service is None:
        return ()
    return (service.wanted, service.served, service.ready, service.by, service.certain)


def unplaced(service: Service | None) -> int | None:
    """How many chunks of a demand have no place on one side; None if it is not ready, so that its size is unknown."""
    if service is None:
        return 0
    return None if not service.ready and not service.is_left else service.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What is known about two revisions besides their plans.

    written: their documents as written, base and head. in_cluster: objects that exist at present. lowered: limits below
    what their NodePools use. templates: objects with equal manifests that other templates render differently. conflicts: files that Git cannot merge; the
    head is then the branch itself. names: those of two folders, which have no revisions and are not merged. drift: of the nodes that
    exist. unjudged: parts of the head that the figures leave out, in words. kept_as_before: objects whose documents in the head have
    errors, so that their old ones count. stalled: why the repository would stall on the head and does not on the base, or "".
    """

    written: tuple[Sequence[DeclaredManifest], Sequence[DeclaredManifest]] = ((), ())
    in_cluster: Collection[ObjectRef] = ()
    lowered: tuple[Finding, ...] = ()
    templates: tuple[ObjectChange, ...] = ()
    spending: tuple[Spending, Spending] | None = None
    conflicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    names: tuple[str, str] | None = None
    drift: tuple[ForetoldDrift, ...] = ()
    unjudged: tuple[str, ...] = ()
    kept_as_before: tuple[ObjectRef, ...] = ()
    stalled: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Details):
    """added_nodes, removed_nodes: created only by the head, or only by the base. released, kept: the same for existing nodes.
    objects: how each manifest differs between the two. static_pools: nodes of each after the base and after the head.
    cost: over the coming 30 days; None if it was not computed. failed_gates: one sentence each. left_errors: those of both sides.
    """

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
    left_errors: tuple[Finding, ...]
    cost: CostChange | None
    room: RoomChanges
    failed_gates: tuple[str, ...] = ()

    @property
    def base_name(self) -> str:
        """The base's name, for people."""
        return short_revision(self.base.revision) if self.names is None else self.names[0]

    @property
    def base_branch(self) -> str:
        """The base's name without its commit, as its forge has it."""
        name = self.base_name.partition("@")[0].removeprefix("merge-base(").removesuffix(")")
        return name.removeprefix("origin/")

    @property
    def head_name(self) -> str:
        """The head's name, for people."""
        return short_revision(self.head.revision) if self.names is None else self.names[1]

    @property
    def per_hour_now(self) -> float:
        """USD of the nodes that exist."""
        return self.base.cost.per_hour_before

    @property
    def per_hour_before(self) -> float:
        """USD at this hour, once the cluster has settled on the base."""
        return self.base.cost.per_hour_after if self.cost is None else self.cost.base.spans[0].state.per_hour

    @property
    def per_hour_after(self) -> float:
        """The same of the head."""
        return self.head.cost.per_hour_after if self.cost is None else self.cost.head.spans[0].state.per_hour

    @property
    def per_month_delta(self) -> float:
        return (self.per_hour_after - self.per_hour_before) * HOURS_PER_MONTH

    @property
    def later(self) -> tuple[tuple[ObjectRef, Rise[Shortfall]], ...]:
        """Demands that lose something, or more, only at a later time, when schedules have another value."""
        losses = {} if self.cost is None else self.cost.shortfalls()
        return tuple((ref, losses[ref]) for ref in sorted(losses) if losses[ref].at > self.head.now)

    def why(self, item: DemandChange) -> list[str]:
        """Everything to report about a demand: why it has less room, if nothing else says so."""
        return item.why or [room.why for room in self.room.less if room.ref == item.ref and room.why]

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
            or self.templates
            or self.drift
            or self.stalled
        )


def difference(base: Plan, head: Plan, details: Details | None = None) -> Difference:
    """Compares nodes by content, not by name: two placeholders of one instance type are the same."""
    more = details or Details()
    cost = None if more.spending is None else CostChange(*more.spending)
    findings = (*more.lowered, *head.findings)
    new_findings = _findings_only(findings, base.findings)
    still = {(item.code, item.ref, item.path) for item in findings if item.ref is not None}
    return Difference(
        **{item.name: getattr(more, item.name) for item in fields(Details)},
        base=base,
        head=head,
        demands=demand_changes(base.demands, head.demands),
        added_nodes=_only(head.node_claims.create, base.node_claims.create),
        removed_nodes=_only(base.node_claims.create, head.node_claims.create),
        released=_missing(_going(head), _going(base)),
        kept=_missing(_going(base), _going(head)),
        objects=written_differences(*more.written, base.objects, head.objects, more.in_cluster),
        static_pools=_static_pools(base, head),
        new_findings=new_findings,
        fixed_findings=tuple(  # what is said in other words now is not fixed
            item for item in _findings_only(base.findings, findings) if (item.code, item.ref, item.path) not in still
        ),
        left_errors=tuple(
            item for item in head.findings if item.severity is Severity.ERROR and item not in new_findings
        ),
        cost=cost,
        room=RoomChanges() if cost is None else room_changes(cost),
    )


def _only(these: Iterable[NodeClaimCreation], others: Iterable[NodeClaimCreation]) -> tuple[NodeClaimCreation, ...]:
    def content(creation: NodeClaimCreation) -> object:
        """What makes it another node for its reader. What it holds is told by demand, and further types are only alternatives."""
        planned = creation.planned
        return (planned.node_pool, planned.instance_types[:1], planned.capacity_types)

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
    changes = []
    for name in sorted(left.keys() | right.keys()):
        one, other = left.get(name), right.get(name)
        before = one.after if one is not None else right[name].before
        after = other.after if other is not None else left[name].before
        if before == after:
            continue
        grown = next((item for item in (other, one) if item is not None and item.price is not None), None)
        if grown is None or after < before:
            changes.append(StaticPoolChange(name, before, after))
        else:
            changes.append(replace(grown, before=before, after=after, never=0 if other is None else other.never))
    return tuple(changes)


def _going(plan: Plan) -> tuple[NodeClaimAction, ...]:
    return (*plan.node_claims.release, *plan.node_claims.delete)


def _missing(these: Iterable[NodeClaimAction], others: Iterable[NodeClaimAction]) -> tuple[NodeClaimAction, ...]:
    their_names = {(action.node_claim, action.node) for action in others}
    return tuple(action for action in these if (action.node_claim, action.node) not in their_names)


def _findings_only(these: Iterable[Finding], others: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings of one side only, each once: plan and comparison may find the same. Of several alike, as many as the other side lacks."""
    there = _alike(others)
    return tuple(item for key, alike in _alike(these).items() for item in alike[len(there.get(key, ())) :])


def _alike(findings: Iterable[Finding]) -> dict[object, list[Finding]]:
    """By code, message and object (or file, without an object), never by line, since lines move when a file is edited. What has no object may
    be in a file several times."""
    groups: dict[object, dict[SourcePosition | None, Finding]] = {}
    for item in findings:
        place = item.position if item.ref is None else None
        key = (item.code, item.ref, place and place.file, item.path, _LINES.sub("", item.message))
        groups.setdefault(key, {}).setdefault(place, item)
    return {key: list(places.values()) for key, places in groups.items()}
