"""ProvisioningRequests, their classes and parameters as typed values, and the taint of nodes that are reserved for one request.

Names and values of parameters are Cluster Autoscaler's. It ignores `reserve` and `bookedForSeconds`, with a line in its log. `maxRunDurationSeconds` is the
name that GKE's queued provisioning has for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, StrEnum

from reconciler.model.conditions import Condition
from reconciler.model.marks import RESERVE_ANNOTATION
from reconciler.model.nodes import Labels
from reconciler.model.pods import PodShape
from reconciler.model.quantity import whole_number
from reconciler.model.refs import ObjectRef, SourcePosition, label_value
from reconciler.model.remembered import RequestRecord
from reconciler.model.requirements import Taint


class RequestKind(Enum):
    """What headroom does for a provisioning class."""

    CHECK = "check-capacity"
    ATOMIC = "atomic-scale-up"


ATOMIC_CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CLASSES: Mapping[str, RequestKind] = {
    "check-capacity.autoscaling.x-k8s.io": RequestKind.CHECK,
    "check-capacity.kubernetes.io": RequestKind.CHECK,
    ATOMIC_CLASS: RequestKind.ATOMIC,
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
    """The settings of ProvisioningRequests.

    booked_for: how long capacity is set aside for the pods of a request. valid_for: how long an atomic request without
    ValidUntilSeconds is tried, from its creation. first_retry: the wait after its first failed attempt, doubled after each.
    kept_for: how long an ended request from Git stays in the cluster, and is remembered after it has left Git.
    only_declared_classes: provide only for classes that have a ProvisioningClass, so that leaving one out forbids it.
    """

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
    """Something it refers to is missing. A booking without a shape cannot be placed; its nodes stay held."""
    WAITING = "waiting"
    """It waits for a check or an attempt; an attempt may be under way."""
    BACKING_OFF = "backing off"
    """An attempt has failed, and the next one is not due yet."""
    BOOKED = "booked"
    ENDING = "ending"
    """It ends in this pass, for the reason in `ends`."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class RequestState:
    """What a pass knows of a request before anything is placed.

    record: from the inventory, or derived from its conditions. exists: its object is in the cluster. is_same_object: that is the
    object of the record, not one created again. declared: it is or was in Git.
    valid_until: it fails if it is not provisioned by then. no_retry: it fails with its first negative check.
    deleting: its object has been deleted but still exists.
    ends: its terminal condition, while it is ENDING. status_conditions: those of its object. ignored: in words, parameters without an effect here.
    pods: of all pod sets together. served: how many of its own pods have a node before it is booked. own_pods: those that wait for one.
    booked_for: how long its capacity is set aside. runs_for: how long nodes made for it live at most. details: values for whoever starts its pods, such as the
    label of its own nodes.
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
    ends: Condition | None = None
    status_conditions: tuple[Condition, ...] = ()
    ignored: tuple[str, ...] = ()
    pods: int = 0
    served: int = 0
    own_pods: tuple[ObjectRef, ...] = ()
    booked_for: timedelta = timedelta(minutes=10)
    runs_for: timedelta | None = None
    details: Labels = ()


VALID_UNTIL = "ValidUntilSeconds"
NO_RETRY = "noRetry"
"""With "true" the request fails with its first negative check."""
PROCESSOR_INSTANCE = "processorInstance"
"""Directs a check to one of several Cluster Autoscalers."""
RESERVE = "reserve"
"""The same as the annotation `headroom.dev/reserve`, for those who can set parameters but no annotations, such as users of Kueue."""
BOOKED_FOR = "bookedForSeconds"
"""How long the capacity is set aside, in place of the setting (autoscaler #6555)."""
MOST_RUN = "maxRunDurationSeconds"
"""How long the nodes that are made live at most."""
PARAMETERS = {
    BOOKED_FOR: frozenset(RequestKind),
    MOST_RUN: frozenset({RequestKind.ATOMIC}),
    VALID_UNTIL: frozenset(RequestKind),
    NO_RETRY: frozenset({RequestKind.CHECK}),
    PROCESSOR_INSTANCE: frozenset({RequestKind.CHECK}),
    RESERVE: frozenset({RequestKind.ATOMIC}),
}
"""By parameter, the kinds of classes that have it."""
LONGEST_CHECK = timedelta(days=7)
"""How long a negative check is repeated. Cluster Autoscaler gives up on a request after the same time."""
_MOST_SECONDS = 10**9
"""Some thirty years."""


@dataclass(frozen=True, slots=True)
class ParameterProblem:
    """A parameter that is ignored. unknown: classes of this kind have no such parameter. Otherwise its value is invalid."""

    name: str
    message: str
    hint: str
    unknown: bool = False


def parameters_of(kind: RequestKind) -> tuple[str, ...]:
    """The parameters of classes of this kind, sorted."""
    return tuple(sorted(name for name, kinds in PARAMETERS.items() if kind in kinds))


def parameter_problems(kind: RequestKind, parameters: Iterable[tuple[str, str]]) -> Iterator[ParameterProblem]:
    """Which of these parameters are ignored, and why."""
    for name, value in parameters:
        if name not in PARAMETERS:
            names = ", ".join(parameters_of(kind))
            yield ParameterProblem(name, f"{kind.value} has no parameter {name}", f"it has {names}", unknown=True)
        elif kind not in PARAMETERS[name]:
            others = ", ".join(sorted(other.value for other in PARAMETERS[name]))
            message = f"{name} has no effect: only {others} has it, and this class is {kind.value}"
            yield ParameterProblem(name, message, "remove it", unknown=True)
        elif name in {VALID_UNTIL, BOOKED_FOR, MOST_RUN} and seconds_of(value) is None:
            message = f"{name} must be a number of seconds above 0, not {value!r}; the default is used"
            yield ParameterProblem(name, message, _seconds(name, kind))
        elif name in {NO_RETRY, RESERVE} and value not in {"true", "false"}:
            then = "the check is repeated" if name == NO_RETRY else "the nodes are not reserved"
            message = f'{name} must be "true" or "false", not {value!r}; {then}'
            yield ParameterProblem(name, message, _yes_or_no(name, value))


def default_validity(kind: RequestKind, rules: RequestRules) -> timedelta:
    """How long a request without ValidUntilSeconds is tried."""
    return rules.valid_for if kind is RequestKind.ATOMIC else LONGEST_CHECK


def seconds_of(value: str | None) -> timedelta | None:
    """The value of a parameter in seconds; None where it is absent or invalid."""
    seconds = whole_number(value) if value is not None and value[:1].isdecimal() else None
    return None if seconds is None or not 0 < seconds <= _MOST_SECONDS else timedelta(seconds=seconds)


def _seconds(name: str, kind: RequestKind) -> str:
    rules = RequestRules()
    defaults = {VALID_UNTIL: default_validity(kind, rules), BOOKED_FOR: rules.booked_for}
    if name not in defaults:
        return f'write {name}: "3600" for an hour, or remove it'
    return f'write {name}: "{defaults[name].total_seconds():.0f}", which is the default, or remove it'


def _yes_or_no(name: str, value: str) -> str:
    meant = value.strip().lower()
    return f'did you mean {name}: "{meant}"?' if meant in {"true", "false"} else f'write {name}: "true", or remove it'


RESERVED_TAINT = "headroom.dev/reserved"
"""The taint's key. Its value names the request."""
RESERVED_NODES = "ReservedNodes"
"""The name in `status.provisioningClassDetails` of the value that its own nodes have as taint and as label."""
_DIGITS = 10


def reserved_taint(request: ObjectRef) -> Taint:
    """The taint, with the value `NAMESPACE.NAME`. It is unique, since a namespace has no dots. A value that is too long ends in a
    digest."""
    value = label_value(f"{request.namespace}.{request.name}", digits=_DIGITS)
    return Taint(RESERVED_TAINT, value, "NoSchedule")


def reserved_taints(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Those of a node's taints that reserve it."""
    return tuple(taint for taint in taints if taint.key == RESERVED_TAINT)


def own_taint(request: ProvisioningRequest) -> Taint | None:
    """The taint of nodes made for a request; None where it does not ask for nodes of its own, or makes none.

    It asks by an annotation or a parameter, which may be its class's default.
    """
    asked = "true" in {dict(request.annotations).get(RESERVE_ANNOTATION), request.parameter(RESERVE)}
    return reserved_taint(request.ref) if asked and request.kind is RequestKind.ATOMIC else None


def may_come(shape: PodShape, taint: Taint) -> bool:
    """Whether pods of this shape may be on nodes with that taint."""
    return any(toleration.tolerates(taint) for toleration in shape.tolerations)


def selects_reserved_nodes(shape: PodShape) -> str:
    """The value of the label of reserved nodes that the pod selects, which Karpenter makes no nodes for; "" if it selects none."""
    return dict(shape.node_selector).get(RESERVED_TAINT, "")


def toleration_to_write(taint: Taint) -> str:
    """The matching toleration as one line of YAML, for a pod template."""
    return f"tolerations: [{{key: {taint.key}, value: {taint.value}, effect: {taint.effect}}}]"
