"""Nodes, NodeClaims, NodePools, instance types with their offerings, and NodeOverlays."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.requirements import Requirement, Taint

Labels = tuple[tuple[str, str], ...]
"""Sorted key and value pairs: hashable, and equal when the maps are."""

KARPENTER_GROUP = "karpenter.sh"
NODEPOOL_LABEL = "karpenter.sh/nodepool"
CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"
INITIALIZED_LABEL = "karpenter.sh/initialized"
REGISTERED_LABEL = "karpenter.sh/registered"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
HOSTNAME_LABEL = "kubernetes.io/hostname"
ARCHITECTURE_LABEL = "kubernetes.io/arch"
OPERATING_SYSTEM_LABEL = "kubernetes.io/os"
STABLE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": ZONE_LABEL,
    "failure-domain.beta.kubernetes.io/region": REGION_LABEL,
    "beta.kubernetes.io/arch": ARCHITECTURE_LABEL,
    "beta.kubernetes.io/os": OPERATING_SYSTEM_LABEL,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE_LABEL,
    "topology.ebs.csi.aws.com/zone": ZONE_LABEL,
    "topology.disk.csi.azure.com/zone": ZONE_LABEL,
    "topology.gke.io/zone": ZONE_LABEL,
}
"""Other spellings of stable labels, which mean the stable label where a node does not exist yet.

Karpenter normalizes the older ones. The clouds' Karpenter providers normalize those of their CSI drivers, which label a node
once they run there.
"""
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
NODEPOOL_HASH = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION = "karpenter.sh/nodepool-hash-version"
DISRUPTED_TAINT = "karpenter.sh/disrupted"
UNREGISTERED_TAINT = "karpenter.sh/unregistered"
NOT_READY_TAINTS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
REASON_OF = {"underutilized": "Underutilized", "empty": "Empty", "drifted": "Drifted"}
"""By the name in lower case."""
REASONS = tuple(REASON_OF.values())
"""Every reason of disruption that Karpenter 1.14 knows. Budgets name them one by one where allow-windows treat them differently."""
PLACEHOLDER_LABEL = "headroom.dev/placeholder"
"""On every NodeClaim that headroom made; Karpenter copies it to the node. The value is always "true"."""
HELD_ANNOTATION = "headroom.dev/held"
"""Marks `do-not-disrupt` as headroom's own, so that headroom never removes one that a person set."""
HELD_TAINT = Taint(HELD_ANNOTATION, "", "PreferNoSchedule")
"""On every node that holds chunks. When Karpenter consolidates, it moves no pods onto a node with a taint, of any effect, that
they do not tolerate. So it never empties another node into the chunks' room. kube-scheduler uses this room when it finds no other."""
SCARCE_TAINTS = tuple(Taint(key, "", "PreferNoSchedule") for key in ("headroom.dev/scarce", "headroom.dev/scarcer"))
"""On held nodes whose room is for pods with few other places. kube-scheduler sends others elsewhere first, to nodes with both last."""
ATTEMPT_LABEL = "headroom.dev/attempt"
"""On a NodeClaim made for a ProvisioningRequest: the request's uid and the number of the attempt, as `UID.NUMBER`."""
HOLDS_ANNOTATION = "headroom.dev/holds"
"""What a bin was created or held for (`words_of_holdings`): for people to read, and to keep chunks where they are."""


def stable_label(key: str) -> str:
    """The stable spelling of a label."""
    return STABLE_LABELS.get(key, key)


def hold_annotations(words: str) -> tuple[tuple[str, str | None], ...]:
    """Those of a held node or NodeClaim. words: what it holds; "" for one that is released, which loses all of them."""
    value = "true" if words else None
    return ((DO_NOT_DISRUPT, value), (HELD_ANNOTATION, value), (HOLDS_ANNOTATION, words or None))


def node_ref(name: str) -> ObjectRef:
    """The Node of that name."""
    return ObjectRef("", "Node", "", name)


def node_claim_ref(name: str) -> ObjectRef:
    """The NodeClaim of that name."""
    return ObjectRef(KARPENTER_GROUP, "NodeClaim", "", name)


def node_pool_ref(name: str) -> ObjectRef:
    """The NodePool of that name."""
    return ObjectRef(KARPENTER_GROUP, "NodePool", "", name)


@dataclass(frozen=True, slots=True)
class NodeClassRef:
    """The provider's node class that nodes are launched with (`spec.template.spec.nodeClassRef`)."""

    group: str
    kind: str
    name: str


