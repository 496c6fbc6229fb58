"""Demand: what one manifest asks for right now, who goes first when room is short, and whether a demand is served.

Whether a demand is served is decided only here, so that plans, comparisons, cost forecasts, bounds and explanations all give the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from reconciler.model.autoscalers import ServingAutoscaler
from reconciler.model.buffers import Fulfilment, Recreation, RememberedShare
from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.placement import UnplacedReason, first_sentence
from reconciler.model.pods import PodShape
from reconciler.model.provisioning_requests import Phase, RequestState
from reconciler.model.quantity import Resources
from reconciler.model.refs import POD_KIND, ObjectRef, SourcePosition

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
NO_PRIORITY_CLASS = -(2**31) - 1
"""The pod priority of chunks whose shape names no PriorityClass: below every pod's, since they yield to every pod."""


class Rank(NamedTuple):
    """Demands of equal rank are served by age and name, but none of them displaces another that has its place already.

    The least rank is served first: pending pods, bookings, higher pod priority, higher `headroom.dev/priority`, and requests
    before buffers. No two requests have equal rank: of two, the older gets what is enough for only one.
    """

    after_pods: bool
    after_bookings: bool
    pod_priority: int
    after_kept: bool
    """False for a buffer whose room is kept from requests, while a request of that pod priority asks for room."""
    declared_priority: int
    """Negated, like the pod priority, so that higher ones sort first."""
    after_requests: bool
    turn: tuple[str, ...] = ()
    """Of a request without a booking: its age and name."""


BOOKING = Rank(
    after_pods=True, after_bookings=False, pod_priority=0, after_kept=True, declared_priority=0, after_requests=False
)
"""The rank of bookings, which were served in an earlier pass. They keep their places, and none takes another's."""


def rank_of_pods(priority: int) -> Rank:
    """The rank of pending pods of that priority."""
    return Rank(
        after_pods=False,
        after_bookings=True,
        pod_priority=-priority,
        after_kept=True,
        declared_priority=0,
        after_requests=True,
    )


def is_priority(text: str) -> bool:
    """Whether it is a valid `headroom.dev/priority`: an integer of at most nine digits."""
    return _INTEGER.fullmatch(text) is not None


REQUEST_KIND = "ProvisioningRequest"
SPARE_KIND = "SpareRoom"
"""Of demands for room that only keeps other demands' pods from waiting (`placement.surge`). No object has this kind."""
NOT_CREATED_YET = "9999"
"""Sorts after every creation time: what is only in Git is the youngest."""


