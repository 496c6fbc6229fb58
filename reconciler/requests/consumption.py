"""Pods that use the capacity of a ProvisioningRequest, wherever they run (ProvisioningRequest proposal, "Adding pods that consume")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.pods import Pod, PodShape
from reconciler.model.provisioning_requests import CONSUME_ANNOTATIONS, ProvisioningRequest, selects_reserved_nodes
from reconciler.model.refs import POD_KIND, ObjectRef
from reconciler.model.request_records import RequestRecord

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Consumption:
    """Pods by the namespace and name of the request that they name: those that have a node, and those that wait for one."""

    bound: Mapping[_Key, Sequence[Pod]]
    pending: Mapping[_Key, Sequence[Pod]]

    def counted(
        self, record: RequestRecord, request: ProvisioningRequest, shapes: Sequence[PodShape], *, complete: bool
    ) -> RequestRecord:
        """The record with the pods counted that have come since the last pass. Room that was used stays used after its pod is gone.

        complete: the cluster was read in full, so that a pod that is not there is gone.
        """
        counts = [item.count for item in request.pod_sets]
        consumed = _padded(record.consumed, len(counts))
        before = _padded(record.present or record.consumed, len(counts))
        now = _by_set(self.bound.get(_key(request), ()), shapes, counts)
        if not complete:
            now = list(map(max, now, before))
        for number, shape in enumerate(shapes):
            come = max(0, now[number] - before[number])
            alike = (other for other, known in enumerate(shapes) if known.requests == shape.requests)
            for into in (number, *alike):
                taken = min(come, counts[into] - consumed[into])
                consumed[into] += taken
                come -= taken
        return replace(record, consumed=tuple(consumed), present=() if now == consumed else tuple(now))

    def served(self, request: ProvisioningRequest, shapes: Sequence[PodShape]) -> list[int]:
        """How many pods have a node now, by pod set."""
        return _by_set(self.bound.get(_key(request), ()), shapes, [item.count for item in request.pod_sets])

    def waiting(self, request: ProvisioningRequest, *, most: int) -> tuple[ObjectRef, ...]:
        """The pods that wait for a node."""
        pods = self.pending.get(_key(request), ())[:most]
        return tuple(ObjectRef("", POD_KIND, pod.namespace, pod.name) for pod in pods)

    def left(self, request: ProvisioningRequest, shapes: Sequence[PodShape], consumed: Sequence[int]) -> list[int]:
        """How many pods are still to come, by pod set. Pending pods are not among them: they are placed before any booking."""
        free = [item.count - used for item, used in zip(request.pod_sets, consumed, strict=True)]
        waiting = _by_set(self.pending.get(_key(request), ()), shapes, free)
        return [count - taken for count, taken in zip(free, waiting, strict=True)]


def consumption_of(pods: Iterable[Pod]) -> Consumption:
    """Daemon pods, pods that are leaving, and pods with scheduling gates consume nothing. A pod that waits and selects the nodes of its
    request is no other's to place: its room is still the request's to ask for."""
    bound: dict[_Key, list[Pod]] = {}
    pending: dict[_Key, list[Pod]] = {}
    for pod in pods:
        if not pod.annotations or pod.deleting:
            continue
        annotations = dict(pod.annotations)
        name = next((annotations[key] for key in CONSUME_ANNOTATIONS if key in annotations), "")
        if not name:
            continue
        if pod.node_name is not None:
            bound.setdefault((pod.namespace, name), []).append(pod)
        elif not (pod.gated or selects_reserved_nodes(pod.shape)):
            pending.setdefault((pod.namespace, name), []).append(pod)
    return Consumption(bound, pending)


def _padded(known: Sequence[int], sets: int) -> list[int]:
    return [*known, *([0] * (sets - len(known)))]


def _key(request: ProvisioningRequest) -> _Key:
    return (request.ref.namespace, request.ref.name)


def _by_set(pods: Sequence[Pod], shapes: Sequence[PodShape], counts: Sequence[int]) -> list[int]:
    """Pods that request as much as a pod set's template belong to it; others fill up the sets in their order."""
    taken = [0] * len(shapes)
    others = 0
    for pod in pods:
        alike = (
            number
            for number, shape in enumerate(shapes)
            if taken[number] < counts[number] and shape.requests == pod.shape.requests
        )
        number = next(alike, None)
        if number is None:
            others += 1
        else:
            taken[number] += 1
    for number, count in enumerate(counts):
        more = max(0, min(others, count - taken[number]))
        taken[number] += more
        others -= more
    return taken
