"""Who goes first where room is short: the priority of pods, `headroom.dev/priority`, and ResourceQuotas.

Pods have theirs by PriorityClass. ResourceQuotas are applied to buffers as Cluster Autoscaler does: each namespace's oldest buffer first.
Only what pods request is compared; counts of pods and limits are not (capacitybuffer/controller/resourcequotas.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.model.demand import ChunkGroup, is_priority
from reconciler.model.marks import PRIORITY_ANNOTATION
from reconciler.model.nodes import Labels
from reconciler.model.pods import PodAffinityTerm, PodShape, PriorityClass
from reconciler.model.quantity import CPU, MEMORY, PODS, Resources
from reconciler.model.requirements import LabelSelector, Requirement
from reconciler.model.view import ResourceQuota

PRIORITY_CLASS = "PriorityClass"


class Priorities:
    """PriorityClasses by name. without_class: the priority of shapes that name none, where no class is the default."""

    def __init__(self, classes: Iterable[PriorityClass], *, without_class: int) -> None:
        every_class = tuple(classes)
        self._values = {item.name: item.value for item in every_class}
        self._default = max((item.value for item in every_class if item.global_default), default=without_class)

    def of(self, shape: PodShape) -> int:
        """That of its class; a class that is not there counts as none."""
        return self._values.get(shape.priority_class_name, self._default)


def declared_priority(annotations: Labels) -> int:
    """As annotated. Text that is not a number counts as the default; validation reports it."""
    written = next((value for name, value in annotations if name == PRIORITY_ANNOTATION), "")
    return int(written) if is_priority(written) else 0


@dataclass(frozen=True, slots=True)
class QuotaRequest:
    """Chunks that a buffer asks for in one namespace. shape: the workload's own, before it becomes a virtual pod's."""

    shape: PodShape
    count: int


@dataclass(frozen=True, slots=True)
class Allowance:
    """count: how many chunks the quotas leave of a request; quotas: the names of those that cut it.

    compared: at least one quota counts its chunks and has a bound on what they request.
    """

    count: int
    quotas: tuple[str, ...] = ()
    compared: bool = False


def within_quotas(requests: Iterable[QuotaRequest], quotas: Sequence[ResourceQuota]) -> tuple[Allowance, ...]:
    """The allowances of one namespace's requests, in order: each takes from what those before it left."""
    reserved = [Resources() for _ in quotas]
    return tuple(_allow(request, quotas, reserved) for request in requests)


def without(quota: ResourceQuota, pods: Iterable[PodShape]) -> ResourceQuota:
    """The quota without what these pods use. Never below zero, since the quota's controller counts pods a little late."""
    taken = Resources.total(shape.requests for shape in pods if in_scope(shape, quota.scopes))
    used = Resources.of((name, max(0, amount - taken.get(name))) for name, amount in quota.used)
    return replace(quota, used=used)


def with_reserved(quotas: Iterable[ResourceQuota], groups: Iterable[ChunkGroup]) -> list[ResourceQuota]:
    """The quotas with these chunks used up as well."""
    groups = tuple(groups)
    return [
        replace(
            quota,
            used=Resources.total(
                (quota.used, *(g.shape.requests * g.count for g in groups if in_scope(g.shape, quota.scopes)))
            ),
        )
        for quota in quotas
    ]


def _allow(request: QuotaRequest, quotas: Sequence[ResourceQuota], reserved: list[Resources]) -> Allowance:
    asked = Resources.of((name, amount) for name, amount in request.shape.requests if name != PODS)
    matching = [index for index, quota in enumerate(quotas) if in_scope(request.shape, quota.scopes)]
    count = request.count
    names: list[str] = []
    compared = False
    for index in matching:
        quota = quotas[index]
        room = _room(quota, asked, reserved[index])
        compared = compared or room is not None
        if room is not None and room < request.count:
            names.append(quota.name)
            count = min(count, room)
    for index in matching:
        reserved[index] += asked * count
    return Allowance(count, tuple(sorted(names)), compared)


def _room(quota: ResourceQuota, asked: Resources, reserved: Resources) -> int | None:
    rooms = [
        max(0, hard - quota.used.get(name) - reserved.get(name)) // amount
        for name, hard in quota.hard
        if (amount := asked.get(name)) > 0
    ]
    return min(rooms, default=None)


def in_scope(shape: PodShape, scopes: Iterable[Requirement]) -> bool:
    """Whether a quota with these scopes counts the pod; an unknown scope counts none."""
    return all(_meets(shape, scope) for scope in scopes)


def _meets(shape: PodShape, scope: Requirement) -> bool:
    match scope.key:
        case "NotTerminating":
            return True
        case "BestEffort":
            return _is_best_effort(shape)
        case "NotBestEffort":
            return not _is_best_effort(shape)
        case "CrossNamespacePodAffinity":
            return any(term.namespaces or term.namespace_selector is not None for term in _affinity_terms(shape))
        case "PriorityClass":
            name = shape.priority_class_name
            return LabelSelector(expressions=(scope,)).matches({PRIORITY_CLASS: name} if name else {})
        case _:
            return False


def _is_best_effort(shape: PodShape) -> bool:
    return not shape.requests.get(CPU) and not shape.requests.get(MEMORY)


def _affinity_terms(shape: PodShape) -> tuple[PodAffinityTerm, ...]:
    weighted = (*shape.preferred_pod_affinity, *shape.preferred_pod_anti_affinity)
    return (*shape.pod_affinity, *shape.pod_anti_affinity, *(item.term for item in weighted))
