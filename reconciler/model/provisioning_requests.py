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
"""By class name. Requests of other classes are left to whoever provides them."""

ACCEPTED, PROVISIONED, CAPACITY_AVAILABLE = "Accepted", "Provisioned", "CapacityAvailable"
FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED = "Failed", "BookingExpired", "CapacityRevoked"
TERMINAL = (FAILED, CAPACITY_REVOKED, BOOKING_EXPIRED)
"""Condition types that end a request: once true they never change back."""

CANCELLED = "Cancelled"
"""The reason of Failed of a request that was deleted before it had ended."""


@dataclass(frozen=True, slots=True)
class PodSet:
    """So many pods of one PodTemplate, named as in the request's own namespace."""

    pod_template: str
    count: int


@dataclass(frozen=True, slots=True)
class ProvisioningRequest:
    """A ProvisioningRequest. created: RFC 3339 creation time, "" when it is only in Git; uid likewise; parameters: sorted.

    defaults: parameters that its class gives it where it sets none. status_times: `lastTransitionTime` by condition type.
    status_manager: the field manager, other than headroom's own, that writes its conditions. deleting: it has been deleted, and is there
    still for a finalizer of somebody's.
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
    deleting: bool = False

    @property
    def kind(self) -> RequestKind | None:
        """None: the class is somebody else's."""
        return CLASSES.get(self.class_name)

    def parameter(self, name: str) -> str | None:
        """The parameter's value, or its default of the class; None where there is neither."""
        return {**dict(self.defaults), **dict(self.parameters)}.get(name)

    def is_true(self, condition_type: str) -> bool:
        """Whether its status has this condition with the status True."""
        return any(
            item.type == condition_type and item.status is ConditionStatus.TRUE for item in self.status_conditions
        )


@dataclass(frozen=True, slots=True)
class ProvisioningClass:
    """Headroom's form of a kind that the proposal sketches: a class's default parameters, and those it allows (None: all)."""

    ref: ObjectRef
    class_name: str
    defaults: Labels = ()
    allowed: tuple[str, ...] | None = None
    position: SourcePosition | None = None


CONSUME_ANNOTATIONS = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""On a pod, the newer one first: the name of the request in its namespace whose capacity it uses."""
CLASS_ANNOTATIONS = (
    "autoscaling.x-k8s.io/provisioning-class-name",
    "cluster-autoscaler.kubernetes.io/provisioning-class-name",
)
"""Beside it, likewise: the class of that request. The proposal requires both; Cluster Autoscaler goes by the first alone."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """booked_for: how long capacity is set aside. valid_for: `ValidUntilSeconds` where an atomic request sets none. first_retry: after the
    first attempt that failed, doubled after each. kept_for: how long an ended one of the repository stays in the cluster."""

    booked_for: timedelta = timedelta(minutes=10)
    valid_for: timedelta = timedelta(minutes=10)
    first_retry: timedelta = timedelta(minutes=1)
    kept_for: timedelta = timedelta(days=7)


class Phase(StrEnum):
    """How far a request is at the beginning of a pass."""

    LEFT = "left to another"
    """Somebody else provides for it, and writes its conditions."""
    NOT_READY = "not ready"
    """Something that it refers to is missing. A booking without its shape cannot be placed, and holds nothing."""
    WAITING = "waiting"
    """To be checked, or to be tried: an attempt may be under way."""
    BACKING_OFF = "backing off"
    """An attempt has failed, and the next one is not due yet."""
    BOOKED = "booked"
    ENDING = "ending"
    """It ends in this pass, for the reason in `ends`."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request ends: one terminal condition. reason: CamelCase."""

    condition_type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RequestState:
    """What a pass knows of a request before anything is placed.

    record: as the inventory has it, or as its conditions tell it. exists: its object is in the cluster. is_same_object: the one that the
    record is about, not one that was made anew. declared: it is in Git, or was.
    valid_until: when it has failed if it is not provisioned by then. no_retry: a check that says no is the last one.
    deleting: its object has been deleted and is there still.
    ends: set while it is ENDING. status_conditions: as its object has them. ignored: in words, parameters that mean nothing here.
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