@dataclass(frozen=True, slots=True)
class ChunkGroup:
    """Chunks of one shape. A buffer has one group, a provisioning request one for each pod set."""

    shape: PodShape
    count: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What one manifest asks for: how many chunks, who makes room for them, and in which order."""

    ref: ObjectRef
    """The manifest; `Pod/NAMESPACE/NAME` for a pending pod."""
    groups: tuple[ChunkGroup, ...] = ()
    """The chunks to place."""
    desired: int | None = None
    """How many chunks are asked for. None: it is not ready; the conditions say why, and there are no groups."""
    source: SourcePosition | None = None
    priority: int = NO_PRIORITY_CLASS
    """The pod priority of its shape."""
    opens_nodes: bool = True
    """Whether new nodes may be made for it. False for pending pods without `--include-pending`, and for check-capacity."""
    whole: bool = False
    """Whether it is placed all or nothing."""
    recreation: Recreation = Recreation.KEEP_EMPTY
    """With KeepMinimum, chunks are compared with a node's allocatable less its daemons, whatever else runs there."""
    conditions: tuple[Condition, ...] = ()
    explanation: tuple[str, ...] = ()
    """How its size was computed, one fact a line."""
    pod_template: tuple[str, int | None] | None = None
    """Name and generation of the PodTemplate that the shape came from, for the status."""
    fulfilment: Fulfilment = Fulfilment.PLACEHOLDER
    """Who keeps the capacity."""
    leaves: str = ""
    """Of a pod on a node that is being deleted: the node's name, since the pod needs another place. "" for all other demands."""
    shape: PodShape | None = None
    """The shape of a buffer's chunks, even when it has none."""
    holds_nodes: bool = True
    """Whether its chunks protect their nodes. False: another party keeps the capacity. The chunks are placed all the same, so
    that no other demand counts on the same room."""
    autoscaler: ServingAutoscaler | None = None
    """The autoscaler that serves it."""
    silent: bool = False
    """Whether that autoscaler has been silent for so long that headroom takes the buffer back if capacity is missing."""
    balloons: int = 0
    """How many balloon pods have a node."""
    waiting_balloons: tuple[ObjectRef, ...] = ()
    """Balloon pods without a node so far. Each is a demand of its own."""
    suspended: bool = False
    """Whether it is suspended: it then keeps what it had, and counts as served."""
    one_shot: bool = False
    """Whether it is filled once and not refilled."""
    used: int = 0
    """Of a one-shot buffer: how many chunks pods have used."""
    fill_deadline: timedelta | None = None
    """Of a one-shot buffer: how long pods may take to use all of it."""
    ended: Condition | None = None
    """Of a one-shot buffer that asks for nothing any more: the condition that ended it."""
    filled: int = 0
    """Of a dedicated buffer: how many chunks its own pods fill. `desired` is how many are left."""
    left_of: int | None = None
    """Of a one-shot buffer that was filled: how many chunks its manifest asks for. `desired` is how many are left."""
    share: RememberedShare | None = None
    """Of a buffer that is a share of running pods: its sizes up to this pass."""
    shrinks_at: datetime | None = None
    """Of such a buffer: when it is smaller if nothing happens, by the cluster's clock; None where it is as small as the share."""
    only_ready: bool = False
    """Whether room counts only on nodes that are ready now."""
    request: RequestState | None = None
    """Of a ProvisioningRequest: its state at the beginning of the pass."""
    declared_priority: int = 0
    """The annotation `headroom.dev/priority`."""
    booked: bool = False
    """Whether it is a booking: its capacity was promised in an earlier pass."""
    created: str = ""
    """Creation time, RFC 3339; "" while it is only in Git."""
    serves_requests: bool = True
    """Whether a provisioning request may take its room."""
    kept_from: int | None = None
    """If none may: the highest priority of the requests that ask for room now."""

    @property
    def is_pending_pod(self) -> bool:
        """Whether it is a pending pod, or one that will be pending once its node is gone (`leaves`)."""
        return self.ref.kind == POD_KIND

    @property
    def is_rehearsed(self) -> bool:
        """Whether it promises room that is free for pods to come. That of balloon pods is free only once these are preempted."""
        others = self.is_pending_pod or self.ref.kind == SPARE_KIND or self.fulfilment == Fulfilment.BALLOON
        return not others and self.recreation is not Recreation.KEEP_MINIMUM

    @property
    def may_fail_alone(self) -> bool:
        """False: its pods find the room that its chunks have, whichever comes first. They are alike and under no rule between pods."""
        shapes = [group.shape for group in self.groups]
        return len(shapes) > 1 or any(
            shape.topology_spread or shape.pod_affinity or shape.pod_anti_affinity or shape.host_ports
            for shape in shapes
        )

    @property
    def is_shapeless(self) -> bool:
        """Whether its chunks stay where they are though nobody knows their shape: it is booked, suspended or not to be refilled, and its
        PodTemplate or workload is gone."""
        return self.desired is None and self.ended is None and (self.booked or self.suspended or self.one_shot)

    @property
    def rank(self) -> Rank:
        """Its rank, compared with other demands': the least is served first, whatever is placed already."""
        if self.is_pending_pod:
            return rank_of_pods(self.priority)
        if self.booked:
            return BOOKING
        is_request = self.ref.kind == REQUEST_KIND
        return Rank(
            after_pods=True,
            after_bookings=True,
            pod_priority=-self.priority if self.kept_from is None else -max(self.priority, self.kept_from),
            after_kept=self.kept_from is None,
            declared_priority=-self.declared_priority,
            after_requests=not is_request,
            turn=self._age_and_name if is_request else (),
        )

    @property
    def order(self) -> tuple[Rank, str, str, str, str, str]:
        """The sort key of all demands, a total order: rank, then age, then name."""
        return (self.rank, *self._age_and_name)

    @property
    def _age_and_name(self) -> tuple[str, str, str, str, str]:
        ref = self.ref
        return (self.created or NOT_CREATED_YET, ref.namespace, ref.name, ref.kind, ref.group)

    @property
    def has_claims(self) -> bool:
        """Whether its pods name claims, of volumes or of devices."""
        return any(group.shape.volume_claims or group.shape.claims_devices for group in self.groups)

    def with_shapes(self, shape_of: Callable[[ChunkGroup], PodShape]) -> Demand:
        """The demand with other shapes for its groups; the same object where no shape changes."""
        groups = tuple(ChunkGroup(shape_of(group), group.count) for group in self.groups)
        same = all(new.shape is old.shape for new, old in zip(groups, self.groups, strict=True))
        return self if same else replace(self, groups=groups)

    def requests(self) -> Resources:
        """What all chunks request together."""
        return Resources.total(group.shape.requests * group.count for group in self.groups)


