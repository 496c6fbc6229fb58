"""The plan of one pass, and what applying it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.demand import Demand, Service, service_of
from reconciler.model.findings import Finding, Severity
from reconciler.model.placement import Holding, OccupiedBin, PlannedNode, StockOut, UnplacedReason, Wait
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.remembered import Departure, WaitingDeletions
from reconciler.model.requirements import Taint
from reconciler.model.schedules import Edge, PoolBudgets, ScheduleOutcome
from reconciler.model.view import Manifest


class Action(StrEnum):
    """What happens to an object as a whole."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    KEEP = "keep"
    """The object stays although it is no longer declared. Used only to compare two revisions; a plan has nothing to do then."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field, by path (`spec.weight`). before, after: None where the field is absent."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A manifest from Git to be applied, or an object of headroom's to be deleted because Git no longer has it.

    force: these fields were changed in the cluster since headroom applied them, and headroom takes them back. An update
    without a manifest only sets the annotation in `changes`: the object belongs to another inventory.
    """

    ref: ObjectRef
    action: Action
    changes: tuple[FieldChange, ...] = ()
    manifest: Manifest | None = None
    position: SourcePosition | None = None
    reason: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class NodeClaimCreation:
    """A NodeClaim to be created.

    The name is derived from the request and from the names in use, so that a repeated pass asks for the same object.
    labels: in addition to those of every NodeClaim of its pool. lives_for: the longest life of the node, if its pool's is not shorter.
    made_by: in words, who makes the node if headroom does not. Such nodes occur only in forecasts.
    """

    name: str
    planned: PlannedNode
    reason: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    lives_for: timedelta | None = None
    made_by: str = ""


@dataclass(frozen=True, slots=True)
class NodeClaimAction:
    """One node to be held, released, deleted, or freed of a taint.

    node_claim None: no NodeClaim made the node, so that only the node itself can be annotated. node None: the NodeClaim has no node yet.
    price: USD an hour; None where unknown. closed: whether a node to be held also gets the taint that stops Karpenter from moving pods
    into the chunks' room. scarce: how many of those it gets that send pods elsewhere that have other places to go.
    """

    node_claim: str | None
    node: str | None
    node_pool: str
    reason: str
    holdings: tuple[Holding, ...] = ()
    price: float | None = None
    closed: bool = False
    scarce: int = 0


@dataclass(frozen=True, slots=True)
class NodeClaimChanges:
    """The changes of NodeClaims and their nodes. Truthy when there are any."""

    create: tuple[NodeClaimCreation, ...] = ()
    delete: tuple[NodeClaimAction, ...] = ()
    hold: tuple[NodeClaimAction, ...] = ()
    release: tuple[NodeClaimAction, ...] = ()
    untaint: tuple[NodeClaimAction, ...] = ()
    """Nodes that were reserved for a provisioning request and are open to all pods from now on."""

    def __bool__(self) -> bool:
        return bool(self.create or self.delete or self.hold or self.release or self.untaint)


@dataclass(frozen=True, slots=True)
class DomainCount:
    """How many chunks of a demand one bin holds, and the bin's value of one topology label.

    bin: the node's name; the NodeClaim's while it has no node. key: a topology key of the demand's spread constraints or pod affinity.
    values: several while the value is undecided; none where the bin lacks the label.
    """

    bin: str
    key: str
    values: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class DemandOutcome:
    """Where one demand's chunks are.

    domains: counts by the topology keys of its spread constraints and pod affinity, except the hostname. on_its_way: the part of
    `on_existing` on nodes that are not ready yet. not_ready: the part on nodes that were ready and no longer are. short_since:
    when the buffer became short of capacity, by its status and this machine's clock; None if it was not before. suspended: whether
    headroom is, so that the nodes of `on_new` are not made.
    """

    demand: Demand
    on_existing: int
    on_new: int
    unplaced: int
    unplaced_reasons: tuple[UnplacedReason, ...] = ()
    conditions: tuple[Condition, ...] = ()
    domains: tuple[DomainCount, ...] = ()
    on_its_way: int = 0
    not_ready: int = 0
    short_since: datetime | None = None
    suspended: bool = False

    @property
    def service(self) -> Service:
        """Whether the demand is served, by whom, and why not."""
        return service_of(self.demand, self.on_existing + self.on_new, self.unplaced_reasons, self.conditions)

    @property
    def ready(self) -> int:
        """How many of its chunks have room on ready nodes."""
        return self.on_existing - self.on_its_way - self.not_ready

    @property
    def coming(self) -> int:
        """How many of its chunks have room on nodes that are on their way, or are made now."""
        return self.on_its_way + (0 if self.suspended else self.on_new)

    @property
    def is_full(self) -> bool | None:
        """Whether all of its capacity is there, by its condition; None if it has none."""
        statuses = (item.status is ConditionStatus.TRUE for item in self.conditions if item.type == "Provisioning")
        return next(statuses, None)