class _Marked:
    """What can be read from labels and annotations, alike for nodes and NodeClaims."""

    __slots__ = ()
    labels: Labels
    annotations: Labels

    def label(self, key: str) -> str | None:
        """The label's value; None where there is none of that name."""
        return _value_of(key, self.labels)

    def annotation(self, key: str) -> str | None:
        """The annotation's value; None where there is none of that name."""
        return _value_of(key, self.annotations)

    @property
    def is_placeholder(self) -> bool:
        """Whether headroom made it."""
        return self.label(PLACEHOLDER_LABEL) == "true"

    @property
    def is_held(self) -> bool:
        """Whether it carries headroom's own mark."""
        return self.annotation(HELD_ANNOTATION) == "true"

    @property
    def is_kept(self) -> bool:
        """Whether headroom or a person keeps Karpenter from disrupting it."""
        return self.annotation(DO_NOT_DISRUPT) == "true"


@dataclass(frozen=True, slots=True)
class Node(_Marked):
    """A node of the cluster. annotations: only those that headroom acts on. ready_changed: when it last became ready or not
    ready. node_claim_uid: its NodeClaim's uid, from the owner reference that Karpenter sets at registration."""

    name: str
    allocatable: Resources
    labels: Labels = ()
    annotations: Labels = ()
    taints: tuple[Taint, ...] = ()
    capacity: Resources = field(default_factory=Resources)
    uid: str = ""
    provider_id: str = ""
    ready: bool = True
    unschedulable: bool = False
    deleting: bool = False
    created: datetime | None = None
    ready_changed: datetime | None = None
    node_claim_uid: str = ""

    @property
    def is_disrupted(self) -> bool:
        """Whether Karpenter is draining it, or is about to."""
        return any(taint.key == DISRUPTED_TAINT for taint in self.taints)

    @property
    def scarce_taints(self) -> int:
        """How many it has of the taints of scarce room."""
        return sum(taint in self.taints for taint in SCARCE_TAINTS)


@dataclass(frozen=True, slots=True)
class NodeClaim(_Marked):
    """A NodeClaim, headroom's (label `headroom.dev/placeholder`) or Karpenter's.

    node_name: set at registration. conditions: type and status; changed: type and when its status last changed.
    capacity, allocatable: from its status, empty before launch. termination_grace_period: after it a drain evicts every pod; None: never.
    last_pod_event: when a pod last came to its node or left it (`status.lastPodEventTime`), initially when it was initialized.
    launch_failure: why Karpenter could not launch it so far, in Karpenter's words; "" if it could, or has not tried."""

    name: str
    labels: Labels = ()
    annotations: Labels = ()
    requirements: tuple[Requirement, ...] = ()
    requests: Resources = field(default_factory=Resources)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    uid: str = ""
    node_name: str | None = None
    provider_id: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    changed: tuple[tuple[str, datetime], ...] = ()
    capacity: Resources = field(default_factory=Resources)
    allocatable: Resources = field(default_factory=Resources)
    created: datetime | None = None
    deleting: bool = False
    expire_after: timedelta | None = None
    termination_grace_period: timedelta | None = None
    last_pod_event: datetime | None = None
    launch_failure: str = ""

    def condition(self, kind: str) -> str:
        """The status as written: True, False or Unknown (also when absent)."""
        return next((status for name, status in self.conditions if name == kind), "Unknown")

    def since(self, kind: str) -> datetime | None:
        """When the condition's status last changed; None where it is absent or does not say."""
        return next((time for name, time in self.changed if name == kind), None)

    @property
    def expires(self) -> datetime | None:
        """When Karpenter replaces its node because of its age; None: never."""
        return None if self.created is None or self.expire_after is None else self.created + self.expire_after

    @property
    def why_left(self) -> str:
        """Why chunks leave its node, in words that follow the node's name and begin with "is", so that several nodes "are"."""
        if self.condition("Drifted") == "True":
            return "is about to be replaced (Drifted)"
        if self.expires is None:
            return "is about to be replaced"
        return f"is about to expire, at {self.expires.astimezone(UTC):%Y-%m-%d %H:%M} UTC (expireAfter)"


