"""The newest live pod of a workload, which shows what admission makes of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from reconciler.model.pods import Pod, Workload
from reconciler.model.requirements import LabelSelector

_UNKNOWN = datetime.min.replace(tzinfo=UTC)
_Places = dict[tuple[str, str], list[Pod]]


class LivePods:
    """Pods that are not being deleted, looked up by selector.

    Equal pods share one shape, so only the newest pod of each shape is kept. Each is indexed by one of its labels, since a namespace may
    have hundreds of workloads.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = pods
        self._by_namespace: dict[str, dict[int, Pod]] | None = None
        self._by_label: dict[str, _Places] = {}

    def newest(self, workload: Workload) -> Pod | None:
        """The newest pod in the workload's namespace that its selector matches."""
        selector = workload.selector
        if selector is None:
            return None
        candidates = self._candidates(workload.ref.namespace, selector)
        own = (pod for pod in candidates if selector.matches(dict(pod.shape.labels)))
        return max(own, key=_age, default=None)

    def _candidates(self, namespace: str, selector: LabelSelector) -> Iterable[Pod]:
        if not selector.match_labels:
            return self._newest_of_shapes().get(namespace, {}).values()
        if namespace not in self._by_label:
            self._by_label[namespace] = _places(self._newest_of_shapes().get(namespace, {}).values())
        places = self._by_label[namespace]
        return min((places.get(label, []) for label in selector.match_labels), key=len)

    def _newest_of_shapes(self) -> dict[str, dict[int, Pod]]:
        if self._by_namespace is None:
            self._by_namespace = {}
            for pod in self._pods:
                if not pod.deleting:
                    alike = self._by_namespace.setdefault(pod.namespace, {})
                    known = alike.get(id(pod.shape))
                    if known is None or _age(pod) > _age(known):
                        alike[id(pod.shape)] = pod
        return self._by_namespace


def _places(pods: Iterable[Pod]) -> _Places:
    places: _Places = {}
    for label, pod in _labelled(pods):
        places.setdefault(label, []).append(pod)
    return places


def _labelled(pods: Iterable[Pod]) -> Iterator[tuple[tuple[str, str], Pod]]:
    for pod in pods:
        for label in pod.shape.labels:
            yield label, pod


def _age(pod: Pod) -> tuple[datetime, str]:
    return (pod.created or _UNKNOWN, pod.name)