@dataclass(frozen=True, slots=True)
class StaticPoolChange:
    """How many nodes of a static NodePool Karpenter itself creates or deletes once the plan is applied.

    before: nodes that exist and are not being deleted. instance_type: the cheapest that a new node may be; "" when none is created or no
    price is known. price: USD an hour of that type. never: how many of its replicas are over its limit, so that they never come.
    """

    node_pool: str
    before: int
    after: int
    instance_type: str = ""
    price: float | None = None
    never: int = 0


@dataclass(frozen=True, slots=True)
class BudgetOutcome:
    """What one NodePool's budgets allow for one reason, in nodes. budget, allowed None: unbounded.

    budget: the lowest of the active budgets. allowed: the budget less the nodes that are disrupting or not ready.
    """

    node_pool: str
    reason: str
    budget: int | None
    allowed: int | None
    disrupting: int
    not_ready: int
    total: int
    why: str


@dataclass(frozen=True, slots=True)
class Cost:
    """USD an hour before and after the plan. Nodes without a known price are named in `assumptions`, never guessed."""

    per_hour_before: float = 0.0
    per_hour_after: float = 0.0
    currency: str = "USD"
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingOutcome:
    """Pods that need a place, counted by where they would go."""

    placed_on_existing: int = 0
    placed_on_new: int = 0
    unplaced: int = 0

    @classmethod
    def of(cls, outcomes: Iterable[DemandOutcome]) -> PendingOutcome:
        """Of the pods that are these demands."""
        return sum((cls(item.on_existing, item.on_new, item.unplaced) for item in outcomes), cls())

    def __add__(self, other: PendingOutcome) -> PendingOutcome:
        return PendingOutcome(
            self.placed_on_existing + other.placed_on_existing,
            self.placed_on_new + other.placed_on_new,
            self.unplaced + other.unplaced,
        )

    @property
    def pods(self) -> int:
        """All of them together."""
        return self.placed_on_existing + self.placed_on_new + self.unplaced