@dataclass(frozen=True, slots=True)
class NodeClaimTemplate:
    """`spec.template` of a NodePool, which each of its NodeClaims copies. expire_after None: Never."""

    labels: Labels = ()
    annotations: Labels = ()
    requirements: tuple[Requirement, ...] = ()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    node_class: NodeClassRef | None = None
    expire_after: timedelta | None = timedelta(hours=720)
    termination_grace_period: timedelta | None = None


@dataclass(frozen=True, slots=True)
class BudgetOrigin:
    """What a compiled budget was written as, so that messages name what people can find.

    name: `budgets[1]`, or the annotation. window: its schedule as written, which messages append to what it allows.
    """

    name: str
    window: str


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """One budget as written (Karpenter design "Disruption Controls By Reason").

    nodes: "10%" or "5". reasons: None for every reason, () for none. unreadable: why the duration cannot be parsed. That occurs
    only in a cluster, and Karpenter cannot evaluate such a budget. origin: what a compiled budget was written as, ignored when
    budgets are compared.
    """

    nodes: str = "10%"
    reasons: tuple[str, ...] | None = None
    schedule: str | None = None
    duration: timedelta | None = None
    unreadable: str = ""
    origin: BudgetOrigin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NodePool:
    """A NodePool that can be planned with: whole, from Git or the cluster.

    limits: None is unlimited; 0 of a resource means none of it may be added. budgets: None if the field is absent (one budget of
    10%), () is unlimited. consolidate_after None: Never. replicas: a static pool's size.
    unready: why its condition Ready is False, "" if that is not so. hash, hash_version: its drift annotations.
    """

    name: str
    template: NodeClaimTemplate
    weight: int = 0
    limits: tuple[tuple[str, int], ...] | None = None
    budgets: tuple[DisruptionBudget, ...] | None = None
    consolidate_after: timedelta | None = timedelta(0)
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    replicas: int | None = None
    annotations: Labels = ()
    uid: str = ""
    unready: str = ""
    deleting: bool = False
    hash: str | None = None
    hash_version: str | None = None
    position: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class ForetoldDrift:
    """Nodes of one NodePool that a change of its template or requirements makes drift, by name. why: the fields.

    total: all nodes of the pool. budget: how many of them may be replaced at a time; None: any number; 0: none within the 30 days. opens:
    from when on, if the budget allows none at present. budget_why: in words, as of now.
    """

    node_pool: str
    why: tuple[str, ...]
    nodes: tuple[str, ...]
    total: int
    budget: int | None
    budget_why: str
    opens: datetime | None = None

    @property
    def rounds(self) -> int:
        """How often the budget must be used up until all nodes are replaced; 0 if it allows none."""
        return 1 if self.budget is None else -(-len(self.nodes) // self.budget) if self.budget else 0


MOST_PRICE = 1_000_000
"""The highest price, USD an hour. No machine costs more, and much higher ones would overflow the integers of placement."""


@dataclass(frozen=True, slots=True)
class Offering:
    """One way to buy an instance type. price: USD an hour; 0.0 and meaningless unless price_known. requirements: all of its
    labels (zone, capacity type, …)."""

    zone: str
    capacity_type: str
    price: float
    available: bool = True
    requirements: tuple[Requirement, ...] = ()
    reservation_capacity: int | None = None
    price_known: bool = True


@dataclass(frozen=True, slots=True)
class InstanceType:
    """What a provider can launch. labels: its labels with one value, such as instance type and architecture.

    `kubernetes.io/os` may have several, see `operating_systems`."""

    name: str
    architecture: str
    operating_systems: tuple[str, ...]
    capacity: Resources
    overhead: Resources
    offerings: tuple[Offering, ...]
    labels: Labels = ()

    @property
    def allocatable(self) -> Resources:
        """What pods, daemons included, may request on one: capacity less overhead."""
        return self.capacity - self.overhead


def _value_of(key: str, labels: Labels) -> str | None:
    for name, value in labels:
        if name == key:
            return value
    return None


@dataclass(frozen=True, slots=True)
class NodeOverlay:
    """A NodeOverlay. price: USD an hour as written. price_adjustment: "+5%" or "-0.10". At most one of the two is set."""

    ref: ObjectRef
    requirements: tuple[Requirement, ...] = ()
    weight: int = 0
    price: str | None = None
    price_adjustment: str | None = None
    capacity: Resources = field(default_factory=Resources)
    position: SourcePosition | None = None

    @property
    def sets_price(self) -> bool:
        """Whether it changes prices, to a value or by an adjustment."""
        return self.price is not None or self.price_adjustment is not None
