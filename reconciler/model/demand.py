"""Demand: what one manifest asks for right now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import is_

from reconciler.model.autoscalers import ServingAutoscaler
from reconciler.model.buffers import Recreation
from reconciler.model.conditions import Condition
from reconciler.model.pods import PodShape
from reconciler.model.precedence import BOOKING, NO_PRIORITY_CLASS, Rank, rank_of_pods
from reconciler.model.provisioning_requests import RequestState
from reconciler.model.quantity import Resources
from reconciler.model.refs import ObjectRef, SourcePosition

POD_KIND = "Pod"
REQUEST_KIND = "ProvisioningRequest"
_NOT_CREATED_YET = "9999"
"""Sorts after every creation time: what is only in Git is the youngest."""


@dataclass(frozen=True, slots=True)
class ChunkGroup:
    """Chunks of one shape. A buffer has one group, a provisioning request one for each pod set."""

    shape: PodShape
    count: int


@dataclass(frozen=True, slots=True)
class Demand:
    """ref: the manifest (`Pod/NAMESPACE/NAME` for a pending pod). desired: chunks, None when not ready (conditions say
    why, groups are empty then).

    opens_nodes: may new nodes be made for it (False for pending pods without `--include-pending`, and for
    check-capacity); whole: all or nothing; recreation: KeepMinimum counts chunks against allocatable less daemons;
    explanation: how the size came about, in words, one fact a line; replicas, template: what status shows;
    pod_template: name of the PodTemplate the shape came from and its generation, for status.
    leaves: the node that this pod runs on and that is being deleted, so that it needs another place; "" for all else.
    shape: of a buffer's chunks, for its status, also when there are none. fulfilment: who keeps the capacity. holds_nodes: its chunks protect the nodes that they are on (False: somebody else keeps
    the capacity; the chunks are placed, so that no other demand counts on the same room). autoscaler: the one that serves
    it. silent: that one has written nothing for so long that headroom takes the buffer back if the capacity is missing.
    balloons: balloon pods that have a node. one_shot: once filled, it is not filled again.
    only_ready: room counts only on nodes that take pods now. request: of a ProvisioningRequest, how far it is.
    priority: of pods of that shape. declared_priority: `headroom.dev/priority`. booked: it was promised the capacity already.
    created: RFC 3339 creation time, "" while it is only in Git.
    """

    ref: ObjectRef
    groups: tuple[ChunkGroup, ...] = ()
    desired: int | None = None
    source: SourcePosition | None = None
    priority: int = NO_PRIORITY_CLASS
    opens_nodes: bool = True
    whole: bool = False
    recreation: Recreation = Recreation.KEEP_EMPTY
    conditions: tuple[Condition, ...] = ()
    explanation: tuple[str, ...] = ()
    pod_template: tuple[str, int | None] | None = None
    fulfilment: str = "placeholder"
    limited_by: str = ""
    leaves: str = ""
    shape: PodShape | None = None
    holds_nodes: bool = True
    autoscaler: ServingAutoscaler | None = None
    silent: bool = False
    balloons: int = 0
    one_shot: bool = False
    only_ready: bool = False
    request: RequestState | None = None
    declared_priority: int = 0
    booked: bool = False
    created: str = ""

    @property
    def is_pending_pod(self) -> bool:
        """Also of a pod that will be pending once its node is gone (`leaves`)."""
        return self.ref.kind == POD_KIND

    @property
    def rank(self) -> Rank:
        """Before whom it is served, whatever places they have already."""
        if self.is_pending_pod:
            return rank_of_pods(self.priority)
        if self.booked:
            return BOOKING
        is_request = self.ref.kind == REQUEST_KIND
        return Rank(
            after_pods=True,
            after_bookings=True,
            pod_priority=-self.priority,
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
        return (self.created or _NOT_CREATED_YET, ref.namespace, ref.name, ref.kind, ref.group)

    def with_shapes(self, shape_of: Callable[[ChunkGroup], PodShape]) -> Demand:
        """With other shapes for its groups; the very same demand where none is another."""
        groups = tuple(_with_shape(group, shape_of(group)) for group in self.groups)
        return self if all(map(is_, groups, self.groups)) else replace(self, groups=groups)

    def requests(self) -> Resources:
        """What all chunks request together."""
        return Resources.total(group.shape.requests * group.count for group in self.groups)


def _with_shape(group: ChunkGroup, shape: PodShape) -> ChunkGroup:
    return group if shape is group.shape else replace(group, shape=shape)