def new_node_pools(created: Iterable[NodeClaimCreation], static: Iterable[StaticPoolChange]) -> tuple[str, ...]:
    """The NodePool of each new node: placeholders, and nodes of static NodePools that grow."""
    grown = (item.node_pool for item in static for _ in range(item.after - item.before))
    return (*(item.planned.node_pool for item in created), *grown)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that one pass would change, with its reasons. It contains no durations, so that equal input gives equal bytes."""

    revision: str | None
    now: datetime
    demands: tuple[DemandOutcome, ...] = ()
    node_claims: NodeClaimChanges = field(default_factory=NodeClaimChanges)
    objects: tuple[ObjectChange, ...] = ()
    static_pools: tuple[StaticPoolChange, ...] = ()
    schedules: tuple[ScheduleOutcome, ...] = ()
    budgets: tuple[BudgetOutcome, ...] = ()
    cost: Cost = field(default_factory=Cost)
    findings: tuple[Finding, ...] = ()
    pending: PendingOutcome = field(default_factory=PendingOutcome)
    """Pods of nodes that are being deleted are not among them."""
    occupied: tuple[OccupiedBin, ...] = ()
    """What each existing bin holds."""
    unused: Mapping[str, str] = field(default_factory=dict)
    """By name of a node that takes no more chunks, since it drifted or expires soon: why."""
    local_budgets: tuple[PoolBudgets, ...] = ()
    """Budgets written in local time, with what they were compiled into."""
    include_pending: bool = False
    blocked: tuple[str, ...] = ()
    """Why nothing may be deleted or released in this pass: an incomplete read, a force-push hold."""
    notes: tuple[str, ...] = ()
    records: Mapping[str, Any] = field(default_factory=dict)
    """The inventory's records after the pass: JSON values by key."""
    edges: tuple[Edge, ...] = ()
    """The instants, in order, at which something that this plan waits for may proceed."""
    stock_outs: tuple[StockOut, ...] = ()
    waiting: WaitingDeletions = field(default_factory=WaitingDeletions)
    waits: tuple[Wait, ...] = ()
    """Pods that may have to wait although their chunks have room."""
    departures: tuple[Departure, ...] = ()
    """Nodes that chunks leave for cheaper room, in this pass or since an earlier one."""

    @property
    def new_node_pools(self) -> tuple[str, ...]:
        """The NodePool of each new node, whether headroom makes it or Karpenter because of the plan."""
        return new_node_pools(self.node_claims.create, self.static_pools)

    @property
    def has_errors(self) -> bool:
        """Whether anything declared was left out or refused because of an error in it."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def has_changes(self) -> bool:
        """Whether applying the plan would write anything besides statuses."""
        return bool(self.node_claims or self.objects)

    def changes_the_same(self, other: Plan) -> bool:
        """Whether both write the same. Statuses do not count, nor does what is only told."""
        return (self.node_claims, self.objects) == (other.node_claims, other.objects)


# Writes: each is one API call.


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply with field manager `headroom`. force: take over fields that another manager owns."""

    ref: ObjectRef
    manifest: Manifest
    reason: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Annotate:
    """Set annotations, or remove them with None, by merge patch, which also reaches those that another manager set.

    taints: those that a node shall have (True) or not have (False). All others stay.
    """

    ref: ObjectRef
    annotations: tuple[tuple[str, str | None], ...]
    reason: str = ""
    taints: tuple[tuple[Taint, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete with the uid as a precondition, so that a newer object of the same name is safe. uid "": no precondition."""

    ref: ObjectRef
    uid: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ApplyStatus:
    """Server-side apply of the status subresource; `status` holds only the fields headroom owns."""

    ref: ObjectRef
    status: Manifest


Write = Apply | Annotate | Delete | ApplyStatus


class Drift(StrEnum):
    """What becomes of changes that somebody made in the cluster."""

    CORRECT = "correct"
    """Applied again. What a person changed with kubectl is taken back; a field that a controller took is a conflict."""
    REPORT = "report"
    """Reported as a finding. Nothing is written until the manifest itself changes."""


class Outcome(StrEnum):
    """How one write ended."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    """The API server refused it and would do so again: validation, RBAC, an immutable field."""
    CONFLICT = "conflict"
    """Another field manager owns a field; the message names it."""
    FAILED = "failed"
    """May succeed when tried again: timeout, 429, 5xx."""
    SKIPPED = "skipped"


NOT_WRITTEN = (Outcome.REFUSED, Outcome.CONFLICT, Outcome.FAILED)
"""Outcomes of writes that somebody should look at. One that was skipped is made by a pass to come."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """One write and how it ended. message: what the API server said, "" where it said nothing. version: the object's resourceVersion after
    an apply, "" where unknown."""

    write: Write
    outcome: Outcome
    message: str = ""
    version: str = ""

    @property
    def ok(self) -> bool:
        """Whether the cluster now is as the write asked."""
        return self.outcome in {Outcome.APPLIED, Outcome.UNCHANGED}


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What applying a plan did, write by write, in order."""

    results: tuple[WriteResult, ...] = ()

    @property
    def failures(self) -> tuple[WriteResult, ...]:
        """The writes that did not succeed, in order."""
        return tuple(result for result in self.results if not result.ok)
