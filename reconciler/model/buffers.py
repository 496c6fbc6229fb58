"""Buffers of both kinds as typed values, their balloon pods, and what the inventory remembers of shares and one-shot buffers.

A buffer that is a share of running pods grows at once. It shrinks once the share has been less for some time, so that pods which
come back find their room.

Balloon pods have a low priority and keep a node's room until a pod of higher priority preempts them. They keep capacity where an
autoscaler knows neither NodeClaims nor CapacityBuffers, since every autoscaler counts running pods.

A one-shot buffer that is deleted and created again has a new uid, and is filled again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.model.conditions import Condition
from reconciler.model.errors import Invalid
from reconciler.model.nodes import CAPACITY_TYPE_LABEL, Labels
from reconciler.model.pods import Pod, PodShape
from reconciler.model.quantity import Resources
from reconciler.model.refs import POD_KIND, ObjectRef, SourcePosition, by_key, label_value
from reconciler.model.remembered import Moment, Record
from reconciler.model.requirements import LabelSelector, parse_selector

BUFFER_KINDS = frozenset({"Buffer", "CapacityBuffer"})
MOST_CHUNKS = 150_000
"""Pods in the largest cluster that Kubernetes supports (kubernetes.io, Considerations for large clusters).

One buffer never has more chunks placed, so that a mistyped number cannot hold up every pass."""
TOO_MANY_CHUNKS = f"chunks are more than the {MOST_CHUNKS:,} pods that a cluster can have"
TOO_MANY_HINT = "write the number that was meant"
SHARES_KEY = "shares"
SHRINK_AFTER = timedelta(minutes=10)
"""How long a share must have been less before its buffer shrinks, if no setting says otherwise."""
PERCENT_OF_HINT = (
    'write nodepool/NAME, namespace, cluster, or a selector of pods such as "selector:app=web,tier in (a,b)"'
)
_NODE_POOL = re.compile(r"nodepool/(?P<name>[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)", re.ASCII)
_SELECTOR = "selector:"


class Where(StrEnum):
    """Where the pods are that a share is of."""

    NODE_POOL = "nodepool"
    NAMESPACE = "namespace"
    CLUSTER = "cluster"
    SELECTOR = "selector"


@dataclass(frozen=True, slots=True)
class PodsOf:
    """The pods that a share is of. written: the annotation. node_pool, selector: with the places of these names only."""

    where: Where
    written: str
    node_pool: str = ""
    selector: LabelSelector | None = None

    def words(self, namespace: str) -> str:
        """To follow "pods". namespace: the buffer's own, which NAMESPACE and SELECTOR are about."""
        match self.where:
            case Where.NODE_POOL:
                return f"on nodes of NodePool {self.node_pool}"
            case Where.CLUSTER:
                return "of the cluster"
            case Where.NAMESPACE:
                return f"of namespace {namespace}"
            case Where.SELECTOR:
                return f"of namespace {namespace} with {self.written.removeprefix(_SELECTOR).strip()}"


def pods_of(text: str) -> PodsOf:
    """The pods that a value of the annotation names. Raises `Invalid`."""
    written = text.strip()
    if written in {Where.NAMESPACE, Where.CLUSTER}:
        return PodsOf(Where(written), written)
    if match := _NODE_POOL.fullmatch(written):
        return PodsOf(Where.NODE_POOL, written, node_pool=match["name"])
    if not written.startswith(_SELECTOR):
        raise Invalid(f"{text!r} names no pods", hint=PERCENT_OF_HINT)
    return PodsOf(Where.SELECTOR, written, selector=parse_selector(written.removeprefix(_SELECTOR)))


def is_percent_of(text: str) -> bool:
    """Whether it is a valid `headroom.dev/percent-of`."""
    try:
        pods_of(text)
    except Invalid:
        return False
    return True


class RememberedShare(Record, frozen=True):
    """rule: a digest of what is declared; a size by another rule says nothing. size: in chunks. less_since: since when the share has been
    less than that; None while it is not. most: the largest that the share has been since then."""

    rule: str
    size: int
    less_since: Moment | None = None
    most: int = 0

    def after(self, chunks: int, now: datetime, shrink_after: timedelta) -> RememberedShare:
        """The record once the share is this many chunks. It shrinks to the most of the whole wait, so that pods which come and go, or a
        rollout at its end, do not take a node that is made again at once."""
        if chunks >= self.size:
            return RememberedShare(self.rule, chunks)
        # A clock that was set back must not prolong a size: the time does not lie ahead.
        since = min(self.less_since or now, now)
        most = max(self.most, chunks)
        if now - since < shrink_after:
            return self.but(less_since=since, most=most)
        return RememberedShare(self.rule, most).after(chunks, now, shrink_after)


