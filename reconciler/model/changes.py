"""The plan and what applying it did. Made by plan, rendered by render, carried out by cluster, told by report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from reconciler.model.conditions import Condition
from reconciler.model.demand import Demand
from reconciler.model.findings import Finding
from reconciler.model.local_budgets import PoolBudgets
from reconciler.model.placement import Holding, OccupiedBin, PlannedNode, UnplacedReason
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.view import Manifest


class Action(StrEnum):
    """What happens to an object as a whole."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field, by path (`spec.weight`); None in before or after: absent there."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A manifest from Git that the cluster must get (or lose, when it was ours and is gone from Git).

    force: what it changes was changed by a person since headroom applied it, and is taken back.
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
    """name is a function of what is asked for and of the names taken, so that a repeated pass asks for the same object."""

    name: str
    planned: PlannedNode
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NodeClaimAction:
    """Hold, release or delete one node. node_claim None: a node that no NodeClaim made (it is then held by annotation on
    the node alone); node None: a NodeClaim without a node yet."""

    node_claim: str | None
    node: str | None
    node_pool: str
    reason: str
    holdings: tuple[Holding, ...] = ()
    price: float | None = None


@dataclass(frozen=True, slots=True)
class NodeClaimChanges:
    """What becomes of NodeClaims and their nodes. True when there is anything to do."""

    create: tuple[NodeClaimCreation, ...] = ()
    delete: tuple[NodeClaimAction, ...] = ()
    hold: tuple[NodeClaimAction, ...] = ()
    release: tuple[NodeClaimAction, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.delete or self.hold or self.release)


@dataclass(frozen=True, slots=True)
class DomainCount:
    """Chunks of a demand on one node (or NodeClaim, while there is no node), and what it has of one label that their spread or
    affinity goes by. values: several while that is open, none where it lacks the label."""

    bin: str
    key: str
    values: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class DemandOutcome:
    """domains: by the labels that its spread constraints and pod affinity go by, the hostname left out."""

    demand: Demand
    on_existing: int
    on_new: int
    unplaced: int
    unplaced_reasons: tuple[UnplacedReason, ...] = ()
    conditions: tuple[Condition, ...] = ()
    domains: tuple[DomainCount, ...] = ()


@dataclass(frozen=True, slots=True)
class StaticPoolChange:
    """Nodes of a static NodePool that Karpenter makes or deletes by itself once the plan is applied.

    before: nodes there that are not on their way out; instance_type, price: the cheapest that a new one may be bought as,
    USD an hour; "" and None: none comes, or nothing with a known price.
    """

    node_pool: str
    before: int
    after: int
    instance_type: str = ""
    price: float | None = None


@dataclass(frozen=True, slots=True)
class ScheduleOutcome:
    """next_value None: nothing changes any more."""

    namespace: str
    name: str
    current_value: int
    next_value: int | None
    next_value_time: datetime | None


@dataclass(frozen=True, slots=True)
class BudgetOutcome:
    """budget, allowed None: unbounded."""

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
    """USD. An hour before and after the plan; nodes without a known price are named in assumptions, not guessed."""

    per_hour_before: float = 0.0
    per_hour_after: float = 0.0
    currency: str = "USD"
    assumptions: tuple[str, ...] = ()


HOURS_PER_MONTH = 730


@dataclass(frozen=True, slots=True)
class PendingOutcome:
    """Pods by where they would go."""

    placed_on_existing: int = 0
    placed_on_new: int = 0
    unplaced: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one pass would change, with its reasons. No durations in it: equal input gives equal bytes.

    blocked: reasons why nothing may be deleted or released in this pass (an incomplete read, a force-push hold).
    back_offs: what the inventory should remember afterwards. occupied: what each existing bin holds. pending: pods that wait,
    without those of nodes that are being deleted. local_budgets: budgets in local time and their form in UTC.
    """

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
    occupied: tuple[OccupiedBin, ...] = ()
    local_budgets: tuple[PoolBudgets, ...] = ()
    include_pending: bool = False
    blocked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        """Whether carrying the plan out would write anything but statuses."""
        return bool(self.node_claims or self.objects)


# Writes: what carrying out a plan does to the cluster, one API call each.


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply with field manager `headroom`. force: take over fields that another manager owns."""

    ref: ObjectRef
    manifest: Manifest
    reason: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Annotate:
    """Set (or with None remove) annotations by merge patch, also those that another manager set."""

    ref: ObjectRef
    annotations: tuple[tuple[str, str | None], ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete with the uid as precondition, so that a namesake made meanwhile is never hit. uid "": no precondition."""

    ref: ObjectRef
    uid: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ApplyStatus:
    """Server-side apply of the status subresource; `status` holds only the fields headroom owns."""

    ref: ObjectRef
    status: Manifest


Write = Apply | Annotate | Delete | ApplyStatus


class Outcome(StrEnum):
    """How one write ended."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    """The API server said no for good (validation, RBAC, immutable)."""
    CONFLICT = "conflict"
    """Another field manager owns a field; the message names it."""
    FAILED = "failed"
    """Worth another try (timeout, 429, 5xx)."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class WriteResult:
    """One write and how it ended. message: what the API server said, "" where it said nothing."""

    write: Write
    outcome: Outcome
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether the cluster now has what was written."""
        return self.outcome in {Outcome.APPLIED, Outcome.UNCHANGED}


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What applying a plan did, write by write, in order."""

    results: tuple[WriteResult, ...] = ()

    @property
    def failures(self) -> tuple[WriteResult, ...]:
        """The writes that the cluster does not have, in order."""
        return tuple(result for result in self.results if not result.ok)
