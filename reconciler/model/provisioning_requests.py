"""ProvisioningRequests and their classes (Cluster Autoscaler ProvisioningRequest proposal) as typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum

from reconciler.model.conditions import Condition, ConditionStatus
from reconciler.model.nodes import Labels
from reconciler.model.refs import ObjectRef, SourcePosition
from reconciler.model.request_records import RequestRecord


class RequestKind(Enum):
    """What headroom does for a provisioning class."""

    CHECK = "check-capacity"
    ATOMIC = "atomic-scale-up"


CLASSES: Mapping[str, RequestKind] = {
    "check-capacity.autoscaling.x-k8s.io": RequestKind.CHECK,
    "check-capacity.kubernetes.io": RequestKind.CHECK,
    "best-effort-atomic-scale-up.autoscaling.x-k8s.io": RequestKind.ATOMIC,
    "atomic-scale-up.kubernetes.io": RequestKind.ATOMIC,
}
"""By class name. Requests of other classes are left to other controllers."""

ACCEPTED, PROVISIONED, CAPACITY_AVAILABLE = "Accepted", "Provisioned", "CapacityAvailable"
FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED = "Failed", "BookingExpired", "CapacityRevoked"
TERMINAL = (FAILED, CAPACITY_REVOKED, BOOKING_EXPIRED)
"""Condition types that end a request: once true they never change back."""

CANCELLED = "Cancelled"
"""The reason of the condition Failed when a request was deleted before it ended."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """A number of pods of one PodTemplate, which is in the request's namespace."""

    pod_template: str
    count: int


@dataclass(frozen=True, slots=True)
class ProvisioningRequest:
    """A ProvisioningRequest. created, uid: creation time (RFC 3339) and uid, "" while it is only in Git. parameters: sorted.

    defaults: its class's parameters, for those that it does not set. status_times: `lastTransitionTime` by condition type.
    status_manager: the field manager other than headroom that writes its conditions. queued_as: Kueue's Workload that it is for. deleting: it has been deleted, but a
    finalizer still keeps it.
    """

    ref: ObjectRef
    class_name: str
    pod_sets: tuple[PodSet, ...]
    parameters: Labels = ()
    annotations: Labels = ()
    position: SourcePosition | None = None
    created: str = ""
    generation: int | None = None
    status_conditions: tuple[Condition, ...] = ()
    uid: str = ""
    status_times: Labels = ()
    defaults: Labels = ()
    status_manager: str | None = None
    queued_as: str = ""
    deleting: bool = False

    @property
    def kind(self) -> RequestKind | None:
        """What headroom does for its class; None if the class is another controller's."""
        return CLASSES.get(self.class_name)

    def parameter(self, name: str) -> str | None:
        """The parameter's value or its class's default; None where there is neither."""
        return {**dict(self.defaults), **dict(self.parameters)}.get(name)

    def is_true(self, condition_type: str) -> bool:
        """Whether its status has this condition with the status True."""
        return any(
            item.type == condition_type and item.status is ConditionStatus.TRUE for item in self.status_conditions
        )


@dataclass(frozen=True, slots=True)
class ProvisioningClass:
    """A provisioning class, a kind that the proposal only sketches: its default parameters, and those it allows (None: all)."""

    ref: ObjectRef
    class_name: str
    defaults: Labels = ()
    allowed: tuple[str, ...] | None = None
    position: SourcePosition | None = None


CONSUME_ANNOTATIONS = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Annotations of a pod, the newer spelling first: the request whose capacity it uses, in its namespace."""
CLASS_ANNOTATIONS = (
    "autoscaling.x-k8s.io/provisioning-class-name",
    "cluster-autoscaler.kubernetes.io/provisioning-class-name",
)
"""The class of that request, the newer spelling first. The proposal requires both annotations, Cluster Autoscaler only the first."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """booked_for: how long capacity is set aside. valid_for: the default of `ValidUntilSeconds` of an atomic request. first_retry:
    the pause after the first failed attempt, doubled after each. kept_for: how long an ended request from the repository stays in
    the cluster. only_declared_classes: classes without a ProvisioningClass are not provided for."""

    booked_for: timedelta = timedelta(minutes=10)
    valid_for: timedelta = timedelta(minutes=10)
    first_retry: timedelta = timedelta(minutes=1)
    kept_for: timedelta = timedelta(days=7)
    only_declared_classes: bool = False


class Phase(StrEnum):
    """The phase of a request at the beginning of a pass."""

    LEFT = "left to another"
    """Another controller provides for it and writes its conditions."""
    NOT_READY = "not ready"
    """Something it refers to is missing. A booking without a shape cannot be placed, and holds nothing."""
    WAITING = "waiting"
    """It waits for a check or an attempt; an attempt may be under way."""
    BACKING_OFF = "backing off"
    """An attempt has failed, and the next one is not due yet."""
    BOOKED = "booked"
    ENDING = "ending"
    """It ends in this pass, for the reason in `ends`."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request ends: its terminal condition. reason: CamelCase."""

    condition_type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RequestState:
    """What a pass knows of a request before anything is placed.

    record: from the inventory, or derived from its conditions. exists: its object is in the cluster. is_same_object: that is the
    object of the record, not one created again. declared: it is or was in Git.
    valid_until: it fails if it is not provisioned by then. no_retry: it fails with its first negative check.
    deleting: its object has been deleted but still exists.
    ends: set while it is ENDING. status_conditions: those of its object. ignored: in words, parameters without an effect here.
    pods: of all pod sets together. served: how many of its own pods have a node before it is booked. own_pods: those that wait for one.
    booked_for: how long its capacity is set aside. runs_for: how long nodes made for it live at most. nodes_take: how long nodes took lately
    until they were ready. details: values for whoever starts its pods, such as the label of its own nodes.
    """

    kind: RequestKind
    phase: Phase
    record: RequestRecord
    exists: bool = False
    deleting: bool = False
    is_same_object: bool = True
    declared: bool = False
    valid_until: datetime | None = None
    no_retry: bool = False
    ends: Ending | None = None
    status_conditions: tuple[Condition, ...] = ()
    ignored: tuple[str, ...] = ()
    pods: int = 0
    served: int = 0
    own_pods: tuple[ObjectRef, ...] = ()
    booked_for: timedelta = timedelta(minutes=10)
    runs_for: timedelta | None = None
    nodes_take: timedelta | None = None
    details: Labels = ()
