"""What a buffer points to: the pod shape of its chunks, and the replicas of its workload.

A workload's newest live pod shows what admission makes of its pods. A chunk is a virtual pod: that shape made ready to be placed without
ever existing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

from reconciler.demand.size import Base
from reconciler.model import codes
from reconciler.model.buffers import Buffer, Dialect, virtual_labels
from reconciler.model.declared import Absence
from reconciler.model.findings import Code
from reconciler.model.pods import GROUP_OF_WORKLOAD, NodeSelectorTerm, Pod, PodShape, Workload
from reconciler.model.refs import ObjectRef, counted
from reconciler.model.requirements import LabelSelector, Operator, Requirement

_UNKNOWN = datetime.min.replace(tzinfo=UTC)
_Places = dict[tuple[str, str], list[Pod]]
SHOWN_IN_FULL = 10**15
"""A larger number of chunks is a typing error, and its digits are not printed."""
READY = "ReadyForProvisioning"
RESOLVED = "Resolved"
SCALABLE_NOT_FOUND = "ScalableRefNotFound"
TEMPLATE_NOT_FOUND = "PodTemplateNotFound"
RESOLUTION_FAILED = "ResolutionFailed"
POD_TEMPLATE = "PodTemplate"
AbsenceOf: TypeAlias = Callable[[ObjectRef], Absence]
"""Says why nothing is known of an object (see `Declared.absence_of`)."""
_KUBERNETES_OWN = "k8s.io"
"""The API groups of Kubernetes itself end so, or have no dot."""


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
        selected = (pod for pod in candidates if selector.matches(dict(pod.shape.labels)))
        return max(selected, key=_age, default=None)

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
                    newest = alike.get(id(pod.shape))
                    if newest is None or _age(pod) > _age(newest):
                        alike[id(pod.shape)] = pod
        return self._by_namespace


def _places(pods: Iterable[Pod]) -> _Places:
    places: _Places = {}
    for pod in pods:
        for label in pod.shape.labels:
            places.setdefault(label, []).append(pod)
    return places


def _age(pod: Pod) -> tuple[datetime, str]:
    return (pod.created or _UNKNOWN, pod.name)


def virtual_pod(shape: PodShape, buffer: Buffer) -> PodShape:
    """The shape with the labels of a buffer's virtual pods (Karpenter RFC "CapacityBuffer"), in the buffer's namespace.

    The priority class goes, since by the RFC a virtual pod has the lowest priority.
    """
    labels = dict(shape.labels) | virtual_labels(buffer.ref)
    return replace(
        shape,
        namespace=buffer.ref.namespace,
        labels=tuple(sorted(labels.items())),
        priority_class_name="",
    )


def chunks_in_words(count: int) -> str:
    """`1 chunk`, `2,000 chunks`."""
    return counted(count, "chunk") if count < SHOWN_IN_FULL else "too many chunks"


def on_nodes(shape: PodShape, names: tuple[str, ...]) -> PodShape:
    """The shape on these nodes only."""
    here = Requirement("metadata.name", Operator.IN, names)
    terms = shape.required_node_terms or (NodeSelectorTerm(),)
    return replace(shape, required_node_terms=tuple(replace(term, fields=(*term.fields, here)) for term in terms))


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Why a buffer is not ready. reason: of the condition ReadyForProvisioning, as Karpenter spells it."""

    message: str
    code: Code
    hint: str = ""
    reason: str = RESOLUTION_FAILED


@dataclass(frozen=True, slots=True)
class Target:
    """What a buffer points to, as one dialect reads it."""

    shape: PodShape
    """Of a chunk."""
    workload: Workload | None = None
    """None: the buffer has an inline pod."""
    pod_template: tuple[str, int | None] | None = None
    words: str = ""
    """Its name in messages."""
    pod: Pod | None = None
    """The live pod that gave the shape; None where the template did."""

    def base(self, dialect: Dialect) -> Base | None:
        """Karpenter takes `spec.replicas`, 1 when absent.

        Cluster Autoscaler takes the replicas observed while a pod lives. Without a pod they say nothing, and `spec.replicas`
        counts (capacitybuffer/translators/scalable_objects).
        """
        workload = self.workload
        if workload is None or self.pod_template is not None:
            return None
        if dialect is Dialect.CLUSTER_AUTOSCALER:
            observed = None if self.pod is None else workload.observed_replicas
            return Base(workload.replicas if observed is None else observed, self.words)
        if workload.replicas is not None:
            return Base(workload.replicas, self.words)
        from_scale = workload.observed_replicas if workload.shape is None else None
        return Base(1 if from_scale is None else from_scale, self.words)

    @property
    def facts(self) -> tuple[str, ...]:
        """Says where the shape came from if it is not the template's."""
        return () if self.pod is None else (f"chunks are like {self.pod.name}, the newest pod of {self.words}",)