def share_key(ref: ObjectRef) -> str:
    """A CapacityBuffer's key in the memory. It has no uid before it is in the cluster, and its size counts from then."""
    return f"{ref.namespace}/{ref.name}"


ACTIVE_CAPACITY = "buffer.x-k8s.io/active-capacity"
RECREATE, ONE_SHOT = "recreate", "none"
"""The values of `refillStrategy` that headroom supports."""


def virtual_labels(buffer: ObjectRef) -> dict[str, str]:
    """What a buffer's virtual pods have in place of a capacity type and beside their workload's labels."""
    return {
        "autoscaling.x-k8s.io/buffer": buffer.name,
        "autoscaling.x-k8s.io/buffer-namespace": buffer.namespace,
        CAPACITY_TYPE_LABEL: "buffer",
    }


class Recreation(StrEnum):
    """`recreationStrategy`: whether running pods may fill a buffer (KeepMinimum) or not (KeepEmpty)."""

    KEEP_EMPTY = "KeepEmpty"
    KEEP_MINIMUM = "KeepMinimum"


class Dialect(StrEnum):
    """Whose reading counts where Karpenter and Cluster Autoscaler size the same buffer differently (`--dialect`)."""

    KARPENTER = "karpenter"
    CLUSTER_AUTOSCALER = "ca"

    @property
    def spoken(self) -> str:
        """In words for people."""
        return "Karpenter" if self is Dialect.KARPENTER else "Cluster Autoscaler"


class Fulfilment(StrEnum):
    """Who keeps a buffer's capacity, and how (annotation `headroom.dev/fulfilment`)."""

    PLACEHOLDER = "placeholder"
    NATIVE = "native"
    BALLOON = "balloon"


@dataclass(frozen=True, slots=True)
class NodeClassCapacity:
    """`Buffer.capacity.nodeClass` of the Buffers API proposal: a total that is split into chunks."""

    total: Resources
    """CPU in millicores and memory in bytes."""
    chunk: Resources | None = None
    """The size of one chunk; None: headroom chooses one that fits the nodes of the target."""
    node_selector: Labels = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """One declared buffer, of either kind and any version, with its defaults applied."""

    ref: ObjectRef
    position: SourcePosition | None = None
    annotations: Labels = ()
    strategy: str = ACTIVE_CAPACITY
    target: ObjectRef | None = None
    """What the buffer refers to: a workload with a scale subresource, or a node class."""
    pod_template: str | None = None
    """The name of a PodTemplate in the buffer's namespace."""
    pod_shape: PodShape | None = None
    """The Buffers API proposal's inline pod (`capacity.pods.podSpec`)."""
    replicas: int | None = None
    percentage: int | None = None
    """Percent of the target's replicas, or of what other pods request (`model/buffers.py`)."""
    minimum_count: int | None = None
    """The fewest chunks that a percentage may give, as `maximum_count` is the most. Only the Buffers API proposal has both."""
    maximum_count: int | None = None
    limits: tuple[tuple[str, int], ...] | None = None
    """Amounts by resource in the units of `Resources`, zeroes included. None: the field is absent."""
    node_class: NodeClassCapacity | None = None
    recreation: Recreation = Recreation.KEEP_EMPTY
    pod_selector: LabelSelector | None = None
    """The pods that a dedicated buffer is for. None: for any pod."""
    created: str = ""
    """`metadata.creationTimestamp`, RFC 3339; "" while the buffer is only in Git."""
    status_conditions: tuple[Condition, ...] = field(default=())
    default_fulfilment: Fulfilment = Fulfilment.PLACEHOLDER
    """Who keeps it if it has no annotation that says so: the setting's value."""
    refill: str = RECREATE
    """`spec.refillStrategy`, or what the annotation `headroom.dev/one-shot` says."""
    fill_deadline: timedelta | None = None
    """Of a one-shot buffer: how long after it became ready pods may take to use all of it. None: for ever."""
    sized_by: str = ""
    """Names the schedule or the scaler that sets `replicas`; "" where the number is the buffer's own."""
    is_scaled: bool = False
    """Whether that is a scaler, which goes before any schedule."""
    dormant: str = ""
    """Why a schedule keeps it out of the cluster at present; "" where none does."""
    waits_for: str = ""
    """Why a schedule that it follows is not known; "" where all are."""

    @property
    def is_one_shot(self) -> bool:
        """Whether it is filled once, and what pods use is not made good."""
        return self.refill == ONE_SHOT

    def annotation(self, key: str) -> str | None:
        """The annotation's value; None where the buffer has none of that name."""
        return next((value for name, value in self.annotations if name == key), None)


