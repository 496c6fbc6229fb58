"""Pods that use the capacity of a ProvisioningRequest, wherever they run (ProvisioningRequest proposal, "Adding pods that consume")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.pods import Pod, PodShape
from reconciler.model.provisioning_requests import CONSUME_ANNOTATIONS, ProvisioningRequest

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Consumption:
    """Pods by the namespace and name of the request that they name: those that have a node, and those that wait for one."""

    bound: Mapping[_Key, Sequence[Pod]]
    pending: Mapping[_Key, Sequence[Pod]]

    def of(self, request: ProvisioningRequest, shapes: Sequence[PodShape], before: Sequence[int]) -> tuple[int, ...]:
        """By pod set, how many of its pods have come so far. before: as of the last pass; what has been used stays used."""
        now = _by_set(self.bound.get(_key(request), ()), shapes, [item.count for item in request.pod_sets])
        known = [*before, *([0] * (len(now) - len(before)))]
        return tuple(max(pair) for pair in zip(now, known, strict=False))

    def left(self, request: ProvisioningRequest, shapes: Sequence[PodShape], consumed: Sequence[int]) -> list[int]:
        """By pod set, how many pods are still to come. Those that wait for a node take room by themselves, before any booking."""
        free = [item.count - used for item, used in zip(request.pod_sets, consumed, strict=True)]
        waiting = _by_set(self.pending.get(_key(request), ()), shapes, free)
        return [count - taken for count, taken in zip(free, waiting, strict=True)]


def consumption_of(pods: Iterable[Pod]) -> Consumption:
    """Daemon pods, pods that are leaving, and pods with scheduling gates consume nothing."""
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
        elif not pod.gated:
            pending.setdefault((pod.namespace, name), []).append(pod)
    return Consumption(bound, pending)


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