_READINESS = ("ReadyForProvisioning", "Accepted")
"""The conditions that say why a demand is not ready: a buffer's, then a request's."""
_BELOW = ("Suspended", "Fulfilment", "Provisioned", "Provisioning")
"""If placement gives no reason why chunks have no place, the first of these conditions with a message does."""


class Keeper(StrEnum):
    """Who keeps a demand's capacity."""

    HEADROOM = "headroom"
    AUTOSCALER = "autoscaler"
    BALLOON_PODS = "balloon pods"


@dataclass(frozen=True, slots=True)
class Service:
    """wanted: how many chunks; None if the demand is not ready, or another controller provides for it and headroom does not look.

    served: how many have a place, on existing or new nodes. ready: whether the demand is. autoscaler: its name, "" where none is known.
    certain: False where nothing in the cluster shows that an autoscaler serves it. why: why the demand is not ready, or why chunks are
    missing, in one sentence; "" where nothing is missing. reasons: those of missing chunks.
    """

    wanted: int | None = None
    served: int = 0
    ready: bool = True
    by: Keeper = Keeper.HEADROOM
    autoscaler: str = ""
    certain: bool = True
    why: str = ""
    reasons: tuple[UnplacedReason, ...] = ()

    def why_not(self, node_pools: Collection[str]) -> str:
        """Why the nearest of these NodePools takes no chunk, or else `why`."""
        return first_sentence(reason for reason in self.reasons if reason.node_pool in node_pools) or self.why

    @property
    def missing(self) -> int:
        """How many of the wanted chunks have no place."""
        return max(0, (self.wanted or 0) - self.served)

    @property
    def is_left(self) -> bool:
        """Whether it is left to another controller, so that headroom does not look at it."""
        return self.wanted is None and self.ready


def service_of(
    demand: Demand, placed: int, reasons: Iterable[UnplacedReason] = (), conditions: Sequence[Condition] | None = None
) -> Service:
    """placed: how many chunks are on existing or new nodes. conditions: the plan's, or else the demand's own."""
    said = {item.type: item for item in (demand.conditions if conditions is None else conditions)}
    wanted = demand.desired
    is_left = demand.request is not None and demand.request.phase is Phase.LEFT
    service = Service(
        wanted,
        min(placed, wanted or 0),
        ready=wanted is not None or is_left,
        by=keeper_of(demand),
        autoscaler=autoscaler_of(demand),
        certain=is_left or demand.fulfilment != Fulfilment.NATIVE or demand.autoscaler is not None,
    )
    if wanted is None:
        return replace(service, why=_message(said, _READINESS))
    if not service.missing:
        return service
    reasons = () if demand.suspended else tuple(reasons)
    return replace(service, why=first_sentence(reasons) or _message(said, _BELOW), reasons=reasons)


def keeper_of(demand: Demand) -> Keeper:
    """Who is to keep its capacity, whoever keeps it at present."""
    if demand.request is not None and demand.request.phase is Phase.LEFT:
        return Keeper.AUTOSCALER
    if demand.fulfilment == Fulfilment.NATIVE:
        return Keeper.AUTOSCALER
    return Keeper.BALLOON_PODS if demand.fulfilment == Fulfilment.BALLOON else Keeper.HEADROOM


def autoscaler_of(demand: Demand) -> str:
    """The name of the autoscaler that serves it; "" where none is known."""
    return "" if demand.autoscaler is None else demand.autoscaler.name


def _message(said: Mapping[str, Condition], types: Sequence[str]) -> str:
    """The message of the first of these conditions that reports a problem; "" where none does."""
    conditions = (said[name] for name in types if name in said)
    troubles = (item for item in conditions if item.type == "Suspended" or item.status is not ConditionStatus.TRUE)
    return next((item.message or item.reason for item in troubles), "")