def workload_index(*sources: Iterable[Workload]) -> dict[ObjectRef, Workload]:
    """By reference; where two sources have the same workload, the first counts."""
    index: dict[ObjectRef, Workload] = {}
    for source in sources:
        for workload in source:
            index.setdefault(workload.ref, workload)
    return index


def resolve(
    buffer: Buffer, workloads: Mapping[ObjectRef, Workload], pods: LivePods, dialect: Dialect, absence_of: AbsenceOf
) -> Target | Unresolved:
    """The shape and workload of a buffer, which are looked for in its own namespace only."""
    if buffer.pod_shape is not None:
        return Target(buffer.pod_shape, words="its own pod spec")
    if buffer.pod_template is not None:
        return _template(buffer, buffer.pod_template, workloads, absence_of)
    return _scalable(buffer, workloads, pods, dialect, absence_of)


def _template(
    buffer: Buffer, name: str, workloads: Mapping[ObjectRef, Workload], absence_of: AbsenceOf
) -> Target | Unresolved:
    ref = ObjectRef("", POD_TEMPLATE, buffer.ref.namespace, name)
    template = workloads.get(ref)
    if template is None or template.shape is None:
        absence = absence_of(ref)
        hint = absence.hint or "a PodTemplate must be in the buffer's own namespace"
        return Unresolved(f"{ref} {absence.words}", codes.TARGET_NOT_FOUND, hint, TEMPLATE_NOT_FOUND)
    return Target(template.shape, template, (name, template.generation), str(ref))


def _scalable(
    buffer: Buffer, workloads: Mapping[ObjectRef, Workload], pods: LivePods, dialect: Dialect, absence_of: AbsenceOf
) -> Target | Unresolved:
    target = buffer.target
    assert target is not None
    group = group_of(target)
    if target.group not in {"", group}:
        right = f"apiGroup: {group}" if group else "no apiGroup"
        message = f"there is no {target.kind} in the API group {target.group}"
        return Unresolved(message, codes.TARGET_IN_WRONG_GROUP, f"a {target.kind} needs {right}")
    ref = ObjectRef(group, target.kind, buffer.ref.namespace, target.name)
    workload = workloads.get(ref)
    if workload is None:
        theirs = f" of {group}" if target.kind in GROUP_OF_WORKLOAD and group != GROUP_OF_WORKLOAD[target.kind] else ""
        absence = absence_of(ref)
        hint = absence.hint or "a target must be in the buffer's own namespace and have a scale subresource"
        return Unresolved(f"{ref}{theirs} {absence.words}", codes.TARGET_NOT_FOUND, hint, SCALABLE_NOT_FOUND)
    if workload.shape is not None and dialect is Dialect.KARPENTER:
        return Target(workload.shape, workload, words=str(ref))
    newest = pods.newest(workload)
    if newest is not None:
        # A pod of a StatefulSet has claims of its own.
        claims = () if workload.shape is None else workload.shape.volume_claims
        return Target(replace(newest.shape, volume_claims=claims), workload, words=str(ref), pod=newest)
    if workload.shape is not None:
        return Target(workload.shape, workload, words=str(ref))
    message = f"{ref} has no pod yet, and its newest pod is what shows the shape of a chunk"
    hint = "it becomes ready with the first pod; a podTemplateRef needs none"
    return Unresolved(message, codes.TARGET_WITHOUT_PODS, hint)


def group_of(target: ObjectRef) -> str:
    """The group that a target's kind has in Kubernetes; other projects have kinds of the same names in groups of their own."""
    is_theirs = "." in target.group and not target.group.endswith(_KUBERNETES_OWN)
    return target.group if is_theirs else GROUP_OF_WORKLOAD.get(target.kind, target.group)