DEPLOYMENT_KIND = "Deployment"
BALLOON_LABEL = "headroom.dev/balloon"
"""On the Deployment and on its pods; the value is the Deployment's name."""
BALLOON_PRIORITY_CLASS = "headroom-balloon"
BALLOON_PRIORITY = -10
"""Below every pod without a class. Cluster Autoscaler makes no nodes for pods with a priority below -10
(`--expendable-pods-priority-cutoff`)."""
_DIGITS_OF_A_DIGEST = 8


def balloon_ref(buffer: ObjectRef) -> ObjectRef:
    """The Deployment of a buffer's balloon pods. Its name is also a label's value, which limits its length."""
    name = label_value(f"balloon-{buffer.kind.lower()}-{buffer.name}", digits=_DIGITS_OF_A_DIGEST)
    return ObjectRef("apps", DEPLOYMENT_KIND, buffer.namespace, name)


def balloon_of(pod: Pod) -> ObjectRef | None:
    """The Deployment that a balloon pod belongs to; None for every other pod. The priority class is checked first: it is cheap."""
    if pod.shape.priority_class_name != BALLOON_PRIORITY_CLASS:
        return None
    name = next((value for key, value in pod.shape.labels if key == BALLOON_LABEL), None)
    return None if name is None else ObjectRef("apps", DEPLOYMENT_KIND, pod.namespace, name)


def waiting_balloons(pods: Iterable[Pod]) -> dict[ObjectRef, tuple[ObjectRef, ...]]:
    """Balloon pods that have no node yet, by Deployment."""
    waiting = ((balloon_of(pod), pod) for pod in pods if pod.node_name is None and not pod.deleting)
    by_deployment = by_key(
        (ref, ObjectRef("", POD_KIND, pod.namespace, pod.name)) for ref, pod in waiting if ref is not None
    )
    return {ref: tuple(sorted(names)) for ref, names in by_deployment.items()}


def standing_balloons(pods: Iterable[Pod]) -> Counter[ObjectRef]:
    """How many balloon pods have a node and are not being deleted, by Deployment."""
    deployments = (balloon_of(pod) for pod in pods if pod.node_name is not None and not pod.deleting)
    return Counter(ref for ref in deployments if ref is not None)


ONE_SHOTS_KEY = "oneShots"
FULFILLED, EXPIRED = "Fulfilled", "Expired"
"""The two conditions that end a one-shot buffer for good. Names and reasons are those of the proposal for both autoscalers (autoscaler#10108)."""
BUFFER_FILLED, DEADLINE_EXCEEDED, CAPACITY_LOST = "BufferFilled", "FillDeadlineExceeded", "CapacityLost"
"""Their reasons: pods used it; they did not in time; its nodes went before any pod came (the last is headroom's own)."""


class OneShotPlace(Record, frozen=True):
    """chunks: how many of the buffer's are left on a node. room: how many would fit there beside the running pods."""

    chunks: int
    room: int


class OneShot(Record, frozen=True):
    """since: when it became ready, for its deadline; "" where it has none. filled: when all its chunks had room, "" until then. Both RFC 3339.

    places: by node, the chunks that have room which nobody has used. used: how many pods have used. lost: how many went with their nodes.
    ended: type, reason and message of the condition that ended it.
    """

    filled: str = ""
    places: Mapping[str, OneShotPlace] = {}
    used: int = 0
    lost: int = 0
    since: str = ""
    ended: tuple[str, str, str] | None = None

    @property
    def left(self) -> int:
        """How many chunks are left."""
        return sum(place.chunks for place in self.places.values())

    def on(self, places: Mapping[str, OneShotPlace]) -> OneShot:
        """The record with these places left."""
        return self.but(places={node: place for node, place in sorted(places.items()) if place.chunks})

    def gives_up(self, deadline: timedelta) -> datetime | None:
        """When its deadline has passed; None before it has become ready. A deadline that came later counts from when it was full."""
        since = self.since or self.filled
        return datetime.fromisoformat(since) + deadline if since else None
